"""From a traced model to its dependency graph."""
