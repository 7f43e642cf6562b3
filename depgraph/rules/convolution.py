"""Convolution and pooling: a window slides over the spatial axes.

Reads: convolution  out[n, o, t] ← x[n, all channels of o's group, s·t - p + d·tap] and w[o, …], for all taps
       pooling      out[n, c, t] ← x[n, c, the window of t]

Padding is known zeros (for max pooling, nothing at all) and is not read. A transposed convolution is a convolution over
the input with known zeros put between its elements.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from depgraph.rules.call import Call, Read
from depgraph.rules.contraction import arrange, contract
from depgraph.rules.elementwise import outputs
from depgraph.rules.registry import rule
from depgraph.rules.values import KNOWN, ORDINARY, RANGED, Value, reshape
from depgraph.rules.values.intervals import NEARLY, bounded, doubted, largest, of_any_size, sized, stretch, wild


def per_axis(given: Any, axes: int) -> list[int]:
    """Return one number an axis, from a number or a list of one or of that many."""
    numbers = list(given) if isinstance(given, (list, tuple)) else [given]
    return numbers * axes if len(numbers) == 1 else numbers


def windows(
    tensor: Tensor, kernel: list[int], stride: list[int], before: list[int], dilation: list[int], out: list[int]
) -> Tensor:
    """Return every window over the last axes: (…, *out, *kernel), a view of the zero-padded tensor."""
    axes = len(kernel)
    pad: list[int] = []
    for i in range(axes):
        size = tensor.shape[tensor.ndim - axes + i]
        need = (out[i] - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1
        pad = [before[i], need - size - before[i], *pad]
    shape = tensor.shape
    padded = torch.constant_pad_nd(core_but_last(tensor, axes), pad, KNOWN)
    padded = padded.expand(*shape[: len(shape) - axes], *padded.shape[len(shape) - axes :])
    first = padded.ndim - axes
    for i in range(axes):
        padded = padded.unfold(first + i, dilation[i] * (kernel[i] - 1) + 1, stride[i])[..., :: dilation[i]]
    return padded


def core_but_last(tensor: Tensor, axes: int) -> Tensor:
    """Cut leading axes of stride 0 to length 1, so that padding need not copy along them."""
    for axis in range(tensor.ndim - axes):
        if tensor.stride(axis) == 0 and tensor.shape[axis] > 1:
            tensor = tensor.narrow(axis, 0, 1)
    return tensor


def convolve(
    call: Call, x: Value, weight: Value, bias: Value | None, stride: Any, before: Any, dilation: Any, groups: int
) -> Value:
    """Follow a convolution; ``before`` is the padding in front of each spatial axis."""
    axes = weight.ndim - 2
    stride, before, dilation = per_axis(stride, axes), per_axis(before, axes), per_axis(dilation, axes)
    batched = x.ndim == axes + 2
    x = x if batched else arrange(x, lambda t: t.unsqueeze(0))
    shape = call.shape if batched else (1, *call.shape)
    out, kernel = list(shape[2:]), list(weight.shape[2:])

    def slide(t: Tensor) -> Tensor:
        t = windows(t, kernel, stride, before, dilation, out)  # (N, C, *out, *kernel)
        t = reshape(t, (t.shape[0], groups, 1, t.shape[1] // groups, *t.shape[2:]))
        return t.movedim(3, 3 + axes)  # (N, G, 1, *out, C/G, *kernel)

    def spread(t: Tensor) -> Tensor:
        t = reshape(t, (groups, t.shape[0] // groups, *t.shape[1:]))
        return t.reshape(1, *t.shape[:2], *(1,) * axes, *t.shape[2:])

    extra: tuple[Read, ...] = ()
    if bias is not None:
        extra = (Read(reshape(bias.codes, (1, groups, bias.shape[0] // groups, *(1,) * axes))),)
    grouped = (shape[0], groups, shape[1] // groups, *out)
    slid, filters = arrange(x, slide), arrange(weight, spread)
    codes = reshape(contract(call, slid, filters, 1 + axes, extra, grouped), call.shape)
    return convolved(call, codes, x, weight, bias)


def convolved(call: Call, codes: Tensor, x: Value, weight: Value, bias: Value | None) -> Value:
    """Return the result of a convolution, as large as what it is made of lets it be."""
    given = [v for v in (x, weight, bias) if v is not None]
    result = call.result(codes)
    if all(v.plain for v in given) or result.is_known or not call.dtype.is_floating_point:
        return result
    if any(wild(v) is not None for v in given):
        return of_any_size(result, nan=True)
    factors = [max(1.0, largest(v)) if v.is_known else stretch(v) for v in (x, weight)]
    limit = ORDINARY * factors[0] * factors[1]
    limit = (ORDINARY if limit <= NEARLY else limit) + (0.0 if bias is None or bias.plain else largest(bias))
    result = result if limit <= NEARLY else sized(result, limit)
    return doubted(result, torch.tensor(any(v.nan is not None for v in given)))


@rule("conv1d", "conv2d", "conv3d", contraction=True, sized=True)
def conv(
    call: Call, x: Value, weight: Value, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Value:  # fmt: skip
    """A convolution with padding in numbers, ``"same"`` or ``"valid"``."""
    axes = weight.ndim - 2
    if padding == "valid":
        padding = 0
    elif padding == "same":
        # PyTorch puts the odd one of an uneven padding behind.
        padding = [d * (k - 1) // 2 for d, k in zip(per_axis(dilation, axes), weight.shape[2:], strict=True)]
    return convolve(call, x, weight, bias, stride, padding, dilation, groups)


@rule("convolution", "_convolution", "convolution_overrideable", contraction=True, sized=True)
def convolution(
    call: Call, x: Value, weight: Value, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, *_: Any,
) -> Value:  # fmt: skip
    """Any convolution."""
    if transposed:
        return conv_transpose(call, x, weight, bias, stride, padding, output_padding, groups, dilation)
    return convolve(call, x, weight, bias, stride, padding, dilation, groups)


@rule("conv_transpose1d", "conv_transpose2d", "conv_transpose3d", contraction=True, sized=True)
def conv_transpose(
    call: Call, x: Value, weight: Value, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    groups: int = 1, dilation: Any = 1,
) -> Value:  # fmt: skip
    """A transposed convolution: a convolution over the spread-out input, the kernel mirrored."""
    axes = weight.ndim - 2
    stride, padding, dilation = per_axis(stride, axes), per_axis(padding, axes), per_axis(dilation, axes)

    def dilute(t: Tensor) -> Tensor:
        thin = core_but_last(t, axes)
        sizes = [(n - 1) * s + 1 for n, s in zip(t.shape[t.ndim - axes :], stride, strict=True)]
        wide = torch.zeros(*thin.shape[: t.ndim - axes], *sizes, dtype=t.dtype)
        spaced: Any = (..., *(slice(None, None, s) for s in stride))
        wide[spaced] = thin
        return wide.expand(*t.shape[: t.ndim - axes], *sizes)

    def mirror(t: Tensor) -> Tensor:  # (C, O/G, *kernel) → (O, C/G, *kernel)
        t = reshape(t.flip(list(range(2, t.ndim))) if t.stride(2) else t, (groups, t.shape[0] // groups, *t.shape[1:]))
        t = t.transpose(1, 2)
        return reshape(t, (groups * t.shape[1], *t.shape[2:]))

    before = [d * (k - 1) - p for d, k, p in zip(dilation, weight.shape[2:], padding, strict=True)]
    return convolve(call, arrange(x, dilute), arrange(weight, mirror), bias, 1, before, dilation, groups)


@rule("max_pool1d", "max_pool2d", "max_pool3d", "max_pool1d_with_indices", "max_pool2d_with_indices", sized=True)
@rule("max_pool3d_with_indices", sized=True)
def max_pool(
    call: Call, x: Value, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    """Read the window."""
    return pool(call, x, kernel, stride, padding, dilation)


@rule("avg_pool1d", "avg_pool2d", "avg_pool3d", sized=True)
def avg_pool(call: Call, x: Value, kernel: Any, stride: Any = (), padding: Any = 0, *_: Any, **__: Any) -> Any:
    """Read the window."""
    return pool(call, x, kernel, stride, padding, 1)


def pool(call: Call, x: Value, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """Follow a pooling with equal windows."""
    axes = int(call.op._schema.name.partition("pool")[2][0])
    kernel = per_axis(kernel, axes)
    stride = per_axis(stride, axes) if stride else kernel
    out = list(call.shape[-axes:])
    slide = (kernel, stride, per_axis(padding, axes), per_axis(dilation, axes), out)
    view = windows(x.codes, *slide)
    single = windows(torch.ones(x.shape[-axes:], dtype=torch.int64), *slide).flatten(axes).sum(-1) == 1
    return ranged(call, x, outputs(call, call.nodes(call.shape, Read(view, axes)), single))


def ranged(call: Call, x: Value, result: Any) -> Any:
    """Return what a pooling makes of the ends of the intervals: it rises with every element."""
    first = result[0] if isinstance(result, tuple) else result
    if x.plain or first.is_known or x.dtype not in RANGED or bool(x.doubtful.any()):
        return result
    low, high = (
        run if isinstance(run := call.op(end.contiguous(), *call.args[1:], **call.kwargs), Tensor) else run[0]
        for end in x.bounds
    )
    if "avg" in call.op._schema.name and low.is_floating_point():  # in another order, it may round otherwise
        slack = torch.maximum(low.abs(), high.abs()).nan_to_num(0, 0, 0) * torch.finfo(low.dtype).eps * 64
        low, high = low - slack * (low != 0), high + slack * (high != 0)
    ends = bounded(first.codes, low, high, first.dtype)
    return (ends, *result[1:]) if isinstance(result, tuple) else ends


@rule("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "_adaptive_avg_pool2d", sized=True)
@rule("_adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d", sized=True)
def adaptive_pool(call: Call, x: Value, output_size: Any) -> Any:
    """Read the window; windows differ in size: out[t] ← x[⌊t n / m⌋ … ⌈(t + 1) n / m⌉ - 1]."""
    axes = int(call.op._schema.name.partition("pool")[2][0])
    patterns = []
    for n, m in zip(x.shape[-axes:], call.shape[-axes:], strict=True):
        place, t = torch.arange(n), torch.arange(m)[:, None]
        patterns.append((place >= t * n // m) & (place < -((t + 1) * -n // m)))
    read, single = stretches(x.codes, patterns)
    return ranged(call, x, outputs(call, call.nodes(call.shape, read), single))


def stretches(codes: Tensor, patterns: list[Tensor]) -> tuple[Read, Tensor]:
    """Read, along each of the last axes, the places that its pattern (out, in) says; tell where that is but one."""
    axes = len(patterns)
    dead, count, rank = torch.zeros((), dtype=torch.bool), torch.ones((), dtype=torch.int64), codes.ndim
    for i, pattern in enumerate(patterns):
        axis, (m, n) = rank - axes + i, pattern.shape
        start = pattern.int().argmax(1, keepdim=True)
        index = start + torch.arange(max(1, n - int((start + pattern.flip(1).int().argmax(1, keepdim=True)).min())))
        beyond = (index >= n) | ~pattern.gather(1, index.clamp(max=n - 1))
        codes = codes.index_select(axis, index.clamp(max=n - 1).reshape(-1)).unflatten(axis, index.shape)
        codes = codes.movedim(axis + 1, -1)
        place = [1] * (rank + axes)
        place[axis], place[rank + i] = index.shape
        dead = dead | beyond.reshape(place)
        count = count * pattern.sum(1).reshape([m if a == i else 1 for a in range(axes)])
    return Read(codes, axes, dead), count <= 1
