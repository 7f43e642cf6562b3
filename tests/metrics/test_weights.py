from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import depgraph
from depgraph.dag.graph import DependencyGraph
from depgraph.errors import GraphError
from depgraph.metrics.weights import node_weights
from tests.metrics.strategies import graphs
from tests.metrics.synthetic import recurrent, transformer


def chain() -> DependencyGraph:
    return depgraph.from_networkx(nx.DiGraph([("x", "a"), ("a", "b")]), sources=["x"])


def test_names() -> None:
    graph = transformer(1, 3)
    assert node_weights(graph).tolist() == [0] * 3 + [1] * (graph.dag.nodes - 3)
    names = [graph.node(n).op for n in range(graph.dag.nodes)]
    expected = [int(name in ("linear", "attention")) for name in names]
    assert node_weights(graph, "contractions").tolist() == expected
    assert node_weights(recurrent(2, 3), "contractions").sum() == 6


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ((2, 3), np.int64),
        ((True, np.int32(4)), np.int64),
        ((2, 0.5), np.float64),
        ((np.float32(0.25), Fraction(1, 2)), np.float64),
    ],
)
def test_functions_of_a_node(values: tuple[object, object], dtype: type) -> None:
    found = node_weights(chain(), lambda node: dict(zip("ab", values, strict=True))[node.id])
    assert found.dtype == dtype
    assert found.tolist() == [0, *map(float, values)]


@pytest.mark.parametrize("value", [-1, -0.5, float("nan"), float("inf"), None, "1", Decimal(1), 1j])
def test_what_is_no_weight(value: object) -> None:
    with pytest.raises(GraphError) as caught:
        node_weights(chain(), lambda node: value if node.id == "b" else 1)
    assert str(caught.value) == (f"The weight of node 'b' (b) is {value!r}; a weight is a finite number of at least 0.")


@pytest.mark.parametrize("name", ["flop", "", None, 5, np.array([1, 2]), ["ops"]], ids=repr)
def test_unknown_names(name: object) -> None:
    with pytest.raises(GraphError) as caught:
        node_weights(chain(), name)  # type: ignore[arg-type]
    assert str(caught.value) == (
        f"There is no weight {name!r}. The weights are: 'ops', 'contractions', 'flops', 'bytes', 'seconds', 'scalars', "
        "or a function of a node."
    )


def test_integers_too_large_to_add() -> None:
    with pytest.raises(GraphError, match="add up to 2⁶¹ or more"):
        node_weights(chain(), lambda node: 2**60)
    assert node_weights(chain(), lambda node: 2**59).tolist() == [0, 2**59, 2**59]


def test_what_a_graph_does_not_know() -> None:
    with pytest.raises(GraphError, match="This graph does not say what its nodes cost in bytes"):
        node_weights(recurrent(2, 3), "bytes")


@pytest.mark.parametrize("weight", ["flops", "bytes", "seconds", "scalars"])
def test_costs_of_inputs_are_left_out(weight: str) -> None:
    dag = nx.DiGraph([("x", "a"), ("a", "b")])
    nx.set_node_attributes(dag, {"x": 9, "a": 2, "b": 3}, weight)
    graph = depgraph.from_networkx(dag, sources=["x"], targets=["b"])
    assert node_weights(graph, weight).tolist() == [0, 2, 3]
    assert depgraph.critical_path(graph, weight).length == depgraph.path_lengths(graph, weight=weight)[0, 0] == 5


@st.composite
def weighted(draw: st.DrawFn) -> tuple[DependencyGraph, nx.DiGraph]:
    """Return a graph and its DAG whose nodes have large integers, or floats, as ``flops``."""
    graph = draw(graphs())
    largest = 2**61 // max(1, graph.dag.nodes) - 1
    kinds = [st.integers(0, largest), st.integers(2**53 - 2, 2**53 + 2), st.floats(0, 1e300), st.floats(0, 1)]
    kind = draw(st.sampled_from(kinds))
    dag = graph.to_networkx()
    inputs = set(range(graph.dag.inputs))
    for node in dag.nodes:
        dag.nodes[node]["flops"] = 0 if node in inputs else draw(kind)
    graph.find_costs = lambda name: np.array([dag.nodes[n]["flops"] for n in range(graph.dag.nodes)])
    return graph, dag


@given(weighted())
def test_every_metric_adds_exactly(case: tuple[DependencyGraph, nx.DiGraph]) -> None:
    graph, dag = case
    weights = {node: Fraction(data["flops"]) for node, data in dag.nodes(data=True)}
    longest: dict[int, Fraction] = {}
    for node in nx.topological_sort(dag):
        longest[node] = weights[node] + max((longest[u] for u in dag.predecessors(node)), default=Fraction(0))
    inputs = range(graph.dag.inputs)
    span = max((length for node, length in longest.items() if node not in inputs), default=Fraction(0))
    found, path = depgraph.parallelism(graph, "flops"), depgraph.critical_path(graph, "flops")
    exact = isinstance(path.length, int)
    assert found.span == path.length
    assert math.isclose(found.span, span, rel_tol=1e-9)
    assert math.isclose(found.work, sum(weights.values()), rel_tol=1e-9)
    if exact:
        assert (found.work, found.span) == (sum(weights.values()), span)
        assert found.average == (found.work / found.span if found.span else 0)
    lengths = depgraph.path_lengths(graph, weight="flops")
    source, target = graph.inputs.default(), graph.outputs.default()
    for i in range(source.count):
        start = int(source.nodes.row(i)[0])
        near = {start: Fraction(0)}
        for node in nx.topological_sort(dag):
            before = [near[u] for u in dag.predecessors(node) if u in near]
            if before:
                near[node] = weights[node] + min(before)
        for j in range(target.count):
            ends = [near[n] for n in target.nodes.row(j).tolist() if n in near]
            expected = min(ends, default=Fraction(-1))
            assert lengths[i, j] == expected if exact else math.isclose(lengths[i, j], expected, rel_tol=1e-9)
            assert depgraph.shortest_path(graph, (source.name, i), (target.name, j), "flops").length == lengths[i, j]


def test_floats_too_large_to_add() -> None:
    with pytest.raises(GraphError, match="The weights add up to more than a float can hold"):
        node_weights(chain(), lambda node: 1e308)
