"""Which tensors of a graph have sizes that values decide."""

from __future__ import annotations

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
