"""Elementwise results that are known, or do not depend on an argument, although not every argument is known.

Settled    a product with a known 0, ``and`` with a known False, a sum with -inf, a power of 0, -inf times a positive
Unread     the side of ``lerp`` that has no weight, what is added times 0
Saturated  what comes out the same wherever in its range an unknown lies that had something very low or high added to
           it: the relu of it, its sign, how it compares
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from depgraph.rules.arguments import swap
from depgraph.rules.call import Call
from depgraph.rules.masking import DISTANT, negligible, ordinary
from depgraph.rules.values import KNOWN, Value, core, together

Test = Callable[[Tensor], Tensor]


def is_zero(values: Tensor) -> Tensor:
    """Return where numbers are 0."""
    return values == 0


def _top(dtype: torch.dtype) -> float | int:
    return float("inf") if dtype.is_floating_point else (True if dtype == torch.bool else torch.iinfo(dtype).max)


def _bottom(dtype: torch.dtype) -> float | int:
    return float("-inf") if dtype.is_floating_point else (False if dtype == torch.bool else torch.iinfo(dtype).min)


# Where one argument alone settles the result, as a function of its known value: by either of the first two, …
SETTLED_BY: dict[str, Test] = {
    **dict.fromkeys(("mul", "multiply", "logical_and", "bitwise_and", "__and__"), is_zero),
    **dict.fromkeys(("add", "sub", "rsub", "subtract"), torch.isinf),
    "logical_or": lambda v: v != 0,
    **dict.fromkeys(("bitwise_or", "__or__"), lambda v: (v == 1) if v.dtype == torch.bool else (v == -1)),
    **dict.fromkeys(("maximum", "fmax", "clamp_min"), lambda v: v == _top(v.dtype)),
    **dict.fromkeys(("minimum", "fmin", "clamp_max"), lambda v: v == _bottom(v.dtype)),
}
# … by the first only: a known 0 divided or shifted by anything is 0, a power of 1 is 1, …
DIVISIONS = ("div", "divide", "true_divide")
SETTLED_BY_FIRST: dict[str, Test] = {
    **dict.fromkeys((*DIVISIONS, "__lshift__", "__rshift__", "bitwise_left_shift", "bitwise_right_shift"), is_zero),
    **dict.fromkeys(("xlogy", "special_xlogy", "special_xlog1py"), is_zero),
    **dict.fromkeys(("pow", "float_power"), lambda v: v == 1),
}
# … by the second only: anything to the power of 0 is 1.
SETTLED_BY_SECOND: dict[str, Test] = dict.fromkeys(("pow", "float_power"), is_zero)

# An infinity times something positive, or divided by it, stays what it is.
SCALES = frozenset(("mul", "multiply", *DIVISIONS))

# Operations whose result is exactly 0 where a number low enough was added to their argument.
VANISHING = frozenset(("exp", "exp2", "sigmoid", "special_expit"))
# Operations that, far from 0, only rise or only fall with each of their arguments: what they make of both ends of a
# range is the most and the least that they make of it.
MONOTONE = frozenset(("relu", "relu6", "hardtanh", "hardsigmoid", "hardswish", "threshold", "elu", "selu", "celu"))
MONOTONE |= frozenset(("softplus", "gelu", "silu", "mish", "hardshrink", "softshrink", "log_sigmoid_forward"))
MONOTONE |= frozenset(("exp", "exp2", "expm1", "sigmoid", "special_expit", "tanh", "atan", "arctan", "heaviside"))
MONOTONE |= frozenset(("erf", "erfc", "special_erf", "special_erfc", "special_ndtr", "sign", "sgn", "signbit"))
MONOTONE |= frozenset(("clamp", "clamp_min", "clamp_max", "clip", "maximum", "minimum", "fmax", "fmin", "logical_not"))
MONOTONE |= frozenset(("gt", "ge", "lt", "le", "greater", "greater_equal", "less", "less_equal", "logaddexp"))


def settles(call: Call, name: str, tensors: list[Value], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return where the result is known although not every argument is; None for nowhere."""
    shape, masks = call.shape, []
    by_place = ((SETTLED_BY, SETTLED_BY_FIRST), (SETTLED_BY, SETTLED_BY_SECOND))
    for arg, tables in zip(args, by_place, strict=False):
        for test in (table[name] for table in tables if name in table):
            masks.append(where_known(arg, test))
    if name in SCALES:
        for place, arg in enumerate(args[:2]):
            other = args[1 - place]
            if isinstance(other, Value) and other.positive and (place == 0 or name not in DIVISIONS):
                masks.append(where_known(arg, torch.isinf))
    if name in VANISHING and tensors[0].known is not None and tensors[0].dtype.is_floating_point:
        codes, values = together(tensors[0].codes, tensors[0].values())
        masks.append((codes != KNOWN) & negligible(values, tensors[0].dtype))
    masks.append(saturated(call, name, tensors, args, kwargs))
    return either(masks, shape)


def unread(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], shape: torch.Size) -> list[Tensor | None]:
    """Return, for each of the first arguments, where it is not read; None for nowhere."""
    value, alpha = (where_known(kwargs.get(key, 1), is_zero) for key in ("value", "alpha"))
    if name == "lerp":
        found = [[where_known(args[2], lambda v: v == 1)], [where_known(args[2], is_zero)]]
    elif name == "addcmul":
        found = [[], *([value, where_known(args[place], is_zero)] for place in (2, 1))]
    elif name == "addcdiv":
        found = [[], [value], [value, where_known(args[1], is_zero)]]
    elif name in ("add", "sub", "subtract"):
        found = [[], [alpha]]
    elif name == "rsub":
        found = [[alpha]]
    else:
        return []
    return [either(masks, shape) for masks in found]


def saturated(
    call: Call, name: str, tensors: list[Value], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Tensor | None:
    """Return where the result is the same at all ends of the unknown arguments' ranges."""
    if name not in MONOTONE or not any(distant(t) for t in tensors):
        return None
    shape = torch.empty(()).expand(call.shape)
    *thin, _ = together(*(part for t in tensors for part in (t.codes, ordinary(t))), shape)
    known = [codes == KNOWN for codes in thin[::2]]
    apart = [
        ~k & (v.abs() >= DISTANT) if v.is_floating_point() else torch.zeros_like(k)
        for k, v in zip(known, thin[1::2], strict=True)
    ]
    ranged = [bool(far.any()) for far in apart]
    results = []
    for factors in itertools.product(*((0.5, 1.5) if r else (1.0,) for r in ranged)):
        ends = [end(v, far, f) for v, far, f in zip(thin[1::2], apart, factors, strict=True)]
        results.append(evaluated(call, args, kwargs, ends))
    mask = torch.stack([k | far for k, far in zip(known, apart, strict=True)]).all(0) & torch.stack(apart).any(0)
    for other in results[1:]:
        mask = mask & (other == results[0])
    return mask


def evaluated(call: Call, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Tensor]) -> Tensor:
    """Run the operator on other tensors, in the order in which `tensors_in` finds its own."""
    rest = iter(tensors)
    with torch.no_grad():
        result = call.op(*swap(args, lambda _: next(rest)), **swap(kwargs, lambda _: next(rest)))
    first: Tensor = result[0] if isinstance(result, tuple) else result
    return first


def distant(value: Value) -> bool:
    """Tell whether a tensor holds unknowns that had something very low or high added to them."""
    if value.known is None or value.is_known or not value.dtype.is_floating_point:
        return False
    return bool((core(value.known).abs() >= DISTANT).any())


def end(values: Tensor, apart: Tensor, factor: float) -> Tensor:
    """Return one end of the range of unknowns: no further from what was added to them than half of it."""
    if factor == 1 or not values.is_floating_point():
        return values
    limit = torch.finfo(values.dtype).max
    return torch.where(apart, (values * factor).clamp(-limit, limit), values)


def where_known(arg: Any, test: Test) -> Tensor | None:
    """Return where an argument, a tensor or a number, is known and passes; None for nowhere."""
    if isinstance(arg, Value):
        if not arg.any_known or (arg.known is None and not bool(test(torch.zeros((), dtype=arg.dtype)))):
            return None
        codes, values = together(arg.codes, arg.values())
        return ((codes == KNOWN) & test(values)).expand(arg.shape)
    return test(torch.tensor(arg)) if isinstance(arg, (int, float, complex)) else None


def either(masks: list[Tensor | None], shape: torch.Size) -> Tensor | None:
    """Return where one of the masks is True; None for nowhere."""
    given = [mask for mask in masks if mask is not None and bool(core(mask).any())]
    if not given:
        return None
    mask = given[0]
    for other in given[1:]:
        mask = torch.logical_or(*together(mask, other))
    return mask.expand(shape)
