"""What is to be known of an elementwise operator, so that its result over intervals can be found by trying it.

All tables are keyed by what PyTorch calls an operator's packet: ``torch.ops.aten.add`` stands for all its overloads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten


def packets(*names: str) -> list[Any]:
    """Return the operators of these names."""
    return [getattr(aten, name) for name in names]


def packet_of(op: Any) -> Any:
    """Return the packet of an overload; of a primitive, that of the operator it is named after."""
    packet = op.overloadpacket
    return getattr(aten, packet.__name__, packet) if op.namespace == "prims" else packet


# Where, besides at 0, -1 and 1, at the numbers among its arguments and where its arguments are equal, an operator turns
# from rising to falling in one of its arguments, jumps, or changes its form. Between these places it is monotone in
# each argument, so that what it makes of them and of the ends of intervals is all that it makes of what is between.
TURNS: dict[Any, tuple[float, ...]] = dict.fromkeys(
    packets(
        *("add", "sub", "rsub", "mul", "div", "true_divide", "neg"),
        *("maximum", "minimum", "fmax", "fmin", "clamp", "clamp_min", "clamp_max", "clip", "abs", "square"),
        *("relu", "hardtanh", "leaky_relu", "elu", "softplus", "threshold", "hardshrink", "softshrink", "relu6"),
        *("celu", "selu"),
        *("exp", "exp2", "expm1", "sigmoid", "tanh", "sinh", "cosh", "asinh", "atan"),
        *("erf", "erfc", "sqrt", "rsqrt", "reciprocal"),
        *("log", "log2", "log10", "log1p", "logaddexp", "logaddexp2", "xlogy"),
        *("sign", "sgn", "signbit", "heaviside", "floor", "ceil", "round", "trunc"),
        *("gt", "ge", "lt", "le", "eq", "ne"),
        *("logical_not", "logical_and", "logical_or", "logical_xor", "special_xlog1py", "deg2rad", "rad2deg"),
        *("isnan", "isinf", "isfinite", "isposinf", "isneginf", "nan_to_num", "pow", "float_power"),
        *("lerp", "addcmul", "addcdiv", "copysign"),
    ),
    (),
)
TURNS |= {
    aten.silu: (-1.2784645427610738,),
    aten.gelu: (-0.7517915246935645, -0.75246142207098),
    aten.mish: (-1.1924312145154952,),
    aten.hardsigmoid: (-3.0, 3.0),
}

# Those by which intervals of one unknown stay as wide as they come out. What others make of ordinary numbers, and these
# of several, is taken to be ordinary again.
LINEAR = frozenset(
    packets(
        *("add", "sub", "rsub", "mul", "div", "true_divide", "neg"),
        *("maximum", "minimum", "fmax", "fmin", "clamp", "clamp_min", "clamp_max", "clip", "abs", "relu"),
        *("nan_to_num", "floor", "ceil", "round", "trunc", "leaky_relu", "deg2rad", "rad2deg"),
        *("threshold", "hardshrink", "softshrink", "copysign", "hardtanh", "relu6"),
    )
)
# Of those, the ones that divide by their second argument: they are linear in the first alone.
DIVISIONS = frozenset(packets("div", "true_divide"))
# Those whose results are as many times larger than ordinary as their factors are.
PRODUCTS = frozenset(packets("mul")) | DIVISIONS
POWERS = frozenset(packets("pow", "float_power"))
# Those that look at whether a number is finite: they see what runs over, where a number may be of any size.
LOOKS = frozenset(packets("isnan", "isinf", "isfinite", "isposinf", "isneginf", "nan_to_num"))

# What is certain of results of operators that are not tried: they lie between these numbers.
IMAGES: dict[Any, tuple[float, float]] = {
    **dict.fromkeys(packets("sin", "cos", "frac"), (-1.0, 1.0)),
    **dict.fromkeys(packets("atan2"), (-math.pi, math.pi)),
    **dict.fromkeys(packets("asin"), (-math.pi / 2, math.pi / 2)),
    **dict.fromkeys(packets("acos"), (0.0, math.pi)),
}

Test = Callable[[torch.Tensor], torch.Tensor]


def _zero(values: torch.Tensor) -> torch.Tensor:
    return values == 0


def _ones(values: torch.Tensor) -> torch.Tensor:
    return values == (
        1 if values.dtype == torch.bool else -1 if values.dtype.is_signed else torch.iinfo(values.dtype).max
    )


def _unit(values: torch.Tensor) -> torch.Tensor:
    return (values == 1) | ((values == -1) if values.dtype.is_signed else (values != values))


# Operators on integers, and products of complex numbers, that are not tried either: where their first or second
# argument settles the result, to what it is beside a 1.
SETTLED_BY: dict[Any, tuple[Test | None, Test | None]] = {
    **dict.fromkeys(packets("bitwise_and", "mul"), (_zero, _zero)),
    **dict.fromkeys(packets("bitwise_or"), (_ones, _ones)),
    **dict.fromkeys(packets("bitwise_left_shift", "__lshift__", "bitwise_right_shift", "__rshift__"), (_zero, None)),
    **dict.fromkeys(packets("div", "true_divide"), (_zero, None)),
    **dict.fromkeys(packets("remainder", "fmod"), (_zero, _unit)),
}
