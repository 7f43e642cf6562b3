"""What nodes cost, as numbers that can be added: checked, and exact where all of them are integers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from depgraph.dag.levels import NumberArray
from depgraph.errors import GraphError

NAMES = ("flops", "bytes", "seconds", "scalars")
"""What operations cost, by name."""

_MISSING = object()

TOO_MUCH = 2**61
"""Integers that add up to this much are not added: twice the sum along a path has to fit into 64 bits."""


def as_cost(value: Any) -> int | float | None:
    """Return a finite number of at least 0 as Python's own, None for anything else.

    Examples
    --------
    >>> as_cost(np.int32(3)), as_cost(True), as_cost(-1), as_cost("1"), as_cost(float("nan"))
    (3, 1, None, None, None)
    """
    if isinstance(value, (bool, np.bool_, int, np.integer)):
        value = int(value)
    elif isinstance(value, (Real, np.floating)):
        try:
            value = float(value)
        except OverflowError:
            return None
    return value if isinstance(value, (int, float)) and 0 <= value < float("inf") else None


def as_costs(values: Sequence[int | float], what: str) -> NumberArray:
    """Return numbers of `as_cost` as an array: of int64 where all are integers, else of float64.

    Parameters
    ----------
    values : sequence of int or float
    what : str
        How an error message begins: ``"The weights"``.

    Raises
    ------
    GraphError
        Where they add up to more than can be added without an error.
    """
    exact = all(isinstance(value, int) for value in values)
    if exact and sum(values) >= TOO_MUCH:
        raise GraphError(f"{what} add up to 2⁶¹ or more, too much to add exactly; take smaller numbers.")
    try:
        finite = exact or sum(map(float, values)) < float("inf")
    except OverflowError:
        finite = False
    if not finite:
        raise GraphError(f"{what} add up to more than a float can hold; take smaller numbers.")
    return np.array(values, np.int64 if exact else np.float64)


def from_attributes(
    names: Sequence[Hashable], nodes: Sequence[Mapping[str, Any]], inputs: int
) -> Callable[[str], NumberArray]:
    """Return what finds the costs of nodes that have them as attributes.

    Parameters
    ----------
    names : sequence of hashable
    nodes : sequence of mapping
        The attributes of each node. They may change afterwards; the costs do not.
    inputs : int
        The first nodes are inputs: they cost nothing, but in ``"scalars"``.
    """
    given = {cost: [node.get(cost, _MISSING) for node in nodes] for cost in NAMES}

    def find(cost: str) -> NumberArray:
        first = 0 if cost == "scalars" else inputs
        values: list[int | float] = [0] * first
        for name, value in zip(names[first:], given[cost][first:], strict=True):
            if value is _MISSING:
                raise GraphError(f"The node {name!r} has no attribute {cost!r} to say what it costs.")
            number = as_cost(value)
            if number is None:
                raise GraphError(
                    f"The attribute {cost!r} of node {name!r} is {value!r}; a weight is a finite number of at least 0."
                )
            values.append(number)
        return as_costs(values, f"The attributes {cost!r}")

    return find
