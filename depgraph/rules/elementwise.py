"""Elementwise operations.

Reads: out[i] ← every argument at [i], after broadcasting, that makes a difference to it wherever in their intervals the
arguments lie: not the other factor of a 0, nor what is lower than the other argument of a maximum. A condition that is
known moves data.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from depgraph.rules.arguments import tensors_in
from depgraph.rules.call import Call, Read
from depgraph.rules.registry import SIZED, is_random, rule
from depgraph.rules.values import GENERIC, KNOWN, RANGED, Value, compress, core, forget, known, together
from depgraph.rules.values.intervals import bounded, fitted, same
from depgraph.rules.values.pointwise import judge


def elementwise(call: Call, *args: Any, **kwargs: Any) -> Any:
    """Read every tensor argument at the output's own place."""
    tensors, shape = tensors_in(args, kwargs), call.shape
    if isinstance(call.meta, (tuple, list)) or is_random(call.op):
        return outputs(call, forget(call.nodes(shape, *(Read(t.codes) for t in tensors))))
    found = judge(call.op, args, kwargs, tensors, shape, call.dtype)
    dead = [d.expand(shape) if bool(d.any()) else None for d in found.dead]
    codes = call.nodes(shape, *(Read(t.codes, dead=d) for t, d in zip(tensors, dead, strict=True)))
    return bounded(codes, found.low, found.high, call.dtype, found.nan)


SIZED.add(elementwise)


def outputs(call: Call, codes: Tensor, single: Tensor | None = None) -> Any:
    """Return the same codes for every output of the operator.

    Where there is a ``single`` element to choose from, the index of the chosen one, the second output, is constant.
    """
    if isinstance(call.meta, (tuple, list)):
        # frexp and its like: nothing is known of the values, so known elements count as generic.
        codes = forget(codes)
        values = [Value(codes.expand(m.shape), None, m.dtype) for m in call.meta]
        if single is not None and bool(single.any()) and len(values) > 1:
            values[1] = values[1].over(torch.where(single, GENERIC, values[1].codes))
        return tuple(values)
    return call.result(codes)


@rule("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar", sized=True)
def where(call: Call, condition: Value, this: Any, other: Any) -> Value:
    """Take the chosen side where the condition is known; elsewhere read the condition and both."""
    return choose(call, condition, as_value(this, call.dtype), as_value(other, call.dtype))


@rule("masked_fill", sized=True)
def masked_fill(call: Call, value: Value, mask: Value, fill: Any) -> Value:
    """Like `where`, the filling first."""
    return choose(call, mask, as_value(fill, call.dtype), value)


def choose(call: Call, condition: Value, this: Value, other: Value) -> Value:
    """Select elementwise by a condition of which some or all is known."""
    shape, dtype, sides = call.shape, call.dtype, (this, other)
    sure, test, left, right = together(
        *(
            t.expand(shape)
            for t in (core(condition.codes) == KNOWN, core(condition.values()) != 0, this.codes, other.codes)
        )
    )
    codes = torch.where(test, left, right)
    bare = all(side.plain for side in sides) or dtype not in RANGED
    if not bool(sure.all()):
        gone = sure if bare else torch.logical_or(*together(sure, equal(this, other, shape)))
        reads = [Read(v.codes.expand(shape), dead=gone.expand(shape)) for v in (condition, *sides)]
        gone, codes, mixed = together(gone, codes, call.nodes(shape, *reads))
        codes = torch.where(gone, codes, mixed)
    codes = compress(codes.expand(shape))
    if all(side.plain for side in sides):
        return Value(forget(codes), None, dtype)
    if dtype not in RANGED:  # values are known where it is known which of them it is
        sure, test, codes, first, second = together(sure, test, codes, *(side.values().to(dtype) for side in sides))
        codes = torch.where((codes == KNOWN) & ~sure, GENERIC, codes).expand(shape)
        return Value(codes, torch.where(sure, torch.where(test, first, second), 0).expand(shape), dtype)
    parts = [p.expand(shape) for side in sides for p in (*side.bounds, side.doubtful)]
    sure, test, a, b, lost, c, d, missing = together(sure, test, *parts)
    a, b, c, d = (fitted(end, dtype) for end in (a, b, c, d))
    either = torch.minimum if dtype == torch.bool else torch.fmin, torch.maximum if dtype == torch.bool else torch.fmax
    low = torch.where(sure, torch.where(test, a, c), either[0](a, c))
    high = torch.where(sure, torch.where(test, b, d), either[1](b, d))
    # A known NaN that may be chosen, or not, is one that is possible.
    nan = torch.where(sure, torch.where(test, lost, missing), lost | missing) & ~(low.isnan() & high.isnan())
    return bounded(codes, low, high, dtype, nan)


def equal(this: Value, other: Value, shape: torch.Size) -> Tensor:
    """Return where two tensors are the same known number: which of them is chosen makes no difference."""
    parts = [t.expand(shape) for v in (this, other) for t in (core(v.codes) == KNOWN, v.values())]
    first, values, second, others = together(*parts)
    return first & second & same(values, others)


def as_value(value: Any, dtype: torch.dtype) -> Value:
    """Return a number among the arguments as a known tensor."""
    return value if isinstance(value, Value) else known(torch.tensor(value, dtype=dtype))
