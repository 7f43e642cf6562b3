"""Numbers read off tensors (``x.max().item()``) that stay symbolic for as long as Python lets them.

Such a number looks like a plain int, float or bool to Python and like a ``SymInt``, ``SymFloat`` or ``SymBool`` to
PyTorch, whose operators take it where they take a number. Whatever is computed of it with Python's operators is
computed by those very operators on the plain values, and written down in a graph. It ends, and is settled, where Python
or PyTorch insist on a plain value: in a condition, as the length of a list, as a key of a dictionary, in a text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from depgraph.tracing.python.behind import Ledger, Number, Plain
from depgraph.tracing.python.operators import dress, number_of

__all__ = [
    "Ledger",
    "Number",
    "Symbolic",
    "is_symbolic",
    "node_of",
    "nodes",
    "number_of",
    "plain",
    "settled",
    "symbolic",
    "value_of",
    "without_conditions",
]

Symbolic = torch.SymInt | torch.SymFloat | torch.SymBool


def symbolic(value: Plain, node: fx.Node, ledger: Ledger) -> Symbolic:
    """Make a symbolic number.

    Parameters
    ----------
    value
        The value in this run: exactly an int, float or bool.
    node
        The node that computes it.
    ledger
        Where to write down what is computed of it, and when it ends.
    """
    return dress(Number(value, node, ledger))  # type: ignore[no-any-return]


def is_symbolic(value: object) -> bool:
    """Tell whether a value is a symbolic number, be it one that PyTorch has put into a class of its own."""
    return number_of(value) is not None


def node_of(value: object) -> fx.Node:
    """Return the node that computes a symbolic number."""
    number = number_of(value)
    if number is None or number.node is None:
        raise TypeError(f"{type(value).__name__} is not a symbolic number")
    return number.node


def value_of(value: object) -> Plain:
    """Return the value of a symbolic number, without settling it."""
    number = number_of(value)
    if number is None:
        raise TypeError(f"{type(value).__name__} is not a symbolic number")
    return number.value


def plain(tree: Any) -> Any:
    """Replace symbolic numbers by their values, without settling them."""
    return _replace(tree, lambda number: number.value)


def nodes(tree: Any) -> Any:
    """Replace symbolic numbers by their nodes. A ``torch.Size`` in which there is one becomes a tuple."""
    return _replace(tree, lambda number: number.value if number.node is None else number.node)


def settled(tree: Any) -> Any:
    """End the symbolic numbers in a nest of values, and return plain ones."""
    return _replace(tree, lambda number: number.settle("condition" if number.is_bool() else "number"))


def without_conditions(tree: Any) -> Any:
    """Settle the symbolic bools, for functions of PyTorch that take nothing but a plain bool (``keepdim=m > 0``)."""
    return _replace(tree, lambda n: n.settle("condition") if n.is_bool() else dress(n))


def _replace(tree: Any, change: Callable[[Number], Any]) -> Any:
    def part(leaf: Any) -> Any:
        if (number := number_of(leaf)) is not None:
            return change(number)
        if isinstance(leaf, slice):
            return slice(part(leaf.start), part(leaf.stop), part(leaf.step))
        if isinstance(leaf, torch.Size):
            parts = tuple(map(part, leaf))
            return parts if any(isinstance(length, fx.Node) for length in parts) else torch.Size(parts)
        return leaf

    return pytree.tree_map(part, tree, is_leaf=lambda value: isinstance(value, (slice, torch.Size)))
