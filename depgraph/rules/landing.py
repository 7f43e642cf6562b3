"""What stands at places that are known to have been written to, one or several times.

Reads: overwriting    nothing: the last one written stands
       accumulation   out[p] ← self[p] and all that lands on p; nothing where what is known of one settles the result

The ends of intervals are accumulated like the numbers themselves: a maximum over a base of -inf has nothing left of it.
In a product a known 0 makes all of it 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from depgraph.rules.call import Call, Read
from depgraph.rules.movement import contents
from depgraph.rules.values import KNOWN, ORDINARY, RANGED, Value, compress, core, widest
from depgraph.rules.values.intervals import NEARLY, STRETCH, bounded, largest, same, size, stretch, wild, within

#: What PyTorch's operators call their ways to accumulate, as ``scatter_reduce`` does.
WAYS = {"add": "sum", "multiply": "prod"}


def spot_of(places: list[Tensor], shape: torch.Size) -> Tensor:
    """Return places, given as one index tensor an axis, as numbers in row-major order."""
    flat = torch.zeros_like(places[0])
    for axis, spot in enumerate(places):
        flat = flat * shape[axis] + torch.where(spot < 0, spot + shape[axis], spot)
    return flat.reshape(-1)


def overwrite(call: Call, value: Value, spots: Tensor, data: Value) -> Value:
    """Write one after the other: the last one stands."""

    def written(base: Tensor, given: Tensor) -> Tensor:
        flat = base.reshape(-1).clone()
        flat[spots] = given
        return flat.reshape(value.shape)

    low, high, nan = (part and written(part(value), part(data)) for part in contents([value, data], call.dtype))
    return Value(compress(written(value.codes, data.codes)), low, call.dtype, high, nan)


def accumulate(call: Call, value: Value, spots: Tensor, data: Value, how: str, keeps: bool) -> Value:
    """Accumulate in the given way; ``keeps`` tells whether what stood there before counts."""
    shape, how = value.shape, WAYS.get(how, how)
    hit = torch.zeros(math.prod(shape), dtype=torch.bool)
    hit[spots] = True
    hit = hit.reshape(shape)
    own = value.codes if keeps else torch.where(hit, KNOWN, value.codes)
    order = arrivals(math.prod(shape), spots).unflatten(0, shape) if value.ndim else arrivals(1, spots)[0]
    landed = torch.cat([data.codes, torch.tensor([KNOWN])])[order]
    if (value.plain and data.plain) or not {call.dtype, value.dtype, data.dtype} <= RANGED:
        mixed = call.nodes(shape, Read(own), Read(landed, 1))
        return Value(compress(torch.where(hit, mixed, value.codes)), None, call.dtype)

    def gathered(part: Callable[[Value], Tensor], way: str) -> Tensor:
        parts = [part(v).expand(v.shape).reshape(-1) for v in (value, data)]
        return joined(parts[0], spots, parts[1], way, keeps).reshape(shape)

    unknown = gathered(lambda v: (core(v.codes) != KNOWN).long(), "amax") > 0
    doubt = gathered(lambda v: v.doubtful.long(), "amax") > 0
    low = gathered(lambda v: v.bounds[0].to(call.dtype), how)
    high = gathered(lambda v: v.bounds[1].to(call.dtype), how)
    if how == "prod":
        zero = (gathered(lambda v: ((v.codes != KNOWN) | (v.values() != 0)).long(), "amin") == 0) & ~doubt
        zero = zero & all(wild(v) is None for v in (value, data))
        limit = bound(call.dtype, all(stretch(v) <= 2 for v in (value, data)) and small(value) and small(data))
        low, high = (torch.where(unknown, end, part) for end, part in ((-limit, low), (limit, high)))
        low, high = (torch.where(zero, torch.zeros((), dtype=call.dtype), part) for part in (low, high))
    elif call.dtype.is_floating_point and how in ("sum", "mean"):
        sizes = gathered(size, "amax")
        slack = torch.where(unknown & low.isfinite() & high.isfinite(), sizes * torch.finfo(call.dtype).eps * 64, 0.0)
        low, high = within((low.double() - slack, high.double() + slack), ORDINARY, unknown & (sizes <= NEARLY))
    elif not call.dtype.is_floating_point and how in ("sum", "mean"):
        exact = gathered(lambda v: size(v), "sum")
        over = unknown & (exact >= float(widest(call.dtype)[1]))
        low, high = (torch.where(over, end, part) for end, part in zip(widest(call.dtype), (low, high), strict=True))
    if call.dtype.is_floating_point:  # infinities of both signs leave no number
        lost = (low.isnan() | high.isnan()) & unknown
        low, high, doubt = torch.where(lost, -math.inf, low), torch.where(lost, math.inf, high), doubt | lost
    doubt = doubt & unknown
    settled = same(low, high) & ~doubt
    dead, idle = settled.unsqueeze(-1).expand(order.shape), settled
    if how in ("amax", "amin"):
        mine, given = (out_of_reach(v, how, low, high) for v in (value, data.through(lambda t: t.expand(spots.shape))))
        idle = settled | mine(slice(None))
        dead = dead | torch.cat([given(spots), torch.tensor([False])])[order]
    mixed = call.nodes(shape, Read(own, 0, idle), Read(landed, 1, dead))
    # Where nothing lands, the element stays what it was.
    codes = torch.where(hit, mixed, value.codes)
    low, high = (torch.where(hit, e, v.to(call.dtype)) for e, v in zip((low, high), value.bounds, strict=True))
    doubt = torch.where(hit, doubt, value.doubtful & (value.codes != KNOWN))
    return bounded(codes, low, high, call.dtype, doubt)


def out_of_reach(value: Value, how: str, low: Tensor, high: Tensor) -> Callable[[Any], Tensor]:
    """Return what tells, of elements that land at some places, which are certainly not the result there."""

    def lost(places: Any) -> Tensor:
        least, most = (end.reshape(-1)[places] for end in (low, high))
        ends = [end.reshape(-1) for end in value.bounds]
        beaten = ends[1] <= least if how == "amax" else ends[0] >= most
        beaten = beaten & (value.codes.reshape(-1) != KNOWN) & ~value.doubtful.expand(value.shape).reshape(-1)
        return beaten.reshape(value.shape)

    return lost


def small(value: Value) -> bool:
    """Tell whether no known factor is so large that it stretches."""
    return (
        not value.any_known
        or largest(
            value.over(
                torch.where(value.codes == KNOWN, value.codes, KNOWN),
                torch.where(value.codes == KNOWN, value.values(), 0),
            )
        )
        <= STRETCH
    )


def bound(dtype: torch.dtype, ordinary: bool) -> Tensor:
    """Return the largest size of a product."""
    return torch.tensor(ORDINARY, dtype=dtype) if ordinary and dtype.is_floating_point else widest(dtype)[1]


def joined(base: Tensor, spots: Tensor, given: Tensor, how: str, keeps: bool) -> Tensor:
    """Accumulate numbers."""
    return base.scatter_reduce(0, spots, given, how, include_self=keeps)


def arrivals(count: int, spots: Tensor) -> Tensor:
    """Return, for each of so many places, the numbers of those that land there, -1 where there are no more."""
    order = torch.argsort(spots, stable=True)
    counts = torch.bincount(spots, minlength=count)
    rank = torch.arange(len(spots)) - (counts.cumsum(0) - counts)[spots[order]]
    found = torch.full((count, max(1, int(counts.max()) if len(spots) else 1)), -1)
    found[spots[order], rank] = order
    return found
