"""Measuring on the running model what a dependency graph says of it."""
