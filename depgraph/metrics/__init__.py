"""Metrics of a dependency graph. They know the graph, and neither models nor rules."""
