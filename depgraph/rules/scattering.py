"""Writing by known and by unknown indices.

Reads: known index      nothing: it moves data; where it accumulates, out[p] ← self[p] and every source that lands on p
       unknown index    out[p] ← self[p], every index, and every source that could land on p
       boolean mask     out[p] ← self[p]; mask[q] and source[q] for all q up to p in row-major order
       unpooling        out[n, c, :] ← all sources and indices of the channel
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from depgraph.rules.arguments import tensors_in
from depgraph.rules.call import Call, Read
from depgraph.rules.contraction import arrange
from depgraph.rules.elementwise import as_value
from depgraph.rules.indexing import only
from depgraph.rules.landing import accumulate, overwrite, spot_of
from depgraph.rules.movement import contents
from depgraph.rules.registry import rule
from depgraph.rules.values import KNOWN, RANGED, Value, compress, forget, reshape
from depgraph.rules.values.intervals import NEARLY, bounded, largest, of_any_size, wild

# Above this many places, a place is taken to read the whole of a mask and of what it lets in.
MOST_IN_ORDER = 1 << 14


@rule("scatter", "scatter_add", "scatter_reduce", sized=True)
def scatter(call: Call, value: Value, dim: int, picks: Value, source: Any = None, *rest: Any, **kwargs: Any) -> Value:
    """Write or accumulate at indexed places along an axis."""
    if value.ndim == 0:
        return back(call, scatter(call, line(value), 0, line(picks), line(source), *rest, **kwargs))
    axis, name = dim % value.ndim, call.op._schema.name
    picks = only(picks, value.shape[axis])
    data = as_value(source if source is not None else kwargs.get("value", 0), call.dtype)
    data = stretch(data, picks.shape) if data.ndim == 0 else arrange(data, lambda t: clip(t, picks.shape))
    if not picks.is_known:
        reads = [Read(value.codes)]
        for tensor in (picks.codes, data.codes):
            wide = grow(tensor, value.shape, axis)
            reads.append(Read(wide.movedim(axis, -1).unsqueeze(axis), 1))
        return unknown_result(call, value.shape, *reads)
    places = [along(torch.arange(n), a, picks.ndim).expand(picks.shape) for a, n in enumerate(picks.shape)]
    places[axis] = picks.values()
    how = "sum" if name == "aten::scatter_add" else kwargs.get("reduce", rest[0] if rest else None)
    return land(call, value, places, data, how, kwargs.get("include_self", True))


@rule("index_add", "index_reduce", "index_copy", "index_fill", sized=True)
def index_into(call: Call, value: Value, dim: int, picks: Value, source: Any, *rest: Any, **kwargs: Any) -> Value:
    """Write or accumulate slices along an axis."""
    if value.ndim == 0:
        return back(call, index_into(call, line(value), 0, line(picks), line(source), *rest, **kwargs))
    if kwargs.get("alpha", 1) == 0:
        return value
    axis = dim % value.ndim
    picks = only(line(picks), value.shape[axis])
    shape = torch.Size((*value.shape[:axis], picks.shape[0], *value.shape[axis + 1 :]))
    data = stretch(as_value(source, call.dtype), shape)
    if not picks.is_known:
        reads = [Read(value.codes), Read(picks.codes, 1), Read(data.codes.movedim(axis, -1).unsqueeze(axis), 1)]
        return unknown_result(call, value.shape, *reads)
    places = [along(torch.arange(n), a, value.ndim).expand(shape) for a, n in enumerate(shape)]
    places[axis] = along(picks.values(), axis, value.ndim).expand(shape)
    how = "sum" if call.op._schema.name == "aten::index_add" else rest[0] if rest else None
    return land(call, value, places, scaled(data, kwargs.get("alpha", 1)), how, kwargs.get("include_self", True))


@rule("put", sized=True)
def put(call: Call, value: Value, picks: Value, source: Value, accumulate: bool = False) -> Value:
    """Write or accumulate at places of the flattened tensor."""
    picks, data = only(line(picks), value.codes.numel()), line(source)
    if not picks.is_known:
        return unknown_result(call, value.shape, Read(value.codes), Read(picks.codes, 1), Read(data.codes, 1))
    return back(call, land(call, line(value), [picks.values()], data, "sum" if accumulate else None))


@rule("index_put", "_unsafe_index_put", sized=True)
def index_put(call: Call, value: Value, indices: list[Value | None], source: Value, accumulate: bool = False) -> Value:
    """Write or accumulate by advanced indexing."""
    given = [i for i in indices if i is not None]
    if any(i.dtype == torch.bool for i in given):
        if indices == given[:1] and not given[0].is_known:
            return let_in(call, value, given[0], source)
        for i in given:
            call.need_known(i, "a boolean index decides which elements are written")
    else:
        indices = [None if i is None else only(i, n) for i, n in zip(indices, value.shape, strict=False)]
    if not all(i is None or i.is_known for i in indices):
        return place(call, value, indices, source)
    number = torch.arange(value.codes.numel()).reshape(value.shape)
    spots = number[tuple(slice(None) if i is None else i.values() for i in indices)]
    if not value.ndim:
        return stretch(source, value.shape)
    how = "sum" if accumulate else None
    return land(call, value, list(torch.unravel_index(spots, value.shape)), stretch(source, spots.shape), how)


@rule("masked_scatter", sized=True)
def masked_scatter(call: Call, value: Value, mask: Value, source: Value) -> Value:
    """Fill in the source's elements, in order, where the mask is True."""
    value, mask = stretch(value, call.shape), stretch(mask, call.shape)
    if mask.is_known:

        def filled(base: Tensor, given: Tensor) -> Tensor:
            return base.masked_scatter(mask.values(), given.contiguous())

        low, high, nan = (part and filled(part(value), part(source)) for part in contents([value, source], call.dtype))
        return Value(compress(filled(value.codes, source.codes)), low, call.dtype, high, nan)
    # Along trailing axes that the mask does not tell apart, whole rows of the source are let in.
    behind = 0
    while (
        behind < min(value.ndim, source.ndim)
        and mask.codes.stride(-1 - behind) == 0
        and source.shape[-1 - behind] == value.shape[-1 - behind]
    ):
        behind += 1
    front, post = value.ndim - behind, value.shape[value.ndim - behind :]
    rows = min(math.prod(source.shape), math.prod(value.shape)) // max(1, math.prod(post))
    source = arrange(source, lambda t: reshape(t, (math.prod(t.shape) // max(1, math.prod(post)), *post))[:rows])
    return let_in(call, value, arrange(mask, lambda t: t[(...,) + (0,) * behind] if behind else t), source, front)


def let_in(call: Call, value: Value, mask: Value, source: Value, axes: int | None = None) -> Value:
    """Follow ``value[mask] = source`` for an unknown mask over the leading axes.

    Which row of the source a place gets depends on the mask in all places before it; a single row fits everywhere.
    """
    axes = mask.ndim if axes is None else axes
    post = value.shape[axes:]
    singles = (1,) * len(post)
    if source.ndim <= len(post) or source.shape[0] == 1:
        row = source.codes if source.ndim <= len(post) else source.codes[0]
        seen = mask.codes.reshape((*mask.shape, *singles))
        return unknown_result(call, value.shape, Read(value.codes), Read(seen), Read(row.expand(post)))
    places, rows = mask.codes.numel(), source.shape[0]
    number = torch.arange(places).reshape((*mask.shape, *singles, 1))
    bounded = places <= MOST_IN_ORDER
    reads = [Read(value.codes)]
    for codes in (mask.codes.reshape(-1), source.codes.movedim(0, -1)):
        later = torch.arange(codes.shape[-1]) > number if bounded else None
        reads.append(Read(codes, 1, later))
    return unknown_result(call, value.shape, *reads) if rows else value


@rule("max_unpool2d", "max_unpool3d", "max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward")
def unpool(call: Call, value: Value, *args: Any) -> Value:
    """Write each channel's elements where its indices say."""
    (picks,) = [arg for arg in args if isinstance(arg, Value)][-1:]
    if picks.is_known:
        result: Value = call.decompose()
        return result
    axes = int(call.op._schema.name.partition("pool")[2][0])
    spread = (slice(None),) * (value.ndim - axes) + (None,) * axes
    return unknown_result(call, call.shape, *(Read(t.codes[spread], axes) for t in (value, picks)))


def place(call: Call, value: Value, indices: list[Value | None], source: Value) -> Value:
    """Follow ``value[indices] = source`` where some of the indices are unknown."""
    used = {axis: i for axis, i in enumerate(indices) if i is not None}
    broad = torch.broadcast_shapes(*(i.shape for i in used.values()))
    others = [n for axis, n in enumerate(value.shape) if axis not in used]
    # Axes indexed side by side are replaced where they stand, else the new ones come first.
    front = min(used) if list(used) == list(range(min(used), max(used) + 1)) else 0
    codes = source.codes.expand((*others[:front], *broad, *others[front:]))
    codes = codes.permute(
        [a for a in range(codes.ndim) if not front <= a < front + len(broad)]
        + list(range(front, front + len(broad)))
    )  # fmt: skip
    codes = reshape(codes, (*others, math.prod(broad)))
    dead: Tensor | None = None
    for axis, i in used.items():
        codes = codes.unsqueeze(axis)
        if i.is_known:
            size = value.shape[axis]
            elsewhere = torch.arange(size)[:, None] != i.values().expand(broad).reshape(-1) % size
            elsewhere = elsewhere.reshape([size if a == axis else 1 for a in range(value.ndim)] + [-1])
            dead = elsewhere if dead is None else dead | elsewhere
    read = [Read(i.codes.expand(broad).reshape(-1), 1, dead) for i in used.values()]
    return unknown_result(call, value.shape, Read(value.codes), Read(codes, 1, dead), *read)


def land(call: Call, value: Value, places: list[Tensor], data: Value, how: str | None, keeps: bool = True) -> Value:
    """Write, or accumulate in the given way, data at known places, given as one index tensor an axis."""
    spots = spot_of(places, value.shape)
    data = line(stretch(data, places[0].shape))
    if how is None:
        return overwrite(call, value, spots, data)
    return accumulate(call, value, spots, data, how, keeps)


def unknown_result(call: Call, shape: Sequence[int], *reads: Read) -> Value:
    """Make nodes; constants of which nothing is known are generic, and as large as what may be found in their place."""
    result = Value(forget(call.nodes(shape, *reads)), None, call.dtype)
    floats = [t for t in tensors_in(call.args, {}) if not t.plain and t.dtype in RANGED and t.dtype.is_floating_point]
    if any(wild(t) is not None or t.nan is not None for t in floats):
        return of_any_size(result, nan=True)
    return of_any_size(result) if any(largest(t) > NEARLY for t in floats) else result


def scaled(value: Value, factor: Any) -> Value:
    """Scale what is known of a tensor."""
    if factor == 1 or value.dtype not in RANGED:
        return value
    if not value.dtype.is_floating_point:
        return (
            value.over(value.codes, value.values() * factor)
            if value.is_known
            else Value(forget(value.codes), None, value.dtype)
        )
    low, high = (end.double() * factor for end in (value.bounds if factor >= 0 else value.bounds[::-1]))
    return bounded(value.codes, low, high, value.dtype, value.nan)


def line(value: Any) -> Any:
    """Flatten a tensor; a number stays one."""
    return arrange(value, lambda t: t.reshape(-1)) if isinstance(value, Value) else value


def back(call: Call, value: Value) -> Value:
    """Give a flattened result its shape."""
    return arrange(value, lambda t: t.reshape(call.shape))


def stretch(value: Value, shape: Sequence[int]) -> Value:
    """Broadcast to a shape."""
    return arrange(value, lambda t: t.expand(tuple(shape)))


def along(numbers: Tensor, axis: int, ndim: int) -> Tensor:
    """Arrange a line of numbers along one of several axes."""
    return numbers.reshape([-1 if a == axis else 1 for a in range(ndim)])


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
