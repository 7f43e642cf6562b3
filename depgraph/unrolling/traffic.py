"""How many bytes a call reads and writes: those of its tensor arguments, and those of its results."""

from __future__ import annotations

from math import prod
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor, fx
from torch.utils import _pytree as pytree


class UncountableError(Exception):
    """Nobody knows what a call costs."""


def traffic(node: fx.Node) -> int:
    """Return how many bytes a call reads and writes.

    What is given twice counts once, and so does an axis along which a tensor is expanded: it is the same memory.
    """
    if node.target is torch.ops.higher_order.cond:  # what its branches move is theirs
        return 0
    if node.target is torch.ops.higher_order.while_loop:
        raise UncountableError("how often while_loop repeats is decided by values, and how much it moves with it")
    read = tensors_of(node.all_input_nodes)
    return sum(map(size_of, [*read, *tensors_of(node)]))


def signature(node: fx.Node) -> str:
    """Return a string that is the same for calls of the same operator on tensors of the same form."""
    order: dict[fx.Node, int] = {}

    def form(read: fx.Node) -> Any:
        return order.setdefault(read, len(order)), pytree.tree_map_only(Tensor, _form, value_of(read))

    arguments = fx.node.map_arg((node.args, node.kwargs), form)
    return f"{node.target} {arguments} {pytree.tree_map_only(Tensor, _form, value_of(node))}"


def _form(tensor: Tensor) -> Any:
    strides = tensor.stride() if tensor.layout == torch.strided else tensor.layout
    return tuple(tensor.shape), strides, tensor.dtype


def tensors_of(nodes: Any) -> list[Tensor]:
    """Return the tensors that nodes give, in nests of any kind, without data."""
    found = [value_of(leaf) for leaf in pytree.tree_leaves(nodes) if isinstance(leaf, fx.Node)]
    return [leaf for leaf in pytree.tree_leaves(found) if isinstance(leaf, Tensor)]


def size_of(tensor: Tensor) -> int:
    """Return how many bytes of memory a tensor takes.

    Raises
    ------
    UncountableError
        Where it is sparse: how many elements it holds is not known without its data.
    """
    if is_sparse(tensor):
        raise UncountableError("how many elements a sparse tensor holds is not known without its data")
    if tensor.layout != torch.strided or not tensor.numel():
        return tensor.numel() * tensor.itemsize
    return tensor.itemsize * prod(size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride)


def is_sparse(tensor: Tensor) -> bool:
    """Tell whether a tensor holds some of its elements only."""
    return str(tensor.layout).startswith("torch.sparse")


def value_of(node: fx.Node) -> Any:
    """Return what is known without data of what a node gives."""
    if "val" in node.meta:
        return node.meta["val"]
    if node.op == "get_attr":
        return attrgetter(str(node.target))(node.graph.owning_module)
    return None
