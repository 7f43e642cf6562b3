from __future__ import annotations

import numpy as np
import pytest

from depgraph.dag.graph import DependencyGraph
from depgraph.dag.runs import IntArray
from depgraph.metrics.flow.contraction import Supply, contract
from tests.metrics.synthetic import eager_attention, transformer


def shrunk(graph: DependencyGraph, capacity: IntArray) -> Supply:
    nodes = graph.dag.nodes
    fed, drained = np.zeros((2, nodes), np.int64)
    fed[: graph.dag.inputs], drained[graph.outputs["output"].nodes.starts] = 1, 1
    return contract(Supply(graph.dag, np.arange(nodes), fed, drained, capacity=capacity))


@pytest.mark.parametrize("tokens", [10, 30])
def test_scores_make_no_difference(tokens: int) -> None:
    graph = eager_attention(1, tokens)
    found = shrunk(graph, np.ones(graph.dag.nodes, np.int64))
    # The inputs, and the sums, which read all of them.
    assert (found.dag.nodes, found.dag.edges, found.dag.runs) == (2 * tokens, tokens**2, tokens)


def test_the_narrowest_stays() -> None:
    graph = transformer(1, 5)
    capacity = np.full(graph.dag.nodes, 9)
    narrow = next(operation for operation in graph.operations if operation.name == "tanh")
    capacity[narrow.start : narrow.stop] = 4
    found = shrunk(graph, capacity)
    assert found.origin[found.capacity == 4].tolist() == list(range(narrow.start, narrow.stop))


def test_runs_stay_whole_where_capacities_are_mixed() -> None:
    # Half of the nodes are narrower than what they read: drawn together one by one, they would leave n² / 4 runs.
    graph = transformer(2, 200)
    capacity = np.random.default_rng(0).integers(1, 100, graph.dag.nodes)
    assert shrunk(graph, capacity).dag.runs <= graph.dag.runs < 200**2 / 4
