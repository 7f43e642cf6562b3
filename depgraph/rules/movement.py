"""Operations that only move data.

Reads: nothing. out[i] *is* some element of an argument, a known zero or a known filling: the operation is called on the
codes, and on the known values, and makes no nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from depgraph.rules.arguments import swap, tensors_in
from depgraph.rules.call import Call, Read
from depgraph.rules.registry import rule
from depgraph.rules.values import (
    GENERIC,
    KNOWN,
    RANGED,
    Value,
    compress,
    core,
    forget,
    known,
    reshape,
    together,
    uniform,
    usual,
    widest,
)
from depgraph.rules.values.intervals import bounded, fitted


@rule(
    *("stack", "hstack", "vstack", "dstack", "column_stack", "block_diag"),
    *("flip", "fliplr", "flipud", "roll", "rot90", "repeat", "tile", "tril", "triu", "diag_embed", "unfold_copy"),
    *("select_scatter", "slice_scatter", "diagonal_scatter", "slice_copy", "permute_copy", "expand_copy"),
    *(
        "repeat_interleave.self_int",
        "pixel_shuffle",
        "pixel_unshuffle",
        "channel_shuffle",
        "narrow_copy",
        "select_copy",
    ),
    *("broadcast_tensors", "combinations", "atleast_1d", "atleast_2d", "atleast_3d", "diag", "diagonal_copy"),
    *(
        "transpose_copy",
        "unbind_copy",
        "split_copy",
        "split_with_sizes_copy",
        "squeeze_copy",
        "unsqueeze_copy",
        "t_copy",
    ),
    *("im2col", "meshgrid", "detach_copy", "alias_copy", "native_channel_shuffle"),
)
def move(call: Call, *args: Any, **kwargs: Any) -> Any:
    """Do to the codes, and to the ends of the intervals, what the operator does to the data."""

    def done(part: Callable[[Value], Tensor]) -> Any:
        try:
            return call.op(*swap(args, part), **swap(kwargs, part))
        except NotImplementedError:  # a kernel for floats only: they hold every code exactly
            dtype = part(tensors[0]).dtype
            return call.op(*swap(args, lambda v: part(v).double()), **swap(kwargs, lambda v: part(v).double())).to(
                dtype
            )

    tensors = tensors_in(args, kwargs)
    codes, (low, high, nan) = done(lambda v: v.codes), [part and done(part) for part in contents(tensors, call.dtype)]
    if isinstance(codes, Tensor):
        return Value(compress(codes), low, call.dtype, high, nan)
    return tuple(
        Value(compress(c), low and low[i], m.dtype, high and high[i], nan and nan[i])
        if c.dtype == torch.int64 and isinstance(c, Tensor)
        else known(c)
        for i, (c, m) in enumerate(zip(codes, call.meta, strict=True))
    )


def contents(tensors: list[Value], dtype: torch.dtype) -> list[Callable[[Value], Tensor] | None]:
    """Return what gives the low ends, the high ends and the doubts of values put together; None for nothing."""

    def ends(place: int) -> Callable[[Value], Tensor]:
        return lambda v: fitted(v.bounds[place], dtype)

    low, high = (ends(0), ends(1)) if any(t.high is not None for t in tensors) else (None, None)
    if high is None and any(t.low is not None for t in tensors):
        low = partial(cast, dtype=dtype)
    nan = doubts if any(t.nan is not None for t in tensors) else None
    return [low, high, nan]


def doubts(value: Value) -> Tensor:
    """Return where an unknown element may be NaN."""
    return value.doubtful.expand(value.shape) & (value.codes != KNOWN)


@rule("cat", "concat", "concatenate")
def cat(call: Call, tensors: Sequence[Value], dim: int = 0) -> Any:
    """Like `move`, without copying along the other axes what does not differ along them."""
    shape = call.shape
    parts = [t for t in tensors if t.ndim == len(shape)]  # an empty tensor of one axis counts for nothing
    still = [
        axis
        for axis in range(len(shape))
        if axis != dim % len(shape) and all(s.stride(axis) == 0 for t in parts for s in t.stored())
    ]
    if not still:
        return move(call, parts, dim)
    thin = move(call, [first_of(t, still) for t in parts], dim)
    return thin.through(lambda s: s.expand(shape))


def first_of(value: Value, axes: list[int]) -> Value:
    """Cut axes to length 1."""
    for axis in axes:
        value = value.through(partial(torch.narrow, dim=axis, start=0, length=1))
    return value


def view(call: Call, *args: Any, **kwargs: Any) -> Any:
    """Like `move`, for operators that return views: nothing is copied, so nothing needs compressing."""
    (value,) = tensors_in(args, kwargs)
    if isinstance(call.meta, Tensor):
        return value.through(lambda t: call.op(*swap(args, lambda _: t), **swap(kwargs, lambda _: t)))

    def done(part: Tensor | None) -> Any:
        return None if part is None else call.op(*swap(args, lambda _: part), **swap(kwargs, lambda _: part))

    codes, low, high, nan = map(done, (value.codes, value.low, value.high, value.nan))
    return tuple(
        Value(codes[i], low and low[i], m.dtype, high and high[i], nan and nan[i]) for i, m in enumerate(call.meta)
    )


@rule("view", "reshape", "_unsafe_view", "_reshape_alias", "flatten", "unflatten", "view_as", "reshape_as", "ravel")
@rule("squeeze", "unsqueeze", "view_copy", valueless=True)
def same_order(call: Call, value: Value, *args: Any, **kwargs: Any) -> Value:
    """Keep the row-major order of the elements and change the shape."""
    if value.dtype != call.dtype:  # view.dtype
        return recast(call, value)
    return value.through(lambda t: reshape(t, call.shape))


def recast(call: Call, value: Value) -> Value:
    """Reinterpret the bits: elements split or merge along the last axis where the sizes differ."""
    if value.is_known:
        return known(value.values().contiguous().view(call.dtype))
    wide, narrow = call.dtype.itemsize, value.dtype.itemsize
    if wide <= narrow:
        codes = (
            value.codes.unsqueeze(-1).expand(*value.shape, narrow // wide).flatten(-2) if value.ndim else value.codes
        )
        return Value(forget(reshape(codes, call.shape)), None, call.dtype)
    return Value(forget(bundle(call, reshape(value.codes, (*call.shape, wide // narrow)))), None, call.dtype)


def bundle(call: Call, codes: Tensor) -> Tensor:
    """Merge the last axis: an element that holds several nodes' values becomes a node that reads them."""
    first = codes.select(-1, 0)
    if codes.stride(-1) == 0 or bool((core(codes) == core(codes).select(-1, 0).unsqueeze(-1)).all()):
        return first
    return call.nodes(codes.shape[:-1], Read(codes, 1))


@rule("view_as_complex", "view_as_complex_copy")
def view_as_complex(call: Call, value: Value) -> Value:
    """Each complex element holds the two numbers along the last axis."""
    codes = bundle(call, value.codes)
    sure = (core(value.codes) == KNOWN).all(-1).expand(codes.shape)  # both parts
    values = None if value.low is None else torch.view_as_complex(value.low.contiguous())
    return Value(torch.where((codes == KNOWN) & ~sure, GENERIC, codes), values, call.dtype)


@rule("view_as_real", "view_as_real_copy")
def view_as_real(call: Call, value: Value) -> Value:
    """Both parts of a complex element come from where it came from."""
    codes = value.codes.unsqueeze(-1).expand(call.shape)
    return Value(codes, None if value.low is None else torch.view_as_real(value.low.resolve_conj()), call.dtype)


@rule("real", "imag", "_conj", "_conj_physical", "conj", "conj_physical", "resolve_conj", "resolve_neg", "_neg_view")
def complex_part(call: Call, value: Value) -> Value:
    """A part of a complex number comes from where the number came from."""
    if value.dtype.is_complex or (value.high is None and not value.any_known):
        return Value(value.codes, None if value.low is None else call.op(value.low), call.dtype)
    if call.op.overloadpacket in (torch.ops.aten._neg_view, torch.ops.aten.resolve_neg):
        return Value(forget(value.codes), None, call.dtype)
    return value


@rule("clone", "contiguous", "detach", "alias", "lift", "lift_fresh", "lift_fresh_copy")
@rule("_to_copy", "to", "type_as", "positive", "_to_dense", "to_dense", "_to_sparse", "to_sparse", "cpu", "cuda")
@rule("_autocast_to_full_precision", "_autocast_to_reduced_precision")
def cast_to(call: Call, value: Value, *args: Any, **kwargs: Any) -> Value:
    """Copy or cast: every element stays what it is."""
    return recast_ends(value, call.dtype)


def recast_ends(value: Value, dtype: torch.dtype) -> Value:
    """Cast a value; what is not ordinary any more, or runs over, may be anything that the dtype holds."""
    if value.dtype == dtype:
        return value
    floats = value.dtype.is_floating_point and dtype.is_floating_point
    if value.is_known or (value.plain and floats) or not {value.dtype, dtype} <= RANGED:
        values = None if value.low is None else value.low
        if values is not None and values.is_complex() and not dtype.is_complex:
            values = values.real
        return Value(value.codes, None if values is None else values.to(dtype), dtype)
    low, high, nan = together(*value.bounds, value.doubtful.expand(value.shape))
    if dtype == torch.bool:
        least, most = ((low > 0) | (high < 0) | low.isnan()), ((low != 0) | (high != 0) | nan)
        return bounded(value.codes, least, most, dtype)
    if dtype.is_floating_point:
        # Rounding keeps the order. Integers of any size may overflow; floating-point numbers are taken not to.
        if not value.dtype.is_floating_point:
            low, high = low.to(dtype), high.to(dtype)
        return bounded(value.codes, low, high, dtype, nan & ~low.isnan())
    least, most = widest(dtype)
    beyond = nan | ~((low.double() >= float(least)) & (high.double() <= float(most)))
    if value.dtype.is_floating_point:
        # An ordinary number that is cut to an integer may stand for any: it has been scaled to count something.
        beyond = beyond | ((low.double() <= usual(value.dtype)[0]) & (high.double() >= usual(value.dtype)[1]))
    low, high = (
        torch.where(beyond, 0, end.nan_to_num(0, 0, 0) if end.is_floating_point() else end) for end in (low, high)
    )
    return bounded(
        value.codes, torch.where(beyond, least, low.to(dtype)), torch.where(beyond, most, high.to(dtype)), dtype
    )


@rule("constant_pad_nd")
def constant_pad(call: Call, value: Value, pad: list[int], fill: Any = 0) -> Value:
    """Surround with a known number."""
    codes = compress(torch.constant_pad_nd(value.codes, pad, KNOWN))
    if fill == 0 and value.low is None:
        return value.over(codes)
    nan = None if value.nan is None else torch.constant_pad_nd(value.nan, pad, False)
    if value.high is None:
        return value.over(codes, torch.constant_pad_nd(value.values(), pad, fill))
    low, high = (torch.constant_pad_nd(end, pad, fill) for end in value.bounds)
    return Value(codes, low, value.dtype, high, nan)


@rule("as_strided", "as_strided_copy", valueless=True)
def as_strided(call: Call, value: Value, size: list[int], stride: list[int], offset: int | None = None) -> Value:
    """Read the storage in the order that the tensor itself is laid out in."""
    layout = call.layout(0)

    def laid_out(tensor: Tensor) -> Tensor:
        stored = torch.empty_strided(layout.shape, layout.stride(), dtype=tensor.dtype).copy_(tensor)
        return stored.as_strided(size, stride, offset or 0)

    return value.through(laid_out, lambda t: compress(laid_out(t)))


@rule("as_strided_scatter")
def as_strided_scatter(
    call: Call, value: Value, source: Value, size: list[int], stride: list[int], offset: int | None = None
) -> Value:
    """Write into the storage in the order that the tensor itself is laid out in."""
    layout = call.layout(0)

    def written(base: Tensor, data: Tensor) -> Tensor:
        stored = torch.empty_strided(layout.shape, layout.stride(), dtype=base.dtype).copy_(base)
        return stored.as_strided_scatter(data, size, stride, offset or 0)

    codes = compress(written(value.codes, source.codes))
    low, high, nan = (part and written(part(value), part(source)) for part in contents([value, source], call.dtype))
    return Value(codes, low, call.dtype, high, nan)


@rule("resize", "resize_as")
def resize(call: Call, value: Value, *_: Any, **__: Any) -> Value:
    """Take the first elements of the storage; more of them are memory as found."""
    size = call.shape.numel()
    flat = value.codes.reshape(-1)[:size]
    codes = torch.constant_pad_nd(flat, [0, size - len(flat)], GENERIC)
    return Value(compress(forget(codes.reshape(call.shape))), None, call.dtype)


@rule("fill", "copy")
def overwrite(call: Call, value: Value, source: Any, *args: Any) -> Value:
    """Forget what was there and hold the other argument, broadcast."""
    if not isinstance(source, Value):
        return known(torch.tensor(source, dtype=call.dtype).expand(call.shape))
    return recast_ends(source.through(lambda t: t.expand(call.shape)), call.dtype)


@rule(
    "zeros_like",
    "ones_like",
    "full_like",
    "new_zeros",
    "new_ones",
    "new_full",
    "zero",
    "zeros",
    "ones",
    "full",
    valueless=True,
)
@rule("scalar_tensor", "eye", "arange", "linspace", "logspace", "tril_indices", "triu_indices")
@rule("hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window")
def factory(call: Call, *args: Any, **kwargs: Any) -> Value:
    """Make known values of the arguments' shape alone."""
    name = call.op._schema.name
    for word, number in (("zero", 0), ("ones", 1)):
        if word in name:
            return known(torch.tensor(number, dtype=call.dtype).expand(call.shape))
    if "full" in name and not isinstance(args[-1], Value):
        return known(torch.tensor(args[-1], dtype=call.dtype).expand(call.shape))
    if not all(v.is_known for v in tensors_in(args, kwargs)):  # linspace between tensors
        result: Value = call.decompose()
        return result
    kwargs = {k: v for k, v in kwargs.items() if k not in ("device", "pin_memory")}
    values = call.op(*swap(args, lambda v: v.values()), **kwargs)
    return known(values.to(call.dtype))


@rule("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted", valueless=True)
@rule("rand_like", "randn_like", "randint_like", "rand", "randn", "randint", "randperm", "normal_functional")
def unspecified(call: Call, *args: Any, **kwargs: Any) -> Value:
    """Make a constant of unknown values: memory as found, or random numbers. Nothing is read."""
    return Value(uniform(1, call.shape), None, call.dtype)


def cast(value: Value, dtype: torch.dtype) -> Tensor:
    """Return the known values in the dtype of the result."""
    values = value.values()
    return values.to(dtype) if dtype.is_floating_point and values.dtype.is_floating_point else values
