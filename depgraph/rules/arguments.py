"""Tensors among an operator's arguments, lists included."""

from __future__ import annotations

from typing import Any

from depgraph.rules.values import Value


def tensors_in(args: Any, kwargs: dict[str, Any]) -> list[Value]:
    """Return every tensor among the arguments, lists included, in order."""
    found: list[Value] = []
    for arg in (*args, *kwargs.values()):
        if isinstance(arg, Value):
            found.append(arg)
        elif isinstance(arg, (list, tuple)):
            found.extend(tensors_in(arg, {}))
    return found


def swap(tree: Any, change: Any) -> Any:
    """Apply a function to every `Value` in nested lists, tuples and dicts of arguments."""
    if isinstance(tree, Value):
        return change(tree)
    if isinstance(tree, (list, tuple)):
        return type(tree)(swap(item, change) for item in tree)
    if isinstance(tree, dict):
        return {key: swap(item, change) for key, item in tree.items()}
    return tree
