"""Where in its interval an argument of an elementwise operator is tried."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from depgraph.rules.values.codes import KNOWN, core, together
from depgraph.rules.values.value import Value, widest

# Elements with the same intervals are looked at once, from so many on.
MANY = 256


@dataclass(frozen=True)
class Span:
    """The interval of one argument, thin, where it may be NaN, and where it is a single number."""

    low: Tensor
    high: Tensor
    nan: Tensor
    single: Tensor

    @property
    def finite(self) -> Tensor:
        """Where neither end is infinite and the argument is not NaN."""
        return self.low.isfinite() & self.high.isfinite() & ~self.nan if self.low.is_floating_point() else ~self.nan

    @property
    def size(self) -> Tensor:
        """Largest size."""
        return torch.maximum(self.low.double().abs(), self.high.double().abs())


def spans_of(tensors: list[Value], shape: torch.Size, ranged: bool) -> tuple[list[Span], Tensor | None]:
    """Return the intervals of arguments that are broadcast to a shape.

    Every axis along which none differs is cut, and what is the same at several places stands there once: then the
    number of each place's own is returned as well. A tensor without axes keeps having none, since it does not decide
    the dtype. What has no intervals (complex numbers) has its known values at both ends.
    """
    parts = []
    for t in tensors:
        low, high = t.bounds if ranged else (t.values(), t.values())
        parts += [low, high, t.doubtful.expand(t.shape), (core(t.codes) == KNOWN).expand(t.shape)]
    thin = together(*parts, torch.empty(()).expand(shape))[:-1]
    places = None
    if ranged and thin[0].numel() >= MANY:
        thin, places = _distinct_places(thin)
    spans = []
    for k, t in enumerate(tensors):
        given = thin[4 * k : 4 * k + 4]
        spans.append(Span(*(p[(0,) * p.ndim] if t.ndim == 0 and len(shape) else p for p in given)))
    return spans, places


def _distinct_places(parts: list[Tensor]) -> tuple[list[Tensor], Tensor | None]:
    """Return what differs, one after the other, and the number of each place's; as they were, where most differ."""
    key = torch.zeros((1,) * parts[0].ndim, dtype=torch.int64)
    for part in map(core, parts):
        if part.numel() > 1:
            bits = part.double().view(torch.int64) if part.is_floating_point() else part.long()
            key = (key ^ bits) * 0x9E3779B97F4A7C1 + (bits >> 29)
    key = key.expand(parts[0].shape)
    # Mostly there are but a few, of which a look at some places shows all.
    found = torch.unique(key.flatten()[:: key.numel() // MANY | 1])
    places = torch.searchsorted(found, key).clamp(max=len(found) - 1)
    if not torch.equal(found[places], key):
        found, places = torch.unique(key, return_inverse=True)
    if len(found) * 4 > key.numel():
        return parts, None
    one = torch.empty(len(found), dtype=torch.int64).scatter_(0, places.flatten(), torch.arange(key.numel()))
    at = torch.unravel_index(one, key.shape)
    return [part[at] for part in parts], places


def numbers_in(tree: Any) -> Iterator[float]:
    """Yield the numbers among arguments."""
    if isinstance(tree, dict):
        tree = tuple(tree.values())
    if isinstance(tree, (list, tuple)):
        for item in tree:
            yield from numbers_in(item)
    elif isinstance(tree, (int, float)) and not math.isnan(tree):
        yield float(tree)


def samples_of(span: Span, turns: list[float], numbers: list[float]) -> list[Tensor]:
    """Return the numbers of an interval at which an operator is tried.

    Parameters
    ----------
    turns : list of float
        Where the operator turns.
    numbers : list of float
        Numbers among the arguments: what is next to them is tried as well, since an operator may jump there.
    """
    if bool(span.single.all()):
        return [span.low]
    low, high, dtype = span.low, span.high, span.low.dtype
    found = [low, high]
    if dtype != torch.bool:
        beside = [p for n in numbers for k in (n, -n) for p in neighbours(k, dtype)]
        found += [p.clamp(low, high) for p in (*number(turns, dtype), *beside)]
    if dtype.is_floating_point:
        # Where all others are special, one that is not shows that another argument counts: 0 and 1 to any power.
        found.append((0.63 * low + 0.37 * high).nan_to_num(0.0).clamp(low, high))
        zero = torch.zeros((), dtype=dtype)
        found += [torch.where((low < 0) & (high >= 0), -zero, low), torch.where((low <= 0) & (high > 0), zero, low)]
        if bool((span.nan & ~span.single).any()):
            found.append(torch.where(span.nan, math.nan, low))
    if any(s.numel() != 1 for s in found):
        return found
    return list({(v, math.copysign(1.0, v)) if v == v else "nan": s for s in found for v in (float(s),)}.values())


def number(given: list[float], dtype: torch.dtype) -> list[Tensor]:
    """Return numbers in a dtype, those left out that it does not hold."""
    least, most = (float(end) for end in widest(dtype))
    return [
        torch.tensor(k if dtype.is_floating_point else math.floor(k), dtype=dtype)
        for k in given
        if least <= k <= most and (dtype.is_floating_point or abs(k) < 2**62)
    ]


def neighbours(given: float, dtype: torch.dtype) -> list[Tensor]:
    """Return a number in a dtype, and the next ones on both sides."""
    if not dtype.is_floating_point:
        return number([given - 1, given, given + 1], dtype)
    ends = (torch.tensor(end, dtype=dtype) for end in (-math.inf, math.inf))
    return [p for k in number([given], dtype) for p in (k, *(torch.nextafter(k, end) for end in ends))]
