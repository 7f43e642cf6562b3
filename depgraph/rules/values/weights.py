"""Which elements of a group have a weight in a softmax, whatever in their intervals the scores are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Weights:
    """What is certain of the weights of groups of scores along an axis; all masks, which broadcast to the scores.

    Attributes
    ----------
    gone : Tensor
        Elements whose weight is exactly 0: they are hidden, or so much lower than one that is not that ``exp``
        vanishes.
    lost : Tensor
        Elements that are not gone, but too small to make a difference to any weight but their own.
    single : Tensor
        Groups with one element at most that is not gone.
    visible : Tensor
        Groups with an element that is certainly not hidden.
    hidden : Tensor
        Groups all of whose elements are hidden.
    spoilt, broken : Tensor
        Groups with an element that may be, and one that is, NaN or +inf.
    """

    gone: Tensor
    lost: Tensor
    single: Tensor
    visible: Tensor
    hidden: Tensor
    spoilt: Tensor
    broken: Tensor

    @property
    def sure(self) -> Tensor:
        """Groups whose weights are certain: one element has all of it, or there are none."""
        return (self.single & self.visible & ~self.spoilt) | (self.hidden & ~self.spoilt) | self.broken

    @property
    def doubtful(self) -> Tensor:
        """Groups that may be NaN, or not."""
        return (self.spoilt | ~(self.visible | self.hidden)) & ~self.broken


def weigh(low: Tensor, high: Tensor, nan: Tensor, axis: int, size: int, dtype: torch.dtype) -> Weights:
    """Return what is certain of softmax weights.

    Parameters
    ----------
    low, high, nan : tensor
        Intervals of the scores and where they may be NaN. Of length 1 or ``size`` along the axis.
    axis, size : int
        Of the groups.
    dtype : torch.dtype
        That the softmax is of. Those narrower than float32 are computed in float32.
    """
    info = torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32)
    bad = nan | low.isnan() | (high == math.inf)
    broken = (low.isnan() | (low == math.inf)).any(axis, keepdim=True)
    low, high = (end.double().nan_to_num(math.nan, math.inf, -math.inf) for end in (low, high))
    low = torch.where(low.isnan(), -math.inf, low)
    top = low.amax(axis, keepdim=True)
    visible = top > -math.inf
    # Below the smallest normal number, subnormal ones go on for 2^23 or 2^52; what two infinities leave is no number.
    below = high - top
    gone = ((high == -math.inf) | (visible & (below < math.log(info.smallest_normal) - 40))) & ~bad
    lost = visible & (below < 2 * math.log(info.eps) - math.log(size)) & ~gone & ~bad
    left = size - gone.sum(axis, keepdim=True) * (size // gone.shape[axis])
    hidden = (high == -math.inf).all(axis, keepdim=True)
    return Weights(gone, lost, left <= 1, visible, hidden, bad.any(axis, keepdim=True), broken)
