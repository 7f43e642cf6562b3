"""Masking by numbers: which scores count for nothing because something very low was added to them."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from depgraph.rules.values import Value, core, together

# How much larger than another an ordinary score may be, as an exponent, before masking by addition can no longer be
# told apart from the scores themselves.
ORDINARY = 64.0


def negligible(added: Tensor, dtype: torch.dtype) -> Tensor:
    """Return where ``exp`` of an ordinary number with this much added is exactly 0, in the precision computed in."""
    smallest = torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).smallest_normal
    # Subnormal numbers go some 2^23 or 2^52 below the smallest normal one.
    return added < math.log(smallest) - 40 - ORDINARY


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
