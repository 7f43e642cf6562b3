"""How much a node lets through."""

from __future__ import annotations

from numbers import Rational
from typing import Any

import numpy as np

from depgraph.dag.graph import DependencyGraph
from depgraph.dag.runs import IntArray
from depgraph.errors import GraphError
from depgraph.metrics.weights import Weight, node_weights

#: The weights that say how much a node carries. The others say what it costs to compute, and inputs cost nothing.
CARRIED = ("ops", "scalars")


def capacities(graph: DependencyGraph, weight: Weight = "ops") -> IntArray:
    """Return how much each node carries, inputs included.

    Parameters
    ----------
    graph : DependencyGraph
    weight : {"ops", "scalars"} or callable, optional
        ``"ops"``: 1 each. ``"scalars"``: the numbers in its bundle; for an input, those of its tensor shared out over
        its positions. A callable takes a `Node`, an input or not, and returns a whole number of at least 0.

    Returns
    -------
    (nodes,) int64

    Raises
    ------
    GraphError
        Where the name is unknown, or a weight is no whole number.

    Examples
    --------
    >>> import networkx as nx
    >>> from depgraph import from_networkx
    >>> graph = from_networkx(nx.DiGraph([("x", "a"), ("a", "b")]), sources=["x"])
    >>> capacities(graph, lambda node: {"x": 2, "a": 3, "b": 5}[node.id])
    array([2, 3, 5])
    """
    nodes = graph.dag.nodes
    if isinstance(weight, str) and weight == "ops":
        return np.ones(nodes, np.int64)
    if callable(weight):
        return _counted([_checked(graph, number, weight(graph.node(number))) for number in range(nodes)])
    if not isinstance(weight, str) or weight not in CARRIED:
        node_weights(graph, weight)  # says so where there is no such weight at all
        names = ", ".join(repr(name) for name in CARRIED)
        raise GraphError(
            f"{weight!r} is what a node costs; a cut is measured in what nodes carry: {names}, or a function of a node."
        )
    found = graph.costs(weight)
    if found.dtype.kind != "i":
        found = _counted([_checked(graph, number, value) for number, value in enumerate(found.tolist())])
    return found


def _counted(values: list[int]) -> IntArray:
    if sum(values) >= 2**61:
        raise GraphError("The weights add up to 2⁶¹ or more, too much to add exactly; return smaller numbers.")
    return np.array(values, np.int64)


def _checked(graph: DependencyGraph, number: int, value: Any) -> int:
    exact = isinstance(value, np.bool_) or (isinstance(value, Rational) and value.denominator == 1)
    if not (exact or (isinstance(value, (float, np.floating)) and value.is_integer())) or value < 0:
        node = graph.node(number)
        raise GraphError(
            f"The weight of node {node.id!r} ({node.op}) is {value!r}; the weights of a cut are whole numbers of at "
            "least 0, so that it is exact: multiply fractions by what makes them whole."
        )
    return int(value)
