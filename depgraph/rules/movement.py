"""Operations that only move data.

Reads: nothing. out[i] *is* some element of an argument, a known zero or a known filling: the operation is called on the
codes, and on the known values, and makes no nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from depgraph.rules.arguments import swap, tensors_in
from depgraph.rules.call import Call, Read
from depgraph.rules.masking import ordinary, shifted
from depgraph.rules.registry import rule
from depgraph.rules.values import GENERIC, KNOWN, Value, compress, core, forget, known, reshape, uniform


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
    """Do to the codes, and to the known values, what the operator does to the data."""
    try:
        codes = call.op(*swap(args, lambda v: v.codes), **swap(kwargs, lambda v: v.codes))
    except NotImplementedError:  # a kernel for floats only: they hold every code exactly
        codes = call.op(*swap(args, lambda v: v.codes.double()), **swap(kwargs, lambda v: v.codes.double())).long()
    values = None
    if any_known(args):
        dtype = call.dtype
        values = call.op(*swap(args, lambda v: cast(v, dtype)), **swap(kwargs, lambda v: cast(v, dtype)))
    if isinstance(codes, Tensor):
        return Value(compress(codes), values, call.dtype)
    values = values if values is not None else [None] * len(codes)
    return tuple(
        Value(compress(c), v, m.dtype) if c.dtype == torch.int64 and isinstance(c, Tensor) else known(c)
        for c, v, m in zip(codes, values, call.meta, strict=True)
    )


@rule("cat", "concat", "concatenate")
def cat(call: Call, tensors: Sequence[Value], dim: int = 0) -> Any:
    """Like `move`, without copying along the other axes what does not differ along them."""
    shape = call.shape
    parts = [t for t in tensors if t.ndim == len(shape)]  # an empty tensor of one axis counts for nothing
    still = [
        axis
        for axis in range(len(shape))
        if axis != dim % len(shape) and all(s.stride(axis) == 0 for t in parts for s in stored(t))
    ]
    if not still:
        return move(call, parts, dim)
    for axis in still:
        parts = [t.over(*(s.narrow(axis, 0, 1) for s in stored(t))) for t in parts]
    thin = move(call, parts, dim)
    return thin.over(*(s.expand(shape) for s in stored(thin)))


def stored(value: Value) -> tuple[Tensor, ...]:
    """Return the tensors that a value consists of."""
    return (value.codes,) if value.known is None else (value.codes, value.known)


def view(call: Call, *args: Any, **kwargs: Any) -> Any:
    """Like `move`, for operators that return views: nothing is copied, so nothing needs compressing."""
    codes = call.op(*swap(args, lambda v: v.codes), **kwargs)
    values = call.op(*swap(args, lambda v: v.known), **kwargs) if any_known(args) else None
    if isinstance(codes, Tensor):
        return Value(codes, values, call.dtype)
    return tuple(
        Value(c, None if values is None else values[i], m.dtype)
        for i, (c, m) in enumerate(zip(codes, call.meta, strict=True))
    )


@rule("view", "reshape", "_unsafe_view", "_reshape_alias", "flatten", "unflatten", "view_as", "reshape_as", "ravel")
@rule("squeeze", "unsqueeze", "view_copy", valueless=True)
def same_order(call: Call, value: Value, *args: Any, **kwargs: Any) -> Value:
    """Keep the row-major order of the elements and change the shape."""
    if value.dtype != call.dtype:  # view.dtype
        return recast(call, value)
    return value.over(
        reshape(value.codes, call.shape), None if value.known is None else reshape(value.known, call.shape)
    )


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
    values = torch.view_as_complex(value.known.contiguous()) if value.known is not None else None
    both = value.over(bundle(call, value.codes), values)
    return Value(both.codes, both.known, call.dtype)


@rule("view_as_real", "view_as_real_copy")
def view_as_real(call: Call, value: Value) -> Value:
    """Both parts of a complex element come from where it came from."""
    codes = value.codes.unsqueeze(-1).expand(call.shape)
    return Value(codes, None if value.known is None else torch.view_as_real(value.known.resolve_conj()), call.dtype)


@rule("real", "imag", "_conj", "_conj_physical", "conj", "conj_physical", "resolve_conj", "resolve_neg", "_neg_view")
def complex_part(call: Call, value: Value) -> Value:
    """A part of a complex number comes from where the number came from."""
    values = None if value.known is None else call.op(value.known)
    return Value(value.codes, values, call.dtype)


@rule("clone", "contiguous", "detach", "alias", "lift", "lift_fresh", "lift_fresh_copy")
@rule("_to_copy", "to", "type_as", "positive", "_to_dense", "to_dense", "_to_sparse", "to_sparse", "cpu", "cuda")
@rule("_autocast_to_full_precision", "_autocast_to_reduced_precision")
def cast_to(call: Call, value: Value, *args: Any, **kwargs: Any) -> Value:
    """Copy or cast: every element stays what it is."""
    if value.known is None:
        return Value(value.codes, None, call.dtype)
    if value.dtype.is_complex and not call.dtype.is_complex:
        return Value(value.codes, value.known.real.to(call.dtype), call.dtype)
    values = (value.known if call.dtype.is_floating_point else ordinary(value)).to(call.dtype)
    codes, values = shifted(value.codes, values) if call.dtype.is_floating_point else (value.codes, values)
    return Value(codes, values, call.dtype)


@rule("constant_pad_nd")
def constant_pad(call: Call, value: Value, pad: list[int], fill: Any = 0) -> Value:
    """Surround with a known number."""
    codes = torch.constant_pad_nd(value.codes, pad, KNOWN)
    if fill == 0 and value.known is None:
        return value.over(compress(codes))
    return value.over(compress(codes), torch.constant_pad_nd(value.values(), pad, fill))


@rule("as_strided", "as_strided_copy", valueless=True)
def as_strided(call: Call, value: Value, size: list[int], stride: list[int], offset: int | None = None) -> Value:
    """Read the storage in the order that the tensor itself is laid out in."""
    layout = call.layout(0)

    def laid_out(tensor: Tensor) -> Tensor:
        stored = torch.empty_strided(layout.shape, layout.stride(), dtype=tensor.dtype).copy_(tensor)
        return stored.as_strided(size, stride, offset or 0)

    return value.over(compress(laid_out(value.codes)), None if value.known is None else laid_out(value.known))


@rule("as_strided_scatter")
def as_strided_scatter(
    call: Call, value: Value, source: Value, size: list[int], stride: list[int], offset: int | None = None
) -> Value:
    """Write into the storage in the order that the tensor itself is laid out in."""
    layout = call.layout(0)

    def written(base: Tensor, data: Tensor) -> Tensor:
        stored = torch.empty_strided(layout.shape, layout.stride(), dtype=base.dtype).copy_(base)
        return stored.as_strided_scatter(data, size, stride, offset or 0)

    codes = written(value.codes, source.codes)
    anything = value.known is not None or source.known is not None
    return value.over(compress(codes), written(value.values(), source.values()) if anything else None)


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
    codes = source.codes.expand(call.shape)
    return Value(codes, None if source.known is None else source.known.to(call.dtype).expand(call.shape), call.dtype)


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


def any_known(args: Any) -> bool:
    """Tell whether something is known of the values of any argument."""
    if isinstance(args, Value):
        return args.known is not None
    return isinstance(args, (list, tuple)) and any(any_known(arg) for arg in args)
