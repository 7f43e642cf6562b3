"""Rows gathered by unknown indices, worked on row by row and put back by the same indices: done at every place."""
