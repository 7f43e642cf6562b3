"""Positions as bundles of elements: one row a position, everything at that position side by side."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

#: Differences of so many units in the last place of the largest number at a position are taken for rounding.
_ROUNDING = 64
_EXACT = (torch.float32, torch.float64, torch.complex64, torch.complex128)


def rows(tensor: Tensor, axes: Sequence[int]) -> Tensor:
    """Return a (positions, elements) tensor: the given axes, row-major in their order, and everything else."""
    table = _leading(tensor, axes).unsqueeze(len(axes)).flatten(len(axes))
    return table.unsqueeze(0).flatten(0, len(axes))


def replaced(tensor: Tensor, axes: Sequence[int], position: Sequence[int], block: Tensor) -> Tensor:
    """Return a copy with other elements at one position."""
    result = tensor.clone(memory_format=torch.contiguous_format)
    _leading(result, axes)[tuple(position)] = block
    return result


def block(tensor: Tensor, axes: Sequence[int], position: Sequence[int]) -> Tensor:
    """Return the elements at one position."""
    return _leading(tensor, axes)[tuple(position)]


def changed(before: Tensor, after: Tensor, axes: Sequence[int], *, exactly: bool = False) -> Tensor:
    """Return at which positions two tensors differ by more than rounding; two elements that are no number are equal.

    Differing ``exactly`` is to differ in any bit.
    """
    old, new = rows(before, axes), rows(after, axes)
    differs = old != new
    if not (old.is_floating_point() or old.is_complex()):
        return differs.any(1)
    differs &= ~(old.isnan() & new.isnan())
    if old.dtype in _EXACT and differs.shape[1] and not exactly:
        finite = old.isfinite() & new.isfinite()
        size = torch.where(finite, torch.maximum(old.abs(), new.abs()), 0).amax(1, keepdim=True)
        differs &= ~(finite & ((new - old).abs() <= rounding(old.dtype) * size))
    return differs.any(1)


def undefined(tensor: Tensor, axes: Sequence[int]) -> Tensor:
    """Return at which positions nothing is a number: what changes there does not show."""
    table = rows(tensor, axes)
    return table.isnan().all(1) & bool(table.shape[1])


def not_finite(tensors: Sequence[Tensor]) -> int:
    """Return how many elements are infinite or no number."""
    return sum(int((~tensor.isfinite()).sum()) for tensor in tensors)


def rounding(dtype: torch.dtype) -> float:
    """Return the relative difference up to which two numbers may be the same, rounded differently."""
    return _ROUNDING * torch.finfo(dtype).eps


def _leading(tensor: Tensor, axes: Sequence[int]) -> Tensor:
    return tensor.permute((*axes, *(axis for axis in range(tensor.ndim) if axis not in axes)))
