"""Whether the number of rows left the graph: what Python made of it reads the mask, and no operator shows that.

``f(x[i]) / len(i)`` divides by a number. Every tensor whose size depends on values counts, if Python was told that size,
and wherever the number went: it may have gone anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import torch
from torch import fx

from depgraph.tracing.python.ways_out import has_sizes_from_values
from depgraph.tracing.rows.following import Following
from depgraph.tracing.rows.spaces import Told, name_of
from depgraph.tracing.rows.widening import follow
from depgraph.tracing.rows.writing import Copy


class Ask(Protocol):
    """A tensor whose size Python was told; see `depgraph.tracing.recorder.recorder.Ask`."""

    node: fx.Node | None
    axis: int | None
    walk: bool


#: What writes to a part of the first argument, and is as large.
_AS_LARGE = frozenset(
    ("index_add", "index_put", "index_copy", "index_fill", "index_reduce", "scatter", "scatter_add", "scatter_reduce",
     "masked_scatter", "masked_fill", "slice_scatter", "select_scatter")
)  # fmt: skip


def told(graph: fx.Graph, asks: Iterable[Ask]) -> Told:
    """Return what Python was told of sizes that values decide.

    Parameters
    ----------
    graph : torch.fx.Graph
        As it was recorded, with what was asked about still in it.
    asks : iterable of Ask
    """
    asks = list(asks)
    if not asks:
        return Told()
    depends = _depending(graph)
    copy = Copy(graph)
    following = Following(copy)
    follow(following)
    walked: dict[fx.Node, None] = {}
    for ask in asks:
        if ask.node is None:
            return Told(True)
        rows = following.get(copy.copied[ask.node])
        if ask.node not in depends or (rows is not None and rows.space.mask is None):
            continue
        ndim = ask.node.meta["val"].ndim
        if rows is not None and ask.axis is not None and ask.axis % ndim != rows.axis:
            continue
        if not ask.walk:
            return Told(True)
        walked[ask.node] = None
    return Told(False, tuple(walked))


def _depending(graph: fx.Graph) -> set[fx.Node]:
    """Return the tensors whose sizes may depend on values."""
    found: set[fx.Node] = set()
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        read = [node.args[0]] if name_of(node) in _AS_LARGE else node.all_input_nodes
        form = node.meta.get("val")
        single = isinstance(form, torch.Tensor) and not form.ndim
        if name_of(node) == "one_hot" and len(node.args) > 1 and node.args[1] != -1:  # the number of classes is given
            if any(n in found for n in read):
                found.add(node)
        elif not single and (has_sizes_from_values(node.target, node.args, _dtype) or any(n in found for n in read)):
            found.add(node)
    return found


def _dtype(argument: object) -> torch.dtype | None:
    form = argument.meta.get("val") if isinstance(argument, fx.Node) else None
    return form.dtype if isinstance(form, torch.Tensor) else None
