"""How values leave tensors for Python."""
