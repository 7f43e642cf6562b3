"""Which rule follows which operator.

`rule` enters a function under operator names: ``"linear"`` stands for every overload of ``aten::linear``,
``"max.dim"`` for that one overload.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

Rule = Callable[..., Any]
F = TypeVar("F", bound=Rule)

RULES: dict[str, Rule] = {}
CONTRACTIONS: set[str] = set()
VALUELESS: set[Rule | None] = set()
SIZED: set[Rule | None] = set()


def rule(*names: str, contraction: bool = False, valueless: bool = False, sized: bool = False) -> Callable[[F], F]:
    """Enter a rule for the ATen operators of the given names.

    Parameters
    ----------
    *names : str
        Names without ``aten::``, with the overload where only that one is meant.
    contraction : bool
        Whether these operators multiply and sum.
    valueless : bool
        Whether the operator is not to be run on known values: because it does not depend on them, or because it depends
        on how they are laid out in memory.
    sized : bool
        Whether the rule answers for the intervals that it returns. Results of all others are of any size where what
        they are made of is.
    """

    def enter(function: F) -> F:
        for name in names:
            if name in RULES:
                raise ValueError(f"{name} has a rule already: {RULES[name].__qualname__}")
            RULES[name] = function
            if contraction:
                CONTRACTIONS.add(name.partition(".")[0])
        if valueless:
            VALUELESS.add(function)
        if sized:
            SIZED.add(function)
        return function

    return enter


def find(op: Any) -> Rule | None:
    """Return the rule entered for an operator, its overload first; None where there is none."""
    name = op._schema.name if is_custom(op) else op._schema.name.partition("::")[2]
    return RULES.get(f"{name}.{op._overloadname}") or RULES.get(name)


def name_of(op: Any) -> str:
    """Return the operator's name without namespace and overload, as shown to users."""
    return str(op._schema.name.partition("::")[2]).strip("_")


def is_custom(op: Any) -> bool:
    """Tell whether the operator comes from elsewhere than PyTorch itself."""
    return not op._schema.name.startswith(("aten::", "prims::"))


def is_random(op: Any) -> bool:
    """Tell whether the operator draws random numbers."""
    return torch.Tag.nondeterministic_seeded in op.tags


def is_view(op: Any) -> bool:
    """Tell whether an operator returns views of its argument, by the aliasing its schema declares."""
    returns = op._schema.returns
    return bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)
