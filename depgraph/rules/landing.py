"""What stands at places that are known to have been written to, one or several times.

Reads: overwriting    nothing: the last one written stands
       accumulation   out[p] ← self[p] and all that lands on p; nothing where what is known of one settles the result

What was added to unknowns is accumulated like the numbers themselves: a maximum over a base of -inf has nothing left of
it. In a product that has no meaning; a known 0 makes all of it 0.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from depgraph.rules.call import Call, Read
from depgraph.rules.masking import DISTANT, ORDINARY, of_any_size, shifted
from depgraph.rules.values import KNOWN, Value, compress

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
    codes = value.codes.reshape(-1).clone()
    codes[spots] = data.codes
    if value.known is None and data.known is None:
        return Value(compress(codes.reshape(value.shape)), None, call.dtype)
    values = value.values().to(call.dtype).reshape(-1).clone()
    values[spots] = data.values().to(call.dtype)
    return Value(compress(codes.reshape(value.shape)), values.reshape(value.shape), call.dtype)


def accumulate(call: Call, value: Value, spots: Tensor, data: Value, how: str, keeps: bool) -> Value:
    """Accumulate in the given way; ``keeps`` tells whether what stood there before counts."""
    shape, how = value.shape, WAYS.get(how, how)
    hit = torch.zeros(math.prod(shape), dtype=torch.bool)
    hit[spots] = True
    hit = hit.reshape(shape)
    own = value.codes if keeps else torch.where(hit, KNOWN, value.codes)
    order = arrivals(math.prod(shape), spots).unflatten(0, shape) if value.ndim else arrivals(1, spots)[0]
    landed = torch.cat([data.codes, torch.tensor([KNOWN])])[order]
    if value.plain and data.plain:
        mixed = call.nodes(shape, Read(own), Read(landed, 1))
        return Value(compress(torch.where(hit, mixed, value.codes)), None, call.dtype)
    base, given = value.values().to(call.dtype).reshape(-1), data.values().to(call.dtype)
    values = joined(base, spots, given, how, keeps)
    settled = torch.isinf(values)
    if how == "prod":
        zeros = [(v.codes.reshape(-1) == KNOWN) & (v.values().reshape(-1) == 0) for v in (value, data)]
        settled = joined(zeros[0].long(), spots, zeros[1].long(), "amax", keeps) > 0
        values = torch.where(settled, 0, values)
    settled = settled.reshape(shape)
    dead = settled.unsqueeze(-1).expand(order.shape)
    if how in ("amax", "amin"):
        dead = dead | torch.cat([(given - values[spots]).abs() >= DISTANT, torch.tensor([False])])[order]
    mixed = call.nodes(shape, Read(own, 0, settled), Read(landed, 1, dead))
    # Where nothing lands, the element stays what it was.
    codes, values = shifted(torch.where(hit, mixed, value.codes), values.reshape(shape))
    result = Value(compress(codes), values, call.dtype)
    if how != "prod" or not call.dtype.is_floating_point:
        return result
    sizes = joined(base.abs(), spots, given.abs(), "amax", keeps).reshape(shape)
    return of_any_size(result.over(codes, torch.where(hit & (codes != KNOWN), 0, values)), hit & ~(sizes < ORDINARY))


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
