"""How far information travels, and where it arrives."""
