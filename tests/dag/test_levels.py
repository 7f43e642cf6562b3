from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from depgraph.dag.dag import Dag
from depgraph.dag.graph import DependencyGraph
from depgraph.dag.interop import from_networkx
from depgraph.dag.levels import depths, longest_path, settle, tails
from depgraph.dag.runs import Runs
from tests.metrics.strategies import graphs


@st.composite
def dags(draw: st.DrawFn) -> tuple[nx.DiGraph, list[int], dict[int, int]]:
    count = draw(st.integers(1, 14))
    pairs = [(u, v) for v in range(count) for u in range(v)]
    graph: nx.DiGraph = nx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else [])
    roots = [v for v in graph if not graph.in_degree(v)]
    sources = draw(st.lists(st.sampled_from(roots), unique=True))
    return graph, sources, {v: draw(st.integers(0, 5)) for v in graph}


def brute_force_depths(graph: nx.DiGraph, sources: list[int], weight: dict[int, int]) -> dict[int, int]:
    depth: dict[int, int] = {}
    for v in nx.topological_sort(graph):
        before = max((depth[u] for u in graph.predecessors(v)), default=0)
        depth[v] = 0 if v in sources else before + weight[v]
    return depth


@given(dags())
def test_depths_and_longest_path_equal_brute_force(case: tuple[nx.DiGraph, list[int], dict[int, int]]) -> None:
    graph, sources, weight = case
    made = from_networkx(graph, sources=sources)
    names = [made.node(i).id for i in range(made.dag.nodes)]
    for given_weight, expected_weight in ((None, dict.fromkeys(graph, 1)), (weight, weight)):
        weights = None if given_weight is None else np.array([given_weight[n] for n in names])  # type: ignore[index]
        expected = brute_force_depths(graph, sources, expected_weight)
        depth = depths(made.dag, weights)
        assert dict(zip(names, depth.tolist(), strict=True)) == expected
        path = [names[i] for i in longest_path(made.dag, depth)]
        assert nx.is_path(graph, path) or not path
        assert not set(path) & set(sources)
        assert sum(expected_weight[v] for v in path) == max(expected.values())


def test_full_attention_over_uneven_depths() -> None:
    # Two inputs, a chain 2 → 3 → 4 in blocks of their own, then three nodes reading long and overlapping runs.
    reads = Runs.from_elements(
        np.array([2, 3, 4, 5, 5, 5, 6, 6, 6, 6, 6, 7, 7]), np.array([0, 2, 3, 0, 1, 2, 0, 1, 2, 3, 4, 0, 4]), 8
    )
    blocks = np.array([0, 2, 3, 4, 5, 8])
    dag = Dag(2, reads.split_at(blocks[1:]), blocks)
    assert depths(dag).tolist() == [0, 0, 1, 2, 3, 2, 4, 4]
    assert longest_path(dag).tolist() == [2, 3, 4, 6]


def test_many_long_runs_take_no_memory_an_edge() -> None:
    n = 3000
    indptr, starts, stops = np.arange(-n, n + 1).clip(0), np.zeros(n, np.int64), np.arange(1, n + 1)
    dag = Dag(n, Runs(indptr.astype(np.int64), starts, stops), np.array([0, n, 2 * n]))
    assert dag.edges == n * (n + 1) // 2
    assert depths(dag).tolist() == [0] * n + [1] * n


def test_weights_keep_their_type_and_are_not_changed() -> None:
    weights = np.array([9.0, 0.5, 0.25])
    made = from_networkx(nx.path_graph(3, create_using=nx.DiGraph), sources=[0])
    depth = depths(made.dag, weights)
    assert depth.dtype == np.float64
    assert depth.tolist() == [0.0, 0.5, 0.75]
    assert weights.tolist() == [9.0, 0.5, 0.25]


@pytest.mark.parametrize("sources", [[], [0, 1]])
def test_graphs_without_edges(sources: list[int]) -> None:
    graph = nx.empty_graph(2, create_using=nx.DiGraph)
    made = from_networkx(graph, sources=sources)
    assert depths(made.dag).tolist() == ([0, 0] if sources else [1, 1])
    assert longest_path(made.dag).tolist() == ([] if sources else [0])


@given(dags())
def test_tails_equal_brute_force(case: tuple[nx.DiGraph, list[int], dict[int, int]]) -> None:
    graph, sources, weight = case
    made = from_networkx(graph, sources=sources)
    names = [made.node(i).id for i in range(made.dag.nodes)]
    for given_weight, expected_weight in ((None, dict.fromkeys(graph, 1)), (weight, weight)):
        expected: dict[int, int] = {}
        for v in reversed(list(nx.topological_sort(graph))):
            expected[v] = max((expected[u] + expected_weight[u] for u in graph.successors(v)), default=0)
        weights = None if given_weight is None else np.array([given_weight[name] for name in names])
        assert tails(made.dag, weights).tolist() == [expected[name] for name in names]


@given(graphs(blocks=5, width=12), st.data())
def test_tails_over_runs_of_any_length(made: DependencyGraph, data: st.DataObject) -> None:
    dag = made.dag
    weights = np.array(data.draw(st.lists(st.integers(0, 9), min_size=dag.nodes, max_size=dag.nodes)))
    graph: nx.DiGraph = nx.DiGraph()
    graph.add_nodes_from(range(dag.nodes))
    graph.add_edges_from(zip(*(part.tolist() for part in dag.edge_arrays()), strict=True))
    # networkx weighs edges: each edge costs what its reader does.
    for _, reader, attributes in graph.edges(data=True):
        attributes["weight"] = int(weights[reader])
    expected = [nx.dag_longest_path_length(graph.subgraph(nx.descendants(graph, v) | {v})) for v in range(dag.nodes)]
    assert tails(dag, weights).tolist() == expected
    assert tails(dag, weights + 0.5).dtype == np.float64


@given(graphs(), st.data())
def test_settled_nodes_take_the_largest_value_they_read(made: DependencyGraph, data: st.DataObject) -> None:
    dag = made.dag
    values = np.array(data.draw(st.lists(st.integers(0, 99), min_size=dag.nodes, max_size=dag.nodes)))
    nodes = (
        data.draw(st.lists(st.integers(dag.inputs, dag.nodes - 1), unique=True).map(sorted))
        if (dag.nodes > dag.inputs)
        else []
    )
    expected = values.tolist()
    for v in nodes:
        expected[v] = max((expected[u] for u in dag.reads.row(v).tolist()), default=0)
    settle(dag, values, np.array(nodes, np.int64))
    assert values.tolist() == expected
