"""Elementwise operations.

Reads: out[i] ← every argument at [i], after broadcasting. An argument is not read where another one settles the result
whatever it is: a product with a known 0, ``and`` with a known False, a sum with -inf. A known condition moves data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from depgraph.rules.call import Call, Read
from depgraph.rules.masking import ORDINARY, far, negligible, of_any_size, shifted
from depgraph.rules.registry import SIZED, name_of, rule
from depgraph.rules.values import GENERIC, KNOWN, Value, compress, core, forget, known, together, uniform

# Where an operation's result is settled by one argument alone, as a function of that argument's known value.
SETTLED_BY: dict[str, Callable[[Tensor], Tensor]] = {
    **dict.fromkeys(("mul", "multiply", "logical_and", "bitwise_and", "__and__"), lambda v: v == 0),
    **dict.fromkeys(("add", "sub", "rsub", "subtract"), torch.isinf),
    "logical_or": lambda v: v != 0,
    **dict.fromkeys(("bitwise_or", "__or__"), lambda v: (v == 1) if v.dtype == torch.bool else (v == -1)),
    **dict.fromkeys(("maximum", "fmax", "clamp_min"), lambda v: v == _top(v.dtype)),
    **dict.fromkeys(("minimum", "fmin", "clamp_max"), lambda v: v == _bottom(v.dtype)),
}
# A known 0 divided or shifted by anything is 0: only the first argument settles.
SETTLED_BY_FIRST: dict[str, Callable[[Tensor], Tensor]] = dict.fromkeys(
    ("div", "divide", "true_divide", "__lshift__", "__rshift__", "bitwise_left_shift", "bitwise_right_shift"),
    lambda v: v == 0,
)
# Operations that carry "an unknown of ordinary size plus this" through: op(a + s, b + t) is op(a, b) plus op(s, t).
SHIFTED = frozenset(("add", "sub", "rsub", "subtract", "neg", "negative", "maximum", "minimum", "fmax", "fmin"))
SHIFTED |= frozenset(("clamp", "clamp_min", "clamp_max", "relu", "abs"))
# … and those that do while only one of their arguments is unknown: of a division, the one that is divided.
SCALED = frozenset(("mul", "multiply", "div", "divide", "true_divide"))

# Operations whose result is exactly 0 where a number low enough was added to their argument.
VANISHING = frozenset(("exp", "exp2", "sigmoid", "special_expit"))
# Operations whose result is of ordinary size whatever they are given.
BOUNDED = frozenset(("sigmoid", "special_expit", "hardsigmoid", "tanh", "sin", "cos", "atan", "atan2", "sign", "sgn"))
BOUNDED |= frozenset(("erf", "erfc", "special_erf", "special_erfc", "frac"))
# Scaled by more than this, an unknown is no longer of ordinary size.
STRETCH = 128.0


def elementwise(call: Call, *args: Any, **kwargs: Any) -> Any:
    """Read every tensor argument at the output's own place."""
    tensors = tensors_in(args, kwargs)
    shape, name = call.shape, name_of(call.op)
    if settled_by_number(name, args):
        return call.result(uniform(KNOWN, shape))
    if all(t.plain for t in tensors) and name not in SHIFTED | SCALED:
        codes = call.nodes(shape, *(Read(t.codes) for t in tensors))
        return outputs(call, codes)
    settled = settles(name, tensors, shape)
    codes = call.nodes(shape, *(Read(t.codes, dead=settled) for t in tensors))
    if settled is not None:
        codes = compress(torch.where(settled, KNOWN, codes)) if bool(settled.any()) else codes
    if isinstance(call.meta, (tuple, list)):
        return outputs(call, codes)
    return carry(call, name, tensors, codes, settled)


SIZED.add(elementwise)


def settled_by_number(name: str, args: tuple[Any, ...]) -> bool:
    """Tell whether a number among the arguments settles the result: ``x * 0``."""
    for place, arg in enumerate(args[:2]):
        test = SETTLED_BY.get(name) or (SETTLED_BY_FIRST.get(name) if place == 0 else None)
        if test is not None and isinstance(arg, (int, float)) and bool(test(torch.tensor(arg))):
            return True
    return False


def settles(name: str, tensors: list[Value], shape: torch.Size) -> Tensor | None:
    """Return where the result is known although not every argument is; None for nowhere."""
    masks = []
    for place, tensor in enumerate(tensors):
        test = SETTLED_BY.get(name) or (SETTLED_BY_FIRST.get(name) if place == 0 else None)
        if test is not None and tensor.any_known:
            codes, values = together(tensor.codes, tensor.values())
            masks.append(((codes == KNOWN) & test(values)).expand(tensor.shape))
    if name in VANISHING and tensors[0].known is not None and tensors[0].dtype.is_floating_point:
        codes, values = together(tensors[0].codes, tensors[0].values())
        masks.append(((codes != KNOWN) & negligible(values, tensors[0].dtype)).expand(shape))
    if not masks:
        return None
    mask = masks[0]
    for other in masks[1:]:
        mask = torch.logical_or(*together(mask, other))
    return mask.expand(shape)


def carry(call: Call, name: str, tensors: list[Value], codes: Tensor, settled: Tensor | None) -> Value:
    """Fill in the known values of a result, and what is known to have been added to its unknown ones."""
    scaled = name in SCALED and sum(not t.is_known for t in tensors) == 1
    if name in SETTLED_BY_FIRST and tensors[0].is_known:
        scaled = False
    shifts = name in SHIFTED or scaled
    far = any(isinstance(a, (int, float)) and abs(a) >= ORDINARY for a in call.args)
    if not call.dtype.is_floating_point or not (far or any(t.known is not None for t in tensors)):
        shifts = False
    values = call.values(codes, everywhere=shifts)
    if values is not None and name in SETTLED_BY_FIRST and settled is not None:
        values = torch.where(settled, 0, values)
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
                if name not in SETTLED_BY_FIRST:
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


def tensors_in(args: Any, kwargs: dict[str, Any]) -> list[Value]:
    """Return every tensor among the arguments, lists included, in order."""
    found: list[Value] = []
    for arg in (*args, *kwargs.values()):
        if isinstance(arg, Value):
            found.append(arg)
        elif isinstance(arg, (list, tuple)):
            found.extend(tensors_in(arg, {}))
    return found


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


def _top(dtype: torch.dtype) -> float | int:
    return float("inf") if dtype.is_floating_point else (True if dtype == torch.bool else torch.iinfo(dtype).max)


def _bottom(dtype: torch.dtype) -> float | int:
    return float("-inf") if dtype.is_floating_point else (False if dtype == torch.bool else torch.iinfo(dtype).min)
