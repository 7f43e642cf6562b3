"""Reading a tensor at a place that is itself read off a tensor: a symbolic number, or a tensor with one integer.

``tensor[n]`` makes a plain integer of ``n`` before PyTorch dispatches anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from depgraph.tracing.python.numbers import settled
from depgraph.tracing.python.operators import number_of


def getitem(tensor: Tensor, index: Any, take: Callable[[Tensor, int, Any], Tensor]) -> Tensor:
    """Return ``tensor[index]``, with places kept open among integers, slices, ``None`` and ``...``.

    Where there are tensors, lists or bools in the index, its symbolic integers are settled, as PyTorch does.

    Parameters
    ----------
    tensor : torch.Tensor
    index
    take : callable
        Returns what a tensor holds, along an axis counted from the first, at a place.
    """
    parts = list(index) if isinstance(index, tuple) else [index]
    if not all(_is_basic(part) or _is_place(part) for part in parts):
        return tensor[tuple(map(settled, parts))]
    gap = next((place for place, part in enumerate(parts) if part is Ellipsis), len(parts))
    result = tensor[tuple(slice(None) if _is_place(part) else part for part in parts)]
    # Axes after the gap are counted from the end. A selected axis goes away: the count stays where it is.
    axis = -1
    for part in reversed(parts[gap + 1 :]):
        if _is_place(part):
            result = take(result, result.ndim + axis, part)
        elif not isinstance(part, int):
            axis -= 1
    axis = 0
    for part in parts[:gap]:
        if _is_place(part):
            result = take(result, axis, part)
        elif not isinstance(part, int):
            axis += 1
    return result


def has_place(index: Any) -> bool:
    """Return whether there is a place in an index that was read off a tensor."""
    return any(map(_is_place, index)) if isinstance(index, tuple) else _is_place(index)


def _is_place(part: object) -> bool:
    if isinstance(part, Tensor):
        return not part.ndim and part.dtype in (torch.int64, torch.int32, torch.int16, torch.int8)
    number = number_of(part)
    return number is not None and number.is_int()


def _is_basic(part: object) -> bool:
    return part is None or part is Ellipsis or (isinstance(part, (int, slice)) and not isinstance(part, bool))
