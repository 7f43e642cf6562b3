"""Tensors among an operator's arguments, lists included."""

from __future__ import annotations

from typing import Any

from depgraph.rules.values import Value, swap

__all__ = ["swap", "tensors_in"]


def tensors_in(args: Any, kwargs: dict[str, Any]) -> list[Value]:
    """Return every tensor among the arguments, lists included, in order."""
    found: list[Value] = []
    for arg in (*args, *kwargs.values()):
        if isinstance(arg, Value):
            found.append(arg)
        elif isinstance(arg, (list, tuple)):
            found.extend(tensors_in(arg, {}))
    return found
