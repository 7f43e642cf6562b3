"""Masking by numbers: which scores count for nothing because something very low was added to them.

That can be told only of unknowns of ordinary size. What an operation makes of numbers that are far from it (a sum over
scores of which some had -1e9 added) may be of any size, and is marked so.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from depgraph.rules.values import KNOWN, Value, core, together

# How much larger than another an ordinary score may be, as an exponent, before masking by addition can no longer be
# told apart from the scores themselves.
ORDINARY = 64.0
# What was added to an unknown settles the unknown's side of things (a maximum, a sign) from here on, if it is no less
# than twice as large as the unknown. The smallest mask in use is -10000, which bfloat16 rounds.
DISTANT = 8192.0


def negligible(added: Tensor, dtype: torch.dtype) -> Tensor:
    """Return where ``exp`` of an ordinary number with this much added is exactly 0, in the precision computed in."""
    smallest = torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).smallest_normal
    # Subnormal numbers go some 2^23 or 2^52 below the smallest normal one.
    return added < math.log(smallest) - 40 - ORDINARY


def far(value: Value) -> Tensor | None:
    """Return where a tensor that is not wholly known may hold numbers that are not of ordinary size; None: nowhere.

    The result broadcasts to the tensor's shape.
    """
    if value.known is None or value.is_known or not value.dtype.is_floating_point:
        return None
    mask = ~(core(value.known).abs() < ORDINARY)
    return mask if bool(mask.any()) else None


def moderate(value: Value) -> bool:
    """Tell whether all that is known of a tensor, or of what was added to it, is of ordinary size."""
    if value.known is None or value.known.dtype == torch.bool:
        return True
    return bool((core(value.known).abs() < ORDINARY).all())


def of_any_size(value: Value, where: Tensor | None = None, first: int = 0) -> Value:
    """Return a tensor with its unknowns marked as being of any size.

    Parameters
    ----------
    where : bool tensor, optional
        Where they are; everywhere by default.
    first : int
        The lowest code to be marked.
    """
    if not value.dtype.is_floating_point:
        return value
    where = torch.ones((), dtype=torch.bool) if where is None else where
    codes, known, where = together(value.codes, value.values(), where)
    marked = where & (codes != KNOWN) & (codes >= first)
    if not bool(marked.any()):
        return value
    return value.over(value.codes, torch.where(marked, math.nan, known).expand(value.shape))


def ordinary(value: Value) -> Tensor:
    """Return the values, unknowns of any size taken for ordinary ones."""
    if value.known is None or value.is_known or not value.dtype.is_floating_point:
        return value.values()
    codes, known = together(value.codes, value.known)
    unsized = known.isnan() & (codes != KNOWN)
    return torch.where(unsized, 0, known).expand(value.shape) if bool(unsized.any()) else value.known


def shifted(codes: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Turn unknowns with an infinity added into that infinity."""
    thin_codes, thin = together(codes, values)
    infinite = (thin_codes != KNOWN) & thin.isinf()
    if bool(infinite.any()):
        codes = torch.where(infinite, KNOWN, thin_codes).expand(codes.shape)
    return codes, values


def masked_out(scores: Value, axis: int) -> Tensor | None:
    """Return where a softmax along the axis gives a weight of exactly 0 whatever the unknown scores; None for nowhere.

    A score's known part is compared with the largest known part of its group; ``exp`` of the difference must vanish in
    the precision that softmax is computed in even if the unknown parts differ by `ORDINARY`.
    """
    if scores.known is None:
        return None
    codes, known = together(scores.codes, scores.known)
    if codes.shape[axis] == 1 and scores.shape[axis] > 1:
        return None
    known = known.to(torch.float64)
    gone = negligible(known - known.amax(axis, keepdim=True), scores.dtype) | (known == float("-inf"))
    return gone.expand(scores.shape) if bool(gone.any()) else None


def alone(gone: Tensor | None, shape: torch.Size, axis: int) -> Tensor | None:
    """Return, for each group, whether at most one element is left; None where that is so nowhere."""
    if shape[axis] <= 1:
        return torch.ones([1] * len(shape), dtype=torch.bool)
    if gone is None:
        return None
    thin = core(gone)
    left = shape[axis] - thin.sum(axis, keepdim=True) * (shape[axis] // thin.shape[axis])
    single = left <= 1
    return single if bool(single.any()) else None
