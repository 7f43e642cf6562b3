"""Operations that cannot be followed without their values, carried through an export unopened.

How many rows ``x[mask]`` has depends on values, and so does what ``pack_padded_sequence`` returns: without data their
shapes are unknown. Once a model has run on its example inputs the shapes are known. Such a node is replaced by a call
of a stand-in operator that knows nothing but those shapes, and put back when the graph has been exported.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import fx
from torch.utils import _pytree as pytree

ITEM = torch.ops.aten.item.default
_UNTAGGED = {
    torch.ops.aten.where.default,
    torch.ops.aten.unique_dim_consecutive.default,
    torch.ops.aten._pack_padded_sequence.default,
}
_FORMS: dict[int, list[torch.Tensor]] = {}
_KEYS = itertools.count()  # never used twice: results of operators are remembered by their arguments


# Tagged as random, lest PyTorch runs it where all that it reads is constant.
@torch.library.custom_op("depgraph::stand_in", mutates_args=(), tags=(torch.Tag.nondeterministic_seeded,))
def stand_in(key: int, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return tensors of the shapes noted under a key. Never run on data."""
    raise NotImplementedError


@stand_in.register_fake
def _(key: int, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    return [
        torch.empty_strided(form.shape, form.stride(), dtype=form.dtype, device=form.device) for form in _FORMS[key]
    ]


class StandIns:
    """The nodes of one graph for which the stand-in was called."""

    def __init__(self) -> None:
        self.originals: dict[int, fx.Node] = {}

    def call(self, node: fx.Node, values: Callable[[fx.Node], Any]) -> Any:
        """Call the stand-in where a node would have run, on what it reads, and return what has its form."""
        key = next(_KEYS)
        self.originals[key] = node
        forms, structure = pytree.tree_flatten(node.meta["val"])
        _FORMS[key] = forms
        return pytree.tree_unflatten(stand_in(key, [values(read) for read in _reads(node)]), structure)

    def put_back(self, module: fx.GraphModule) -> None:
        """Replace the calls of the stand-in in an exported graph by the original operations."""
        graph = module.graph
        for call in graph.find_nodes(op="call_function", target=torch.ops.depgraph.stand_in.default):
            original = self.originals[call.args[0]]
            _FORMS.pop(call.args[0])
            tensors = dict(zip(_reads(original), call.args[1], strict=True))
            with graph.inserting_before(call):
                for number in filter(is_number, original.all_input_nodes):
                    tensors[number] = graph.call_function(ITEM, (tensors[number.all_input_nodes[0]],))
                    tensors[number].meta = {**call.meta, "val": number.meta["val"]}
                args, kwargs = fx.map_arg((original.args, original.kwargs), tensors.__getitem__)
                node = graph.call_function(cast("Callable[..., Any]", original.target), args, kwargs)
            node.meta = {**call.meta, "val": call.meta["val"] if _several(original) else call.meta["val"][0]}
            for item in list(call.users):
                if _several(original):
                    item.args = (node, item.args[1])
                else:
                    item.replace_all_uses_with(node)
                    graph.erase_node(item)
            graph.erase_node(call)


def is_number(node: fx.Node) -> bool:
    """Return whether a node is a number read off a tensor."""
    return node.target is ITEM


def _reads(node: fx.Node) -> list[fx.Node]:
    reads: dict[fx.Node, None] = {}
    for read in node.all_input_nodes:
        reads.setdefault(read.all_input_nodes[0] if is_number(read) else read)
    return list(reads)


def _several(node: fx.Node) -> bool:
    return not isinstance(node.meta["val"], torch.Tensor)


def has_sizes_from_values(node: fx.Node) -> bool:
    """Return whether the shape of what a node returns depends on the values it reads."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return False
    if target is torch.ops.aten.index.Tensor:
        indices: Any = node.args[1]
        return any(isinstance(i, fx.Node) and i.meta["val"].dtype in (torch.bool, torch.uint8) for i in indices)
    return torch.Tag.dynamic_output_shape in target.tags or target in _UNTAGGED


def can_stand_in(node: fx.Node) -> bool:
    """Return whether a node returns fresh tensors and writes to none, so that nothing is lost by not opening it."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or target._schema.is_mutable:
        return False
    returned = pytree.tree_leaves(node.meta.get("val"))
    return (
        bool(returned)
        and is_static(returned)
        and all(isinstance(value, torch.Tensor) for value in returned)
        and all(result.alias_info is None for result in target._schema.returns)
    )


def is_static(value: Any) -> bool:
    """Return whether every size in a nest of values is known."""
    return not any(
        isinstance(size, torch.SymInt)
        for leaf in pytree.tree_leaves(value)
        for size in (leaf.shape if isinstance(leaf, torch.Tensor) else (leaf,))
    )
