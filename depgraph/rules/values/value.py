"""What the rules see of a tensor: a code an element, and the interval in which each element's value lies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import torch
from torch import Tensor

from depgraph.rules.values.codes import FIRST, GENERIC, KNOWN, core, together, uniform

# How far from 0 an unknown floating-point number may be. The smallest mask in use is -10000.
ORDINARY = 4096.0

# Dtypes whose numbers can be compared and added, which an interval needs.
RANGED = frozenset((torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64))
RANGED |= frozenset((torch.float16, torch.bfloat16, torch.float32, torch.float64))


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor as seen by the rules.

    Attributes
    ----------
    codes : int64 tensor
        One code an element. Axes along which nothing differs have stride 0: a (B, T, D) activation costs T codes.
    low : tensor or None
        Without ``high``, the values of KNOWN elements, None standing for zeros; all others are in the usual range of
        their dtype. With ``high``, the least that each element may be, NaN where it is known to be NaN.
    dtype : torch.dtype
        Of the tensor itself.
    high : tensor or None
        The largest that each element may be. An element is KNOWN just where both are the same and ``nan`` is False.
    nan : bool tensor or None
        Where an element may be NaN besides; None for nowhere.
    """

    codes: Tensor
    low: Tensor | None
    dtype: torch.dtype
    high: Tensor | None = None
    nan: Tensor | None = None

    @property
    def shape(self) -> torch.Size:
        """Shape of the tensor."""
        return self.codes.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.codes.ndim

    @cached_property
    def is_known(self) -> bool:
        """Whether every element's value is known."""
        return not self.codes.numel() or int(core(self.codes).max()) == KNOWN

    @cached_property
    def any_known(self) -> bool:
        """Whether some element's value is known."""
        return bool(self.codes.numel()) and int(core(self.codes).min()) == KNOWN

    @cached_property
    def is_constant(self) -> bool:
        """Whether no element comes from a node."""
        return not self.codes.numel() or int(core(self.codes).max()) < FIRST

    @property
    def plain(self) -> bool:
        """Whether nothing at all is known of the values: all are in the usual range."""
        return self.high is None and not self.any_known

    def values(self) -> Tensor:
        """Return the values of KNOWN elements, anything at all others."""
        return torch.zeros((), dtype=self.dtype).expand(self.shape) if self.low is None else self.low

    @cached_property
    def bounds(self) -> tuple[Tensor, Tensor]:
        """Least and largest that each element may be, both of the tensor's shape."""
        if self.high is not None and self.low is not None:
            return self.low, self.high
        if self.is_known:
            return self.values(), self.values()
        low, high = usual(self.dtype)
        if not self.any_known:
            return low.expand(self.shape), high.expand(self.shape)
        codes, values = together(self.codes, self.values())
        sure = codes == KNOWN
        return torch.where(sure, values, low).expand(self.shape), torch.where(sure, values, high).expand(self.shape)

    @cached_property
    def doubtful(self) -> Tensor:
        """Where an element may be NaN, for sure or not; broadcasts to the tensor's shape."""
        found = torch.zeros((), dtype=torch.bool) if self.nan is None else core(self.nan)
        if self.low is not None and (self.dtype.is_floating_point or self.dtype.is_complex):
            found, missing = together(found, core(self.low).isnan())
            found = found | missing
        return found

    @cached_property
    def zero(self) -> Tensor | None:
        """Mask of the elements known to be zero; None where there is none."""
        if not self.any_known:
            return None
        mask = self.codes == KNOWN
        if self.low is not None:
            codes, low = together(self.codes, self.low)
            mask = ((codes == KNOWN) & (low == 0)).expand(self.shape)
        return mask if bool(core(mask).any()) else None

    def stored(self) -> tuple[Tensor, ...]:
        """Return the tensors that it consists of."""
        return tuple(t for t in (self.codes, self.low, self.high, self.nan) if t is not None)

    def through(self, step: Callable[[Tensor], Tensor], codes: Callable[[Tensor], Tensor] | None = None) -> Value:
        """Return what an operation that only moves elements makes of it.

        Parameters
        ----------
        step : callable
            Does to a tensor what the operation does to the data.
        codes : callable, optional
            Does so to the codes, where that is not ``step``.
        """
        low, high, nan = (None if t is None else step(t) for t in (self.low, self.high, self.nan))
        return Value((codes or step)(self.codes), low, self.dtype, high, nan)

    def over(self, codes: Tensor, values: Tensor | None = None) -> Value:
        """Return a value of the same dtype with other codes and known values."""
        return Value(codes, values, self.dtype)


@cache
def usual(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return the range of an unknown number: ordinary where it is floating-point, else all that its dtype holds."""
    if dtype == torch.bool:
        return torch.tensor(False), torch.tensor(True)
    if dtype.is_complex or dtype.is_floating_point:
        top = ORDINARY if dtype.is_complex else min(ORDINARY, torch.finfo(dtype).max)
        return torch.tensor(-top, dtype=dtype), torch.tensor(top, dtype=dtype)
    return widest(dtype)


@cache
def widest(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return the least and the largest finite number of a real dtype."""
    if dtype == torch.bool:
        return torch.tensor(False), torch.tensor(True)
    info = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    return torch.tensor(info.min, dtype=dtype), torch.tensor(info.max, dtype=dtype)


def known(values: Tensor) -> Value:
    """Return a tensor whose every value is known."""
    return Value(uniform(KNOWN, values.shape), values, values.dtype)


def generic(shape: Sequence[int], dtype: torch.dtype) -> Value:
    """Return a constant of which nothing is known."""
    return Value(uniform(GENERIC, shape), None, dtype)


def swap(tree: Any, change: Any) -> Any:
    """Apply a function to every `Value` in nested lists, tuples and dicts of arguments."""
    if isinstance(tree, Value):
        return change(tree)
    if isinstance(tree, (list, tuple)):
        return type(tree)(swap(item, change) for item in tree)
    if isinstance(tree, dict):
        return {key: swap(item, change) for key, item in tree.items()}
    return tree
