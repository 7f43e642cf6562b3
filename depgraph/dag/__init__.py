"""Dependency graphs as compact arrays. Knows no PyTorch."""
