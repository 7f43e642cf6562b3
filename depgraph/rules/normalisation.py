"""Normalisation: softmax and the norms.

Reads: every element of a group ← the whole group, and its own scale and shift. One node a normalised group. In a
softmax, elements masked with -inf, or with a number so low that their weight is exactly 0, are not in the group; a
group with one element left is constant, and reads nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from depgraph.rules.call import Call, Read
from depgraph.rules.elementwise import outputs
from depgraph.rules.masking import alone, far, masked_out
from depgraph.rules.registry import rule
from depgraph.rules.values import FIRST, GENERIC, KNOWN, Value, compress, core, forget, reshape, uniform


@rule("softmax", "_softmax", "_safe_softmax", "special_softmax", sized=True)
@rule("log_softmax", "_log_softmax", "special_log_softmax", sized=True)
def softmax(call: Call, scores: Value, dim: int, *_: Any, **__: Any) -> Value:
    """Normalise over what is left of each group."""
    logarithm = "log" in call.op._schema.name
    if scores.ndim == 0:
        return fixed(call, 0.0 if logarithm else 1.0)
    axis = dim % scores.ndim
    nowhere = torch.zeros([1] * scores.ndim, dtype=torch.bool)
    gone = masked_out(scores, axis)
    single = alone(gone, scores.shape, axis)
    gone, single = nowhere if gone is None else gone, nowhere if single is None else single
    # The logarithm of a weight of 0 is -inf where -inf masked it; where a low number did, it is still read.
    low = gone & ~(scores.values() == float("-inf")) if logarithm else nowhere
    unread = gone | (single & ~low.any(axis, keepdim=True))
    group = scores.codes.movedim(axis, -1).unsqueeze(axis)
    codes = call.nodes(
        scores.shape,
        Read(group, 1, unread.expand(scores.shape).movedim(axis, -1).unsqueeze(axis)),
        *([Read(scores.codes, 0, ~low)] if bool(low.any()) else []),
    )
    weightless, whole = gone & ~low, single & ~gone
    # What is added to a score is added to its logarithm, less what is added to the largest of all.
    added = scores.values()
    below = added - added.amax(axis, keepdim=True) if logarithm and far(scores) is not None else None
    if below is None and not bool((weightless | whole).any()):
        return call.result(codes)
    codes = torch.where(weightless | whole, KNOWN, forget(codes))
    nothing, everything = (float("-inf"), 0.0) if logarithm else (0.0, 1.0)
    other = torch.zeros(()) if below is None else below
    values = torch.where(weightless, nothing, torch.where(whole, everything, other)).to(call.dtype)
    return Value(compress(codes.expand(call.shape)), values.expand(call.shape), call.dtype)


def fixed(call: Call, number: float) -> Value:
    """Return a tensor that is one known number throughout."""
    return Value(
        torch.tensor(KNOWN).expand(call.shape), torch.tensor(number, dtype=call.dtype).expand(call.shape), call.dtype
    )


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
    result = Value(forget(codes), None, call.dtype)
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
    return (result, *(r.over(forget(r.codes)) for r in rest))


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
    split = x.over(reshape(x.codes, shape))
    own = [by_channel(p, (1, groups, shape[2], *(1,) * (x.ndim - 2))) for p in (weight, bias)]
    value = normalise(call, split, list(range(2, len(shape))), *own)
    return Value(reshape(value.codes, call.shape), None, call.dtype)


@rule("native_group_norm", sized=True)
def native_group_norm(
    call: Call, x: Value, weight: Any, bias: Any, n: int, c: int, hxw: int, groups: int, eps: float
) -> Any:
    """Normalise over the channels of a group and all that follows."""
    split = x.over(reshape(x.codes, (n, groups, c // groups, hxw)))
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
    return outputs(call, forget(codes))


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
