"""Which tensors of a graph have sizes that values decide."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import fx

from depgraph.tracing.python.ways_out import has_sizes_from_values
from depgraph.tracing.rows.spaces import name_of

#: What writes to a part of the first argument, and is as large.
_AS_LARGE = frozenset(
    ("index_add", "index_put", "index_copy", "index_fill", "index_reduce", "scatter", "scatter_add", "scatter_reduce",
     "masked_scatter", "masked_fill", "slice_scatter", "select_scatter")
)  # fmt: skip


def sized(graph: fx.Graph) -> set[fx.Node]:
    """Return the nodes that give tensors whose sizes values may decide."""
    found: dict[fx.Node, frozenset[int] | None] = {}  # along which axes, None where it is not known
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        form = node.meta.get("val")
        if name_of(node) == "nonzero":
            found[node] = frozenset((0,))
        elif isinstance(form, torch.Tensor) and not form.ndim:
            continue
        elif name_of(node) == "select" and (axes := found.get(node.args[0])) is not None:
            dim = node.args[1] % (form.ndim + 1)
            if axes - {dim}:
                found[node] = frozenset(axis - (axis > dim) for axis in axes - {dim})
        elif _decides(node) or any(read in found for read in _lengths(node)):
            found[node] = None
    return set(found)


def _decides(node: fx.Node) -> bool:
    """Tell whether values decide how much a node gives; not of one-hot vectors where the number of classes is given."""
    if name_of(node) == "one_hot" and len(node.args) > 1 and node.args[1] != -1:
        return False
    return has_sizes_from_values(node.target, node.args, _dtype)


def _lengths(node: fx.Node) -> Sequence[fx.Node]:
    """Return what decides how large the result of a node is by its own size."""
    first = node.args[0] if name_of(node) in _AS_LARGE else None
    return [first] if isinstance(first, fx.Node) else node.all_input_nodes


def _dtype(argument: object) -> torch.dtype | None:
    form = argument.meta.get("val") if isinstance(argument, fx.Node) else None
    return form.dtype if isinstance(form, torch.Tensor) else None
