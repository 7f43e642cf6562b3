"""Normalisation: softmax and the norms.

Reads: every element of a group ← the whole group, and its own scale and shift. One node a normalised group. In a
softmax, elements whose weight is exactly 0 wherever in their intervals the scores lie are not in the group; a group
with one element left, which is certainly not hidden, is constant and reads nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from depgraph.rules.call import Call, Read
from depgraph.rules.elementwise import outputs
from depgraph.rules.registry import rule
from depgraph.rules.values import (
    FIRST,
    GENERIC,
    ORDINARY,
    Value,
    compress,
    core,
    forget,
    reshape,
    together,
    uniform,
)
from depgraph.rules.values.intervals import (
    NEARLY,
    STRETCH,
    bounded,
    doubted,
    largest,
    of_any_size,
    sized,
    spoilt,
    stretch,
    wild,
    within,
)
from depgraph.rules.values.weights import weigh


@rule("softmax", "_softmax", "_safe_softmax", "special_softmax", sized=True)
@rule("log_softmax", "_log_softmax", "special_log_softmax", sized=True)
def softmax(call: Call, scores: Value, dim: int, *_: Any, **__: Any) -> Value:
    """Normalise over what is left of each group."""
    logarithm, safe = "log" in call.op._schema.name, "safe" in call.op._schema.name
    axis = dim % scores.ndim if scores.ndim else 0
    if scores.ndim == 0:
        return softmax(call, scores.through(lambda t: t.reshape(1)), 0).through(lambda t: t.reshape(()))
    group = scores.codes.movedim(axis, -1).unsqueeze(axis)
    size, dtype, shape = scores.shape[axis], call.dtype, scores.shape
    if scores.plain and size != 1:
        codes = call.nodes(shape, Read(group, 1))
        return Value(codes, None, dtype) if logarithm else bounded(codes, torch.zeros(()), torch.ones(()), dtype)
    low, high, nan = together(*scores.bounds, scores.doubtful.expand(shape))
    w = weigh(low, high, nan, axis, size, dtype)
    # The logarithm of a weight of 0 is -inf where -inf masked it; where a low number did, it is still read.
    own = w.lost | (w.gone & (high > -math.inf) & logarithm)
    unread = w.gone | w.lost | (w.sure & ~own.any(axis, keepdim=True))
    codes = call.nodes(
        shape,
        Read(group, 1, unread.expand(shape).movedim(axis, -1).unsqueeze(axis)),
        *([Read(scores.codes, 0, ~own.expand(shape))] if bool(own.any()) else []),
    )
    whole = w.single & w.visible & ~w.gone
    if logarithm:
        most, least = high.amax(axis, keepdim=True), low.amax(axis, keepdim=True)
        ends = low.double() - most - math.log(size), (high.double() - least).clamp(max=0)
        ends = ends[0].nan_to_num(-math.inf, math.inf, -math.inf), ends[1].nan_to_num(0.0, math.inf, -math.inf)
        a, b = within(ends, ORDINARY, (low >= -NEARLY) & (most <= NEARLY) & (least < math.inf))
        a, b = (torch.where(w.gone & ~own, -math.inf, torch.where(whole, 0.0, end)) for end in (a, b))
    else:
        a, b = torch.where(whole, 1.0, 0.0), torch.where(w.gone, 0.0, 1.0)
    nothing = 0.0 if safe else math.nan
    a, b = (torch.where(w.broken, math.nan, torch.where(w.hidden & ~w.spoilt, nothing, end)) for end in (a, b))
    return bounded(compress(codes), a, b, dtype, w.spoilt & ~w.broken if safe else w.doubtful)


def normalise(call: Call, x: Value, axes: list[int], scale: Any, shift: Any, centred: bool = True) -> Any:
    """Read the group along ``axes`` and, at each element's own place, scale and shift, which broadcast against x.

    A centred group of one element is 0: of what is scaled, nothing is read.
    """
    size = math.prod(x.shape[axis] for axis in axes)
    group = x.codes.permute(*[a for a in range(x.ndim) if a not in axes], *axes)
    for axis in axes:
        group = group.unsqueeze(axis)
    whole = Read(group, len(axes))
    own = own_of(shift) if centred and size == 1 else own_of(scale, shift)
    codes = call.nodes(x.shape, *([] if centred and size == 1 else [whole]), *map(Read, own))
    result = rescaled(Value(forget(codes), None, call.dtype), x, size, scale, shift)
    if not isinstance(call.meta, (tuple, list)):
        return result
    # Means and deviations are shared by the group, and read nothing but the group.
    statistics = codes if not any(is_data(o) for o in own) and size > 1 else call.nodes(x.shape, whole)
    for axis in axes:
        statistics = statistics.narrow(axis, 0, 1)
    rest = [
        Value(reshape(statistics.expand(_like(m.shape, statistics)), m.shape), None, m.dtype) for m in call.meta[1:]
    ]
    if centred and size == 1:  # no deviation
        rest[-1] = rest[-1].over(uniform(GENERIC, rest[-1].shape))
    return (result, *(spoilt(r.over(forget(r.codes)), [x]) for r in rest))


def rescaled(result: Value, x: Value, size: int, scale: Any, shift: Any) -> Value:
    """Return normalised numbers, each no larger than the root of how many there are, scaled and shifted."""
    own = [v for v in (scale, shift) if isinstance(v, Value)]
    if any(wild(v) is not None for v in (x, *own)):
        return of_any_size(result, nan=True)
    if x.nan is not None or any(v.nan is not None for v in own):
        result = doubted(result, torch.tensor(True))
    if all(v.plain for v in own):
        return result
    top = ORDINARY
    if isinstance(scale, Value):
        top = math.sqrt(size) * largest(scale) if scale.is_known else ORDINARY * stretch(scale)
    top += 0.0 if not isinstance(shift, Value) or shift.plain else largest(shift)
    return result if top <= NEARLY else sized(result, top)


def is_data(codes: Tensor) -> bool:
    """Tell whether some of the codes are nodes."""
    return bool(codes.numel()) and int(core(codes).max()) >= FIRST


def _like(shape: torch.Size, statistics: Tensor) -> torch.Size:
    return statistics.shape if math.prod(shape) == statistics.numel() else shape


def own_of(*parameters: Any) -> list[Tensor]:
    """Return the codes of those parameters that are given."""
    return [p.codes for p in parameters if isinstance(p, Value)]


@rule("layer_norm", "native_layer_norm", "rms_norm", "_fused_rms_norm", sized=True)
def layer_norm(call: Call, x: Value, normalized_shape: list[int], weight: Any = None, bias: Any = None, *_: Any) -> Any:
    """Normalise over the last axes."""
    axes = list(range(x.ndim - len(normalized_shape), x.ndim))
    if "rms" in call.op._schema.name:
        return normalise(call, x, axes, weight, None, centred=False)
    return normalise(call, x, axes, weight, bias)


@rule("group_norm", sized=True)
def group_norm(call: Call, x: Value, groups: int, weight: Any = None, bias: Any = None, *_: Any) -> Value:
    """Normalise over the channels of a group and all that follows."""
    shape = (x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    split = Value(reshape(x.codes, shape), None, x.dtype)
    own = [by_channel(p, (1, groups, shape[2], *(1,) * (x.ndim - 2))) for p in (weight, bias)]
    value = normalise(call, split, list(range(2, len(shape))), *own)
    return Value(reshape(value.codes, call.shape), None, call.dtype)


@rule("native_group_norm", sized=True)
def native_group_norm(
    call: Call, x: Value, weight: Any, bias: Any, n: int, c: int, hxw: int, groups: int, eps: float
) -> Any:
    """Normalise over the channels of a group and all that follows."""
    split = Value(reshape(x.codes, (n, groups, c // groups, hxw)), None, x.dtype)
    own = [by_channel(p, (1, groups, c // groups, 1)) for p in (weight, bias)]
    out, *rest = normalise(call, split, [2, 3], *own)
    return (Value(reshape(out.codes, call.shape), None, call.dtype), *rest)


def by_channel(parameter: Any, shape: Sequence[int]) -> Any:
    """Arrange one number a channel in the given shape, which broadcasts against what is normalised."""
    return parameter.over(reshape(parameter.codes, shape)) if isinstance(parameter, Value) else None


def channelwise(parameter: Tensor, x: Value) -> Tensor:
    """Arrange one number a channel to broadcast against x."""
    return parameter.reshape(-1, *(1,) * (x.ndim - 2)) if x.ndim > 2 else parameter


def batch_norm_of(call: Call, x: Value, own: list[Any], running: list[Any], training: bool) -> Any:
    """Normalise each channel: over everything else when training, elementwise by running statistics otherwise."""
    scale = [channelwise(o, x) for o in own_of(*own)]
    shift = [channelwise(o, x) for o in own_of(own[1])]
    if not training and all(isinstance(r, Value) for r in running):
        codes = call.nodes(
            x.shape, Read(x.codes), *(Read(channelwise(o, x)) for o in own_of(*running)), *map(Read, scale)
        )
        return codes, None
    axes = [a for a in range(x.ndim) if a != 1]
    whole = x.codes.permute(1, *axes)
    for axis in axes:
        whole = whole.unsqueeze(axis)
    single = math.prod(x.shape[a] for a in axes) == 1
    codes = call.nodes(x.shape, *([] if single else [Read(whole, len(axes))]), *map(Read, shift if single else scale))
    shared = not single and not any(map(is_data, scale))
    statistics = codes if shared else call.nodes(x.shape, Read(whole, len(axes)))
    for axis in axes:
        statistics = statistics.select(axis, 0).unsqueeze(axis)
    return codes, statistics.reshape(-1)


@rule("batch_norm", "_batch_norm_impl_index", "cudnn_batch_norm")
def batch_norm(call: Call, x: Value, weight: Any, bias: Any, mean: Any, var: Any, training: bool, *_: Any) -> Any:
    """Normalise each channel."""
    codes, _statistics = batch_norm_of(call, x, [weight, bias], [mean, var], training)
    result = outputs(call, forget(codes))
    if training or mean is None:
        return result
    if isinstance(result, tuple):
        return (by_running(result[0], weight, [bias, mean], var, call), *result[1:])
    return by_running(result, weight, [bias, mean], var, call)


def by_running(result: Value, weight: Any, shifts: list[Any], var: Any, call: Call) -> Value:
    """Return numbers normalised by running statistics, of any size where known ones stretch them far."""
    factor, eps = 1.0, next((a for a in reversed(call.args) if type(a) is float), 0.0)
    if isinstance(var, Value) and var.is_known and var.codes.numel():
        factor = 1 / math.sqrt(max(float(var.values().min()) + eps, 1e-300))
    factor *= largest(weight) if isinstance(weight, Value) and weight.is_known else 1.0
    far = any(isinstance(s, Value) and not s.plain and largest(s) * max(factor, 1.0) > ORDINARY for s in shifts)
    return of_any_size(result) if far or factor > STRETCH else result


@rule("_native_batch_norm_legit_functional", "native_batch_norm", "_batch_norm_with_update_functional")
@rule("_native_batch_norm_legit", "_native_batch_norm_legit_no_training", "_batch_norm_no_update")
def native_batch_norm(call: Call, x: Value, weight: Any, bias: Any, *rest: Any) -> Any:
    """Normalise each channel; the mean, the deviation and the new running statistics read the channel."""
    flags = [r for r in rest if isinstance(r, bool)]
    running = [r for r in rest[:2] if isinstance(r, Value)]
    training = flags[0] if flags else "with_update" in call.op._schema.name
    codes, statistics = batch_norm_of(call, x, [weight, bias], running, training)
    values: list[Value] = [Value(forget(codes), None, call.meta[0].dtype)]
    for k, meta in enumerate(call.meta[1:]):
        if statistics is None or meta.ndim != 1 or meta.shape[0] != statistics.shape[0]:
            values.append(Value(torch.tensor(1).expand(meta.shape), None, meta.dtype))
        elif k < 2 or not running:
            values.append(Value(forget(statistics), None, meta.dtype))
        else:
            mixed = call.nodes(meta.shape, Read(statistics), Read(running[(k - 2) % len(running)].codes))
            values.append(Value(forget(mixed), None, meta.dtype))
    return tuple(values)


@rule("instance_norm")
def instance_norm(
    call: Call, x: Value, weight: Any, bias: Any, mean: Any, var: Any, use_input_stats: bool, *_: Any
) -> Value:
    """Normalise each channel of each example."""
    own = [by_channel(p, (x.shape[1], *(1,) * (x.ndim - 2))) for p in (weight, bias)]
    if not use_input_stats:
        codes = call.nodes(
            x.shape, Read(x.codes), *(Read(channelwise(o, x)) for o in own_of(mean, var)), *map(Read, own_of(*own))
        )
        return call.result(codes)
    value: Value = normalise(call, x, list(range(2, x.ndim)), *own)
    return value
