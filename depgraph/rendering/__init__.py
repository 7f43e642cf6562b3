"""Drawings of dependency graphs: DOT source, SVG, PNG. Knows the graph, and no PyTorch."""
