"""Which unknown numbers are certain to be positive: an infinity scaled by one of them stays what it is.

Positive stands for "not negative, and 0 at most by accident": an infinity times 0 is no number, and a model that
computes one has no use.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from depgraph.rules.arguments import tensors_in
from depgraph.rules.registry import name_of
from depgraph.rules.values import Value, core

# Positive whatever they are given.
ALWAYS = frozenset(("exp", "exp2", "softplus", "sigmoid", "special_expit", "cosh", "abs", "square", "sqrt", "rsqrt"))
ALWAYS |= frozenset(("norm", "linalg_vector_norm", "std", "var", "softmax", "safe_softmax"))
# Positive where all that they are given is.
KEPT = frozenset(("add", "mul", "div", "reciprocal", "pow", "minimum", "sum", "mean", "prod", "amax", "amin", "cumsum"))
KEPT |= frozenset(("view", "reshape", "unsafe_view", "expand", "unsqueeze", "squeeze", "permute", "transpose", "t"))
KEPT |= frozenset(("select", "slice", "clone", "to_copy", "contiguous", "alias", "detach", "cat", "stack", "flatten"))
# … where one of the tensors is, or the bound below.
RAISED = frozenset(("maximum", "clamp", "clamp_min"))
# Those whose second argument may be a number to compute with; of others it is an axis, a size or, in a power, of no
# matter. The first one is that of all that take a number there.
OPERANDS = frozenset(("add", "mul", "div"))


def signed(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
    """Mark the result of an operator as positive where that is certain."""
    if not isinstance(result, Value) or not result.dtype.is_floating_point or result.is_known:
        return result
    if op is torch.ops.aten.view.dtype:  # the same bits are other numbers
        return result
    return replace(result, positive=True) if positive(name_of(op), args, kwargs) else result


def positive(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Tell whether what an operator makes of its arguments is positive."""
    if name in ALWAYS:
        return True
    if name == "pow" and isinstance(args[1], (int, float)) and args[1] % 2 == 0:
        return True
    if name in RAISED:
        if name == "maximum":
            return any(map(above, args))
        low, high = kwargs.get("min", args[1] if len(args) > 1 else None), kwargs.get("max", (*args, None, None)[2])
        return above(low) and (high is None or above(high))
    if name not in KEPT:
        return False
    numbers = [a for a in args[: 1 + (name in OPERANDS)] if isinstance(a, (int, float))]
    return kwargs.get("alpha", 1) > 0 and all(above(a) for a in (*tensors_in(args, kwargs), *numbers))


def above(arg: Any) -> bool:
    """Tell whether an argument is positive."""
    if isinstance(arg, Value):
        return arg.positive or (arg.is_known and smallest(arg.values()) > 0)
    return isinstance(arg, (int, float)) and arg > 0


def smallest(values: Tensor) -> float:
    """Return the least of some numbers."""
    return float(core(values).min()) if values.numel() and not values.is_complex() else 0.0
