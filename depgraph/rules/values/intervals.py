"""Intervals: making values of them, and what rules ask of them.

An interval is held in the dtype of its tensor. Where a result may run over what that dtype holds, integers widen to all
of it, and floating-point numbers to its largest finite ones: an overflow is nothing that a model computes.
"""

from __future__ import annotations

import torch
from torch import Tensor

from depgraph.rules.values.codes import GENERIC, KNOWN, compress, core, together
from depgraph.rules.values.value import ORDINARY, RANGED, Value, usual, widest

# Up to here an interval counts as one of ordinary numbers: with a known number of ordinary size added, or doubled.
NEARLY = 2 * ORDINARY
# A known factor up to this size, or a divisor down to its reciprocal, makes an ordinary number of two ordinary ones.
STRETCH = 128.0


def same(one: Tensor, other: Tensor) -> Tensor:
    """Return where numbers are the same, NaN like any other."""
    equal = one == other
    if one.is_floating_point() and other.is_floating_point():
        equal = equal | (one.isnan() & other.isnan())
    return equal


def bounded(codes: Tensor, low: Tensor, high: Tensor, dtype: torch.dtype, nan: Tensor | None = None) -> Value:
    """Return a value of that range, KNOWN just where that is one number.

    Parameters
    ----------
    codes : tensor
        Of the shape of the result.
    low, high : tensor
        Of any dtype; what is finite stays so in ``dtype``. They broadcast to the shape, as does ``nan``.
    """
    shape = codes.shape
    nan = torch.zeros((), dtype=torch.bool) if nan is None else nan
    codes, low, high, nan = together(codes, *(t.expand(shape) for t in (fitted(low, dtype), fitted(high, dtype), nan)))
    one = same(low, high) & ~nan
    if bool((one != (codes == KNOWN)).any()):
        codes = compress(torch.where(one, KNOWN, torch.where(codes == KNOWN, GENERIC, codes)))
        codes, one = torch.broadcast_tensors(codes, one)
    codes, doubt = codes.expand(shape), bool(nan.any())
    least, most = usual(dtype)
    if not doubt and bool((one | ((low == least) & (high == most))).all()):
        values = torch.where(one, low, torch.zeros((), dtype=dtype))
        return Value(codes, values.expand(shape) if bool((values != 0).any()) else None, dtype)
    return Value(codes, low.expand(shape), dtype, high.expand(shape), nan.expand(shape) if doubt else None)


def fitted(numbers: Tensor, dtype: torch.dtype) -> Tensor:
    """Return ends of intervals in a dtype: finite ones as the largest that it holds, where they are beyond."""
    if numbers.dtype == dtype or dtype == torch.bool:
        return numbers.to(dtype)
    least, most = widest(dtype)
    if dtype.is_floating_point:
        cast = numbers.to(dtype)
        return torch.where(cast.isinf() & ~numbers.isinf(), torch.where(numbers > 0, most, least), cast)
    if not numbers.is_floating_point():
        return numbers.to(dtype)  # whoever has integers of another dtype has seen to it that they fit
    inside = (numbers > float(least)) & (numbers < float(most))
    return torch.where(inside, torch.where(inside, numbers, 0).to(dtype), torch.where(numbers > 0, most, least))


def size(value: Value) -> Tensor:
    """Return the largest size of each element, infinite where it is NaN for sure; broadcasts to the tensor's shape."""
    if value.dtype not in RANGED:
        return torch.tensor(float(usual(value.dtype)[1].abs()), dtype=torch.float64)
    low, high = together(*(core(end).double() for end in value.bounds))
    return torch.where(low.isnan(), torch.inf, torch.maximum(low.abs(), high.abs()))


def far(value: Value) -> Tensor | None:
    """Return where an unknown floating-point element may be of more than ordinary size; None for nowhere."""
    if value.plain or value.is_known or not value.dtype.is_floating_point:
        return None
    codes, sizes = together(core(value.codes), size(value))
    found = (codes != KNOWN) & ~(sizes <= NEARLY)
    return found if bool(found.any()) else None


def wild(value: Value) -> Tensor | None:
    """Return where an element, known or not, is NaN, or is or may be infinite; None for nowhere."""
    if value.plain or not value.dtype.is_floating_point:
        return None
    found = ~size(value).isfinite()
    return found if bool(found.any()) else None


def of_any_size(value: Value, where: Tensor | None = None, first: int = 0, nan: bool = False) -> Value:
    """Return a tensor whose unknown elements may be of any size.

    Parameters
    ----------
    where : bool tensor, optional
        Which of them; by default all.
    first : int
        The lowest code of those that may.
    nan : bool
        Whether they may be NaN as well.
    """
    if value.is_known or value.dtype not in RANGED or not value.dtype.is_floating_point:
        return value
    where = torch.ones((), dtype=torch.bool) if where is None else where
    doubt = torch.zeros((), dtype=torch.bool) if value.nan is None else value.nan
    codes, low, high, doubt, where = together(value.codes, *value.bounds, doubt, where.expand(value.shape))
    marked = where & (codes != KNOWN) & (codes >= first)
    if not bool(marked.any()):
        return value
    least, most = widest(value.dtype)
    low, high = torch.where(marked, least, low), torch.where(marked, most, high)
    return bounded(value.codes, low, high, value.dtype, doubt | marked if nan else doubt)


def doubted(value: Value, where: Tensor) -> Value:
    """Return a tensor whose unknown elements may be NaN besides, at some places."""
    if value.dtype not in RANGED or not value.dtype.is_floating_point or not bool(where.any()):
        return value
    where = torch.logical_and(*together(where.expand(value.shape), core(value.codes) != KNOWN))
    return bounded(value.codes, *value.bounds, value.dtype, torch.logical_or(*together(where, value.doubtful)))


def spoilt(result: Value, tensors: list[Value], first: int = 0) -> Value:
    """Mark the unknown elements of a result as being of any size, or NaN, if some of what it was made of is."""
    tensors = [t for t in tensors if t.dtype.is_floating_point]
    if any(wild(t) is not None for t in tensors):
        return of_any_size(result, first=first, nan=True)
    if any(far(t) is not None for t in tensors):
        result = of_any_size(result, first=first)
    if any(t.nan is not None for t in tensors):
        result = doubted(result, core(result.codes) >= first)
    return result


def largest(value: Value) -> float:
    """Return the largest size of any element."""
    return float(size(value).max()) if value.codes.numel() else 0.0


def stretch(value: Value) -> float:
    """Return how many times as large as an ordinary number an element of a tensor may be, 1 at least."""
    if value.plain and (value.dtype.is_floating_point or value.dtype.is_complex):
        return 1.0
    return max(1.0, largest(value) / ORDINARY)


def sized(value: Value, limit: float | Tensor) -> Value:
    """Return a tensor whose unknown elements are no larger than a limit, which may be one for each."""
    if value.dtype not in RANGED or not value.dtype.is_floating_point:
        return value
    codes, values, limit = together(value.codes, value.values(), torch.as_tensor(limit).expand(value.shape))
    low, high = (torch.where(codes == KNOWN, values.double(), end) for end in (-limit.double(), limit.double()))
    return bounded(value.codes, low, high, value.dtype, value.nan)


def within(ends: tuple[Tensor, Tensor], limit: float | Tensor, where: Tensor) -> tuple[Tensor, Tensor]:
    """Cut intervals to a limit on either side, where they reach into it; those that lie beyond stay what they are."""
    low, high = ends
    where = where & (low <= limit) & (high >= -limit)
    limit = torch.as_tensor(limit, dtype=low.dtype)
    return torch.where(where, torch.maximum(low, -limit), low), torch.where(where, torch.minimum(high, limit), high)
