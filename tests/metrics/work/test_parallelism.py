from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import depgraph
from depgraph.dag.graph import DependencyGraph
from depgraph.metrics.work.parallelism import Parallelism, parallelism
from tests.metrics.antichains import executed_part, expected_width, largest_antichain
from tests.metrics.strategies import graphs
from tests.metrics.synthetic import eager_attention, nothing, recurrent, transformer


@given(graphs())
@settings(max_examples=40)
def test_width_is_what_width_finds(graph: DependencyGraph) -> None:
    for exact in ("never", "auto", "always"):
        found, alone = parallelism(graph, exact_width=exact), depgraph.width(graph, exact)
        assert (found.width, found.width_is_exact, found.width_upper) == (alone.size, alone.is_exact, alone.upper)


@given(st.integers(1, 9), st.floats(0, 1), st.randoms())
def test_width_of_any_dag(count: int, density: float, random) -> None:
    dag = nx.DiGraph()
    dag.add_nodes_from(range(count))
    dag.add_edges_from((u, v) for v in range(count) for u in range(v) if random.random() < density)
    found = parallelism(depgraph.from_networkx(dag))
    assert (found.width, found.width_is_exact) == (largest_antichain(dag), True)
    assert found.level_widths == [len(layer) for layer in nx.topological_generations(dag)]


@given(graphs(), st.data())
@settings(max_examples=40)
def test_work_span_and_levels(graph: DependencyGraph, data: st.DataObject) -> None:
    dag = executed_part(graph)
    found = parallelism(graph)
    layers = [len(layer) for layer in nx.topological_generations(dag)]
    assert found.level_widths == layers
    assert (found.work, found.span) == (len(dag), len(layers))
    assert found.average == (len(dag) / len(layers) if layers else 0)
    cost = {n: data.draw(st.integers(0, 5)) for n in dag}
    weighted = parallelism(graph, weight=lambda node: cost[node.id])
    assert weighted.work == sum(cost.values())
    assert weighted.span == depgraph.critical_path(graph, weight=lambda node: cost[node.id]).length
    assert (weighted.width, weighted.level_widths) == (found.width, found.level_widths)


@pytest.mark.parametrize("tokens", [3, 12, 60])
def test_attention_written_out(tokens: int) -> None:
    # While the scores of all pairs are at work, so can the values be.
    found = parallelism(eager_attention(2, tokens))
    assert (found.width, found.width_is_exact) == (tokens * tokens + tokens, True)


@pytest.mark.parametrize("tokens", [1, 9, 100])
@pytest.mark.parametrize("attention", ["causal", "full", "window"])
def test_transformers(attention: str, tokens: int) -> None:
    # The two branches of the GELU.
    found = parallelism(transformer(3, tokens, attention, window=5))
    assert (found.work, found.span, found.width) == (54 * tokens, 51, 2 * tokens)


@pytest.mark.parametrize(("layers", "steps"), [(1, 5), (4, 8), (8, 4), (3, 200)])
def test_recurrent_layers(layers: int, steps: int) -> None:
    found = parallelism(recurrent(layers, steps))
    assert (found.work, found.span, found.width) == (layers * steps, layers + steps - 1, min(layers, steps))
    assert found.average == layers * steps / (layers + steps - 1)


@pytest.mark.parametrize("steps", [2, 5, 50])
def test_both_directions_run_side_by_side(steps: int) -> None:
    found = parallelism(recurrent(1, steps, both_ways=True))
    assert (found.work, found.span, found.width) == (2 * steps, steps, 2)
    two = parallelism(recurrent(2, steps, both_ways=True))
    assert (two.work, two.span, two.width) == (4 * steps, 2 * steps, expected_width_of_two_layers(steps))


def expected_width_of_two_layers(steps: int) -> int:
    return expected_width(executed_part(recurrent(2, steps, both_ways=True)))


def test_the_operation_graph_shows_branches() -> None:
    found = parallelism(eager_attention(2, 5).collapse())
    assert (found.work, found.span, found.width) == (18, 14, 3)
    assert found.level_widths == [3, *[1] * 6, 3, *[1] * 6]


@pytest.mark.parametrize("graph", [nothing(), depgraph.from_networkx(nx.empty_graph(3, nx.DiGraph), sources=range(3))])
def test_graphs_without_work(graph: DependencyGraph) -> None:
    assert parallelism(graph) == Parallelism(0, 0, 0.0, 0, True, 0, [])
    assert parallelism(graph, weight=lambda node: 1.5) == Parallelism(0, 0, 0.0, 0, True, 0, [])


def test_weights_of_nothing() -> None:
    graph = depgraph.from_networkx(nx.path_graph(3, create_using=nx.DiGraph))
    assert parallelism(graph, weight="contractions") == Parallelism(0, 0, 0.0, 1, True, 1, [1, 1, 1])
