"""Indexing, by known and by unknown indices.

Reads: known index      nothing: it moves data
       unknown index    out[i] ← index[i] and everything that the index could pick
       scatter          out[p] ← self[p] and every source that lands on p (by unknown index: any source and index)
       embedding        out[i] ← index[i]; and row index[i] of the table, should the table carry nodes
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from depgraph.rules.call import Call, Read
from depgraph.rules.elementwise import as_value
from depgraph.rules.movement import move, swap
from depgraph.rules.reduction import everything
from depgraph.rules.registry import rule
from depgraph.rules.values import KNOWN, Value, compress, forget, uniform


def moved(call: Call, value: Value, *args: Any, **kwargs: Any) -> Value:
    """Pick by known indices: the operator itself, on the codes."""
    args, kwargs = swap(args, lambda v: v.values()), swap(kwargs, lambda v: v.values())
    codes = call.op(value.codes, *args, **kwargs)
    return value.over(compress(codes), None if value.known is None else call.op(value.known, *args, **kwargs))


@rule("index", "_unsafe_index")
def index(call: Call, value: Value, indices: list[Value | None]) -> Value:
    """Advanced indexing."""
    given = [i for i in indices if i is not None]
    if all(i.is_known for i in given):
        return moved(call, value, indices)
    if any(i.dtype == torch.bool for i in given):
        for i in given:
            call.need_known(i, "a boolean index decides the shape of the result")
    codes, inner, index_reads = candidates(value.codes, indices, call.shape)
    return call.result(call.nodes(call.shape, Read(codes, inner), *index_reads))


def candidates(codes: Tensor, indices: list[Any], shape: torch.Size) -> tuple[Tensor, int, list[Read]]:
    """Return what partly unknown indices could pick, (*out, *choices), how many axes choices have, the indices read."""
    used = [axis for axis, i in enumerate(indices) if i is not None]
    broad = torch.broadcast_shapes(*(indices[a].shape for a in used))
    unknown = [axis for axis in used if not indices[axis].is_known]
    inner = len(unknown)
    picks: list[Any] = [slice(None)] * codes.ndim
    for axis in used:
        if axis in unknown:
            grid = torch.arange(codes.shape[axis])
            place = [1] * inner
            place[unknown.index(axis)] = -1
            picks[axis] = grid.reshape([1] * len(broad) + place)
        else:
            picks[axis] = indices[axis].values().expand(broad)[(...,) + (None,) * inner]
    # Axes indexed side by side are replaced where they stand, else the new ones come first.
    front = used[0] if used == list(range(used[0], used[-1] + 1)) else 0
    found = codes[tuple(picks)]
    block = len(broad) + inner
    found = expand_at(found, front, broad)
    order = [a for a in range(found.ndim) if not front + len(broad) <= a < front + block]
    found = found.permute(*order, *range(front + len(broad), front + block))
    behind = len(shape) - front - len(broad)
    reads = [Read(indices[a].codes.expand(broad)[(...,) + (None,) * behind]) for a in used]
    return found, inner, reads


def expand_at(tensor: Tensor, first: int, sizes: torch.Size) -> Tensor:
    """Expand the axes from ``first`` on to the given sizes."""
    shape = list(tensor.shape)
    shape[first : first + len(sizes)] = sizes
    return tensor.expand(shape)


@rule("index_select")
def index_select(call: Call, value: Value, dim: int, picks: Value) -> Value:
    """Pick slices along an axis."""
    if picks.is_known:
        return moved(call, value, dim, picks)
    if value.ndim == 0:
        return call.result(call.nodes((), Read(value.codes), Read(picks.codes, picks.ndim)))
    axis = dim % value.ndim
    choices = value.codes.movedim(axis, -1).unsqueeze(axis)
    picked = picks.codes.reshape(-1, *(1,) * (value.ndim - axis - 1))
    return call.result(call.nodes(call.shape, Read(choices, 1), Read(picked)))


@rule("embedding")
def embedding(call: Call, table: Value, picks: Value, *_: Any) -> Value:
    """Pick rows of a table."""
    if picks.is_known:
        return table.over(
            compress(table.codes[picks.values()]), None if table.known is None else table.known[picks.values()]
        )
    rows = table.codes.transpose(0, 1).reshape(*(1,) * picks.ndim, table.shape[1], table.shape[0])
    codes = call.nodes(call.shape, Read(picks.codes.unsqueeze(-1)), Read(rows, 1))
    return Value(codes, None, call.dtype)


@rule("gather")
def gather(call: Call, value: Value, dim: int, picks: Value, **_: Any) -> Value:
    """Pick elements along an axis."""
    if picks.is_known:
        return moved(call, value, dim, picks)
    if value.ndim == 0 or picks.ndim == 0:
        return call.result(call.nodes(call.shape, Read(value.codes, value.ndim), Read(picks.codes)))
    axis = dim % value.ndim
    codes = value.codes
    for other in range(value.ndim):
        if other != axis:
            codes = codes.narrow(other, 0, picks.shape[other])
    return call.result(call.nodes(call.shape, Read(codes.movedim(axis, -1).unsqueeze(axis), 1), Read(picks.codes)))


@rule("scatter", "scatter_add", "scatter_reduce")
def scatter(call: Call, value: Value, dim: int, picks: Value, source: Any = None, *rest: Any, **kwargs: Any) -> Value:
    """Write or accumulate at indexed places along an axis."""
    source = source if source is not None else kwargs.get("value", 0)
    data = as_value(source, call.dtype)
    if not isinstance(source, Value):
        data = Value(uniform(KNOWN, picks.shape), data.values().expand(picks.shape), call.dtype)
    if value.ndim == 0:
        return call.result(
            call.nodes((), Read(value.codes), Read(picks.codes, picks.ndim), Read(data.codes, data.ndim))
        )
    axis = dim % value.ndim
    reduces = "reduce" in call.op._schema.name or rest or "reduce" in kwargs or "add" in call.op._schema.name
    data = data.over(clip(data.codes, picks.shape), None if data.known is None else clip(data.known, picks.shape))
    if not picks.is_known:
        reads = [Read(value.codes)]
        for tensor in (picks.codes, data.codes):
            wide = grow(tensor, value.shape, axis)
            reads.append(Read(wide.movedim(axis, -1).unsqueeze(axis), 1))
        return generic_result(call, call.nodes(value.shape, *reads))
    where = [
        torch.arange(n).reshape([-1 if a == b else 1 for b in range(picks.ndim)]) for a, n in enumerate(picks.shape)
    ]
    where[axis] = picks.values()
    places = [w.expand(picks.shape) for w in where]
    return land(call, value, places, data, bool(reduces), kwargs.get("include_self", True))


def land(call: Call, value: Value, places: list[Tensor], data: Value, reduces: bool, keeps: bool = True) -> Value:
    """Write or accumulate data at known places, given as one index tensor an axis."""
    shape = value.shape
    flat = torch.zeros_like(places[0])
    for axis, place in enumerate(places):
        flat = flat * shape[axis] + torch.where(place < 0, place + shape[axis], place)
    flat, codes = flat.reshape(-1), data.codes.expand(places[0].shape).reshape(-1)
    hit = torch.zeros(math.prod(shape), dtype=torch.bool)
    hit[flat] = True
    if not reduces:
        # Written one after the other: the last one stands.
        result = value.codes.reshape(-1).clone()
        result[flat] = codes
        values = None
        if value.known is not None or data.known is not None or data.any_known:
            values = value.values().to(call.dtype).reshape(-1).clone()
            values[flat] = data.values().to(call.dtype).expand(places[0].shape).reshape(-1)
            values = values.reshape(shape)
        return Value(compress(result.reshape(shape)), values, call.dtype)
    order = torch.argsort(flat, stable=True)
    counts = torch.bincount(flat, minlength=math.prod(shape))
    width = int(counts.max()) if len(flat) else 0
    rank = torch.arange(len(flat)) - (counts.cumsum(0) - counts)[flat[order]]
    table = torch.zeros(math.prod(shape), max(1, width), dtype=torch.int64)
    table[flat[order], rank] = codes[order]
    own = value.codes if keeps else torch.where(hit.reshape(shape), KNOWN, value.codes)
    zero = value.zero if keeps and "add" in call.op._schema.name else None
    mixed = call.nodes(shape, Read(own, 0, zero), Read(table.reshape(*shape, -1), 1))
    # Where nothing lands, the element stays what it was.
    result = torch.where(hit.reshape(shape), torch.where(mixed == KNOWN, 1, mixed), value.codes)
    return Value(compress(result), value.known, call.dtype)


def clip(tensor: Tensor, shape: torch.Size) -> Tensor:
    """Cut a source to the extent of the index."""
    for axis, size in enumerate(shape):
        tensor = tensor.narrow(axis, 0, size)
    return tensor


def grow(tensor: Tensor, shape: torch.Size, axis: int) -> Tensor:
    """Extend with known zeros to the given shape, but for one axis."""
    pad: list[int] = []
    for a in reversed(range(tensor.ndim)):
        pad += [0, 0 if a == axis else shape[a] - tensor.shape[a]]
    return torch.constant_pad_nd(tensor, pad, KNOWN)


def generic_result(call: Call, codes: Tensor) -> Value:
    """Return codes as they are, constants of which nothing is known being generic."""
    return Value(forget(codes), None, call.dtype)


@rule("index_put", "_unsafe_index_put")
def index_put(call: Call, value: Value, indices: list[Value | None], source: Value, accumulate: bool = False) -> Value:
    """Write or accumulate by advanced indexing."""
    given = [i for i in indices if i is not None]
    if len(given) == 1 and given[0].dtype == torch.bool and not given[0].is_known and source.codes.numel() == 1:
        mask = given[0]
        behind = value.ndim - len(indices) - (mask.ndim - 1)
        shaped = mask.codes[(None,) * indices.index(mask) + (...,) + (None,) * max(0, behind)]
        return generic_result(
            call, call.nodes(value.shape, Read(value.codes), Read(shaped), Read(source.codes.reshape(())))
        )
    if any(i.dtype == torch.bool for i in given):
        for i in given:
            call.need_known(i, "a boolean index decides which elements are written")
    if not all(i.is_known for i in given):
        parts = [Read(value.codes), *(Read(i.codes, i.ndim) for i in given), Read(source.codes, source.ndim)]
        return generic_result(call, call.nodes(value.shape, *parts))
    number = torch.arange(value.codes.numel()).reshape(value.shape)
    spots = number[tuple(slice(None) if i is None else i.values() for i in indices)]
    places = list(torch.unravel_index(spots, value.shape)) if value.ndim else []
    data = source.over(
        source.codes.expand(spots.shape), None if source.known is None else source.known.expand(spots.shape)
    )
    if not places:
        return data
    return land(call, value, places, data, accumulate)


@rule("index_add", "index_reduce", "index_copy", "index_fill")
def index_into(call: Call, value: Value, dim: int, picks: Value, source: Any, *rest: Any, **kwargs: Any) -> Value:
    """Write or accumulate slices along an axis."""
    data = as_value(source, call.dtype)
    if value.ndim == 0:
        return generic_result(
            call, call.nodes((), Read(value.codes), Read(data.codes, data.ndim), Read(picks.codes, picks.ndim))
        )
    axis = dim % value.ndim
    shape = [*value.shape[:axis], picks.codes.numel(), *value.shape[axis + 1 :]]
    data = data.over(data.codes.expand(shape), None if data.known is None else data.known.expand(shape))
    line = [1] * value.ndim
    line[axis] = -1
    if not picks.is_known:
        reads = [Read(value.codes), Read(picks.codes, picks.ndim)]
        reads.append(Read(data.codes.movedim(axis, -1).unsqueeze(axis), 1))
        return generic_result(call, call.nodes(value.shape, *reads))
    where = [torch.arange(n).reshape([-1 if a == b else 1 for b in range(value.ndim)]) for a, n in enumerate(shape)]
    where[axis] = picks.values().reshape(line)
    name = call.op._schema.name
    return land(call, value, [w.expand(shape) for w in where], data, "add" in name or "reduce" in name,
                kwargs.get("include_self", True))  # fmt: skip


@rule("masked_scatter")
def masked_scatter(call: Call, value: Value, mask: Value, source: Value) -> Value:
    """Fill in the source's elements, in order, where the mask is True."""
    if not mask.is_known:
        result: Value = everything(call, value, mask, source)
        return result
    codes = value.codes.expand(call.shape).masked_scatter(mask.values(), source.codes.contiguous())
    return Value(compress(_sure(codes, value, source)), None, call.dtype)


def _sure(codes: Tensor, *values: Value) -> Tensor:
    """Known elements whose values are not carried along become generic."""
    return forget(codes)


@rule("masked_select", "nonzero", "nonzero_static", "_unique2", "unique_dim", "unique_consecutive", "bincount")
@rule("repeat_interleave.Tensor", "repeat_interleave.self_Tensor", "histc", "argwhere")
def data_shaped(call: Call, *args: Any, **kwargs: Any) -> Any:
    """The shape of the result depends on data: by known data it moves, else every element may read everything."""
    tensors = [a for a in (*args, *kwargs.values()) if isinstance(a, Value)]
    if call.op._schema.name in ("aten::masked_select", "aten::repeat_interleave") and tensors[-1].is_known:
        return move_by(call, *args, **kwargs)
    return everything(call, *args, **kwargs)


def move_by(call: Call, value: Value, *args: Any, **kwargs: Any) -> Value:
    """Move by known data."""
    if not args:
        result: Value = move(call, value, **kwargs)
        return result
    return moved(call, value, *args, **kwargs)
