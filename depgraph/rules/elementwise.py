"""Elementwise operations.

Reads: out[i] ← every argument at [i], after broadcasting. An argument is not read where another one settles the result
whatever it is: a product with a known 0, ``and`` with a known False, a sum with -inf. A known condition moves data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from depgraph.rules.arguments import tensors_in
from depgraph.rules.call import Call, Read
from depgraph.rules.masking import ORDINARY, far, moderate, of_any_size, shifted
from depgraph.rules.registry import SIZED, name_of, rule
from depgraph.rules.settling import DIVISIONS, SCALES, either, evaluated, settles, unread
from depgraph.rules.values import GENERIC, KNOWN, Value, compress, core, forget, known, together

# Operations that carry "an unknown of ordinary size plus this" through: op(a + s, b + t) is op(a, b) plus op(s, t).
SHIFTED = frozenset(("add", "sub", "rsub", "subtract", "neg", "negative", "maximum", "minimum", "fmax", "fmin"))
SHIFTED |= frozenset(("clamp", "clamp_min", "clamp_max", "relu", "abs"))
# … and those that do while only one of their arguments is unknown: of a division, the one that is divided.
SCALED = frozenset(("mul", "multiply", "div", "divide", "true_divide"))
PRODUCTS = frozenset(("mul", "multiply"))
# Scaled by more than this, an unknown is no longer of ordinary size.
STRETCH = 128.0
# Operations whose result is of ordinary size whatever they are given.
BOUNDED = frozenset(("sigmoid", "special_expit", "hardsigmoid", "tanh", "sin", "cos", "atan", "atan2", "sign", "sgn"))
BOUNDED |= frozenset(("erf", "erfc", "special_erf", "special_erfc", "frac"))


def elementwise(call: Call, *args: Any, **kwargs: Any) -> Any:
    """Read every tensor argument at the output's own place."""
    tensors = tensors_in(args, kwargs)
    shape, name = call.shape, name_of(call.op)
    settled = settles(call, name, tensors, args, kwargs)
    idle = unread(name, args, kwargs, shape)
    idle += [None] * (len(tensors) - len(idle))
    reads = [Read(t.codes, dead=either([settled, more], shape)) for t, more in zip(tensors, idle, strict=False)]
    codes = call.nodes(shape, *reads)
    if settled is not None:
        where_settled, thin = together(settled, codes)
        codes = compress(torch.where(where_settled, KNOWN, thin).expand(shape))
    if isinstance(call.meta, (tuple, list)) or (
        settled is None and all(t.plain for t in tensors) and name not in SHIFTED | SCALED
    ):
        return outputs(call, codes)
    if name in PRODUCTS and len(tensors) == 2 and any(t.plain for t in tensors) and all(map(moderate, tensors)):
        return Value(codes, None, call.dtype)  # what is known is 0, and nothing was added to what is not
    return carry(call, name, tensors, codes, settled)


SIZED.add(elementwise)


def carry(call: Call, name: str, tensors: list[Value], codes: Tensor, settled: Tensor | None) -> Value:
    """Fill in the known values of a result, and what is known to have been added to its unknown ones."""
    scaled = name in SCALED and sum(not t.is_known for t in tensors) == 1
    if name in DIVISIONS and tensors[0].is_known:
        scaled = False
    shifts = name in SHIFTED or scaled
    far = any(isinstance(a, (int, float)) and abs(a) >= ORDINARY for a in call.args)
    if not call.dtype.is_floating_point or not (far or any(t.known is not None for t in tensors)):
        shifts = False
    values = call.values(codes, everywhere=shifts)
    if values is not None and name in SCALES and settled is not None:
        # What is scaled by an unknown, or divided by it, and known all the same, is what it is beside a 1.
        ones = [torch.where(t.codes == KNOWN, t.values(), 1).to(t.dtype) for t in tensors]
        values = torch.where(settled, evaluated(call, call.args, call.kwargs, ones), values).to(values.dtype)
    if values is not None and shifts:
        codes, values = shifted(codes, values)
    result = Value(codes, values, call.dtype)
    for where in unsized(call, name, tensors, shifts):
        result = of_any_size(result, where.expand(call.shape))
    return result


def unsized(call: Call, name: str, tensors: list[Value], shifts: bool) -> Iterator[Tensor]:
    """Yield where a result is no longer known to be of ordinary size."""
    if name in BOUNDED or not call.dtype.is_floating_point:
        return
    for tensor in tensors:
        if shifts and tensor.known is not None:
            yield core(tensor.known).isnan()
        elif not shifts and (where := far(tensor)) is not None:
            yield where
    if name in SCALED:
        for place, arg in enumerate(call.args[:2]):
            factor = arg.values() if isinstance(arg, Value) and arg.is_known else arg
            if isinstance(factor, Tensor) or (isinstance(factor, (int, float)) and not isinstance(factor, bool)):
                size = core(torch.as_tensor(factor))
                size = size.abs() if size.is_complex() else size.double().abs()
                if name not in DIVISIONS:
                    large = size > STRETCH
                elif place == 1:
                    large = size < 1 / STRETCH
                else:
                    continue
                if bool(large.any()):
                    yield large


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
    shape = call.shape
    condition_codes, condition_values, left, right = together(
        condition.codes, condition.values(), this.codes, other.codes
    )
    decided, test = condition_codes == KNOWN, condition_values != 0
    codes = torch.where(test, left, right)
    if not bool(decided.all()) and (same := equal(this, other)) is not None:
        decided, test, codes, same = together(decided, test, codes, same)
        decided = decided | same
    if not bool(decided.all()):
        reads = [Read(v.codes.expand(shape), dead=decided.expand(shape)) for v in (condition, this, other)]
        mixed = call.nodes(shape, *reads)
        decided, codes, mixed, test = together(decided, codes, mixed, test)
        codes = torch.where(decided, codes, mixed)
        # Where neither is known to be chosen, no value is known either.
        codes = torch.where(~decided & (codes == KNOWN), GENERIC, codes)
    codes = compress(codes.expand(shape))
    if this.known is None and other.known is None:
        return Value(codes, None, call.dtype)
    decided, test, left, right = together(decided, test, this.values(), other.values())
    values = torch.where(test, left.to(call.dtype), right.to(call.dtype))
    result = Value(codes, torch.where(decided, values, 0).expand(shape), call.dtype)
    for side in (this, other):
        # A side that is wholly known may be chosen as well.
        values = core(side.values())
        result = of_any_size(result, ~decided & ~(values.abs() < ORDINARY)) if values.is_floating_point() else result
    return result


def equal(this: Value, other: Value) -> Tensor | None:
    """Return where two tensors are the same known number: which of them is chosen makes no difference."""
    if not (this.any_known and other.any_known):
        return None
    left, right, first, second = together(this.codes, other.codes, this.values(), other.values())
    same = (left == KNOWN) & (right == KNOWN) & (first == second)
    return same if bool(same.any()) else None


def as_value(value: Any, dtype: torch.dtype) -> Value:
    """Return a number among the arguments as a known tensor."""
    return value if isinstance(value, Value) else known(torch.tensor(value, dtype=dtype))
