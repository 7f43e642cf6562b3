"""What a node costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from depgraph.dag import costs
from depgraph.dag.graph import DependencyGraph, Node, check_graph
from depgraph.errors import GraphError

#: The name of a weight, or a function of a node.
Weight = str | Callable[[Node], Any]

NAMES = ("ops", "contractions", *costs.NAMES)


def node_weights(graph: DependencyGraph, weight: Weight = "ops") -> npt.NDArray[Any]:
    """Return what each node costs.

    Parameters
    ----------
    graph : DependencyGraph
    weight : {"ops", "contractions", "flops", "bytes", "seconds", "scalars"} or callable, optional
        ``"ops"``: 1 each. ``"contractions"``: 1 for operations that multiply and sum, 0 for the rest. ``"flops"``: its
        share of its operation's floating-point operations, as PyTorch counts them (2 a multiply-add, 0 for elementwise
        operations). ``"bytes"``: of the bytes that its operation reads and writes. ``"seconds"``: of the time that its
        operation takes on the example inputs, measured when first asked for. ``"scalars"``: how many elements of its
        operation's result it stands for. A callable takes a `Node` and returns a finite number of at least 0.

    Returns
    -------
    (nodes,) array
        0 for inputs. Of int64 where all weights are integers, else of float64.

    Raises
    ------
    GraphError
        Where the name is unknown, the graph does not know that cost, or a callable returns anything else.

    Examples
    --------
    >>> import networkx as nx
    >>> from depgraph import from_networkx
    >>> graph = from_networkx(nx.DiGraph([("x", "a"), ("a", "b")]), sources=["x"])
    >>> node_weights(graph, lambda node: {"a": 3, "b": 5}[node.id])
    array([0, 3, 5])
    """
    check_graph(graph)
    nodes, inputs = graph.dag.nodes, graph.dag.inputs
    if callable(weight):
        own = costs.as_costs([_checked(graph, number, weight) for number in range(inputs, nodes)], "The weights")
        return np.append(np.zeros(inputs, own.dtype), own)
    if not isinstance(weight, str) or weight not in NAMES:
        valid = ", ".join(repr(name) for name in NAMES)
        raise GraphError(f"There is no weight {weight!r}. The weights are: {valid}, or a function of a node.")
    if weight in costs.NAMES:
        found = graph.costs(weight).copy()
        found[:inputs] = 0
        return found
    result = np.zeros(nodes, np.int64)
    if weight == "ops":
        result[inputs:] = 1
        return result
    operations = graph.operations
    sizes = np.array([operation.stop - operation.start for operation in operations], np.int64)
    result[inputs:] = np.repeat(np.array([operation.contraction for operation in operations], np.int64), sizes)
    return result


def _checked(graph: DependencyGraph, number: int, weight: Callable[[Node], Any]) -> int | float:
    node = graph.node(number)
    given = weight(node)
    value = costs.as_cost(given)
    if value is None:
        raise GraphError(
            f"The weight of node {node.id!r} ({node.op}) is {given!r}; a weight is a finite number of at least 0."
        )
    return value
