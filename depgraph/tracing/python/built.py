"""Tensors that are made of lists in which there are tensors, or numbers read off tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from depgraph.tracing.python.numbers import is_symbolic, plain

#: Functions that make a tensor of what they are given: which argument that is, and its names.
BUILDERS: dict[Any, tuple[int, tuple[str, ...]]] = {
    torch.tensor: (0, ("data",)),
    torch.as_tensor: (0, ("data",)),
    torch.asarray: (0, ("obj",)),
    Tensor.new_tensor: (1, ("data",)),
}


def written_data(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what a tensor is made of, if there are tensors or symbolic numbers in it; else None."""
    place, names = BUILDERS[function]
    data = args[place] if place < len(args) else next((kwargs[name] for name in names if name in kwargs), None)
    if isinstance(data, Tensor):
        return data if function in (torch.tensor, Tensor.new_tensor) else None
    leaves = pytree.tree_leaves(data)
    return data if any(isinstance(leaf, Tensor) or is_symbolic(leaf) for leaf in leaves) else None


def built(data: Any) -> Tensor:
    """Return a tensor of the same elements, stacked."""
    if isinstance(data, Tensor):
        return data.detach().clone()
    if isinstance(data, (list, tuple)):
        parts = [built(item) for item in data]
        kind = torch.empty(0)
        for part in parts:
            kind = kind.to(torch.promote_types(kind.dtype, part.dtype)) if part is not parts[0] else part
        return torch.stack([part.to(kind.dtype) for part in parts]) if parts else torch.empty(0)
    value = plain(data)
    dtype = torch.bool if isinstance(value, bool) else torch.int64 if isinstance(value, int) else torch.float64
    return torch.scalar_tensor(data, dtype=dtype)
