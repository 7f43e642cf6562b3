from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import depgraph
from depgraph.dag.graph import DependencyGraph
from depgraph.errors import GraphError
from depgraph.metrics.flow import width as module
from depgraph.metrics.flow.width import Width, width
from tests.metrics.antichains import executed_part, expected_width, is_antichain, largest_antichain, numbered
from tests.metrics.strategies import graphs
from tests.metrics.synthetic import Builder, eager_attention, nothing, one_to_one, recurrent, transformer, windows

CHOICES = ("never", "auto", "always")


def check(graph: DependencyGraph, expected: int) -> None:
    """Assert that the bounds hold, that the flow finds the width, and that the nodes are an antichain of that size."""
    dag = numbered(graph)
    for exact in CHOICES:
        found = width(graph, exact)
        assert found.size == len(found.numbers) == len(found.nodes)
        assert found.size <= expected <= found.upper
        assert found.is_exact == (found.size == found.upper)
        assert found.is_exact or exact == "never"
        assert (np.diff(found.numbers) > 0).all()
        assert (found.numbers >= graph.dag.inputs).all()
        assert is_antichain(dag, found.numbers.tolist())


def random_dag(count: int, density: float, reach: int, random) -> nx.DiGraph:
    dag = nx.DiGraph()
    dag.add_nodes_from(range(count))
    dag.add_edges_from((u, v) for v in range(count) for u in range(max(v - reach, 0), v) if random.random() < density)
    return dag


@given(graphs())
def test_models_of_any_shape(graph: DependencyGraph) -> None:
    check(graph, expected_width(executed_part(graph)))


@given(graphs(blocks=3, width=4))
@settings(max_examples=40)
def test_no_antichain_is_larger(graph: DependencyGraph) -> None:
    check(graph, largest_antichain(executed_part(graph)))


@given(st.integers(1, 12), st.floats(0.1, 1), st.integers(1, 12), st.randoms())
@settings(max_examples=60)
def test_any_dag_of_up_to_12_nodes(count: int, density: float, reach: int, random) -> None:
    dag = random_dag(count, density, reach, random)
    check(depgraph.from_networkx(dag), largest_antichain(dag))


@given(st.integers(13, 60), st.floats(0, 0.5), st.integers(1, 60), st.randoms(), st.booleans())
@settings(max_examples=40, deadline=None)
def test_larger_dags(count: int, density: float, reach: int, random, inputs: bool) -> None:
    dag = random_dag(count, density, reach, random)
    given_values = [v for v in dag if not dag.in_degree(v) and random.random() < 0.5] if inputs else []
    graph = depgraph.from_networkx(dag, sources=given_values)
    check(graph, expected_width(nx.DiGraph(dag.subgraph(set(dag) - set(given_values)))))


@pytest.mark.parametrize("tokens", [2, 3, 6])
@pytest.mark.parametrize("layers", [1, 3])
def test_attention_written_out(layers: int, tokens: int) -> None:
    # While the scores of all pairs are at work, so can the values be.
    graph = eager_attention(layers, tokens)
    check(graph, tokens * tokens + tokens)
    assert {node.op for node in width(graph).nodes} <= {"linear", "matmul", "div"}


@pytest.mark.parametrize("attention", ["causal", "full", "window", "centred"])
def test_the_bounds_of_a_transformer_meet(attention: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Operations follow each other position by position; the widest place is the two branches of the GELU.
    monkeypatch.setattr(module, "thinned", None)  # nothing else is needed
    graph = transformer(3, 20, attention, window=5)
    found = width(graph, "never")
    assert (found.size, found.upper, found.is_exact) == (40, 40, True)
    assert is_antichain(numbered(graph), found.numbers.tolist())


@pytest.mark.parametrize(("layers", "steps", "both_ways", "expected"), [(4, 9, False, 4), (1, 50, True, 2)])
def test_recurrent_layers(layers: int, steps: int, both_ways: bool, expected: int) -> None:
    check(recurrent(layers, steps, both_ways), expected)


def test_masked_scores_wait_for_nothing() -> None:
    # What nothing reads can run at the end: the scores that a causal mask hides are at work with the last layer's.
    tokens, layers = 5, 3
    build = Builder(tokens)
    where = np.arange(tokens)
    x = where
    for _ in range(layers):
        row, column = np.repeat(where, tokens), np.tile(where, tokens)
        scores = build.add("scores", one_to_one(x[row]), one_to_one(x[column]))
        x = build.add("softmax", windows(scores, where * tokens, where * tokens + where + 1))
    hidden = tokens * (tokens - 1) // 2
    check(build.graph(one_to_one(x)), layers * hidden + tokens * tokens - hidden)


def test_a_flow_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = depgraph.from_networkx(nx.DiGraph([(0, 2), (0, 3), (1, 3), (1, 4), (2, 5), (4, 5), (3, 6), (6, 7), (6, 8)]))
    expected = expected_width(executed_part(graph))
    monkeypatch.setattr(module, "large_antichain", lambda dag, depth, _: np.array([dag.nodes - 1]))
    monkeypatch.setattr(module, "_LARGEST_NETWORK", -1)
    bounds = width(graph, "auto")
    assert (bounds.size, bounds.is_exact) == (1, False)
    assert bounds.upper >= expected
    assert (width(graph, "always").size, width(graph, "always").is_exact) == (expected, True)
    monkeypatch.setattr(module, "_MOST_ARCS", -1)
    with pytest.raises(GraphError, match=r"vertices and arcs.*exact='never' gives bounds"):
        width(graph, "always")
    assert width(graph, "auto").size == 1


@pytest.mark.parametrize("where", ["thinned", "halved", "run_arcs"])
def test_memory_that_does_not_suffice(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise MemoryError

    graph = eager_attention(2, 3)
    monkeypatch.setattr(module, where, fails)
    for exact in ("auto", "always"):
        with pytest.raises(GraphError, match=r"graph of 81 nodes and \d+ runs; exact='never' gives bounds"):
            width(graph, exact)
    bounds = width(graph, "never")
    assert bounds.size <= 12 <= bounds.upper


@pytest.mark.parametrize("exact", ["sometimes", True, None, ["never"]])
def test_choices_that_are_none(exact: object) -> None:
    graph = depgraph.from_networkx(nx.DiGraph([(0, 1)]))
    with pytest.raises(GraphError, match="'never', 'auto' or 'always'; got"):
        width(graph, exact)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="'never', 'auto' or 'always'; got"):
        depgraph.parallelism(graph, exact_width=exact)  # type: ignore[arg-type]


def test_what_is_no_graph() -> None:
    with pytest.raises(GraphError, match="got a DiGraph"):
        width(nx.DiGraph())


@pytest.mark.parametrize("graph", [nothing(), depgraph.from_networkx(nx.empty_graph(3, nx.DiGraph), sources=range(3))])
@pytest.mark.parametrize("exact", CHOICES)
def test_graphs_without_work(graph: DependencyGraph, exact: module.Effort) -> None:
    found = width(graph, exact)
    assert (found.size, found.upper, found.is_exact, found.nodes) == (0, 0, True, [])


def test_it_shows_its_numbers_and_not_the_graph() -> None:
    graph = depgraph.from_networkx(nx.DiGraph([("a", "b"), ("a", "c")]))
    assert repr(width(graph)) == "Width(numbers=array([1, 2]), upper=2)"
    assert isinstance(width(graph), Width)
    assert [node.id for node in width(graph).nodes] == ["b", "c"]


def test_bounds_of_large_graphs_take_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = eager_attention(2, 12)
    patient = width(graph, "never")
    monkeypatch.setattr(module, "_QUICK", 100)
    quick = width(graph, "never")
    exact = width(graph, "always")
    assert quick.size <= patient.size <= exact.size == exact.upper <= patient.upper <= quick.upper
    assert quick.size < exact.size
    assert len(quick.nodes) == quick.size
