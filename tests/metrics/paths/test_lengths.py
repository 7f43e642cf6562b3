from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import dijkstra

import depgraph
from depgraph.dag.graph import DependencyGraph, Node
from depgraph.errors import GraphError, PositionError
from depgraph.metrics.paths import passage
from depgraph.metrics.paths.lengths import critical_path, path_lengths, shortest_path
from depgraph.metrics.paths.passage import Passage
from tests.metrics.strategies import as_networkx, graphs
from tests.metrics.synthetic import eager_attention, nothing, recurrent, transformer


def expected_lengths(graph: DependencyGraph, cost: dict[int, float]) -> np.ndarray:
    """Return what Dijkstra's algorithm finds with each node's cost on the edges into it."""
    dag = as_networkx(graph)
    for u, v in dag.edges:
        dag.edges[u, v]["cost"] = cost.get(v, 0)
    rows = []
    for i in range(graph.inputs["x"].count):
        found = nx.single_source_dijkstra_path_length(dag, ("x", i), weight="cost")
        rows.append([found.get(("y", j), -1) for j in range(graph.outputs["output"].count)])
    return np.array(rows)


def ones(graph: DependencyGraph) -> dict[int, float]:
    return dict.fromkeys(range(graph.dag.inputs, graph.dag.nodes), 1)


@given(graphs())
def test_lengths_equal_those_of_networkx(graph: DependencyGraph) -> None:
    found = path_lengths(graph)
    assert found.dtype == np.int64
    assert np.array_equal(found, expected_lengths(graph, ones(graph)))


@given(graphs(blocks=4), st.data())
def test_weighted_lengths_equal_those_of_networkx(graph: DependencyGraph, data: st.DataObject) -> None:
    top = data.draw(st.sampled_from([1, 3, 10**4, 10**9, 10**15]))
    count = graph.dag.nodes
    cost = {n: data.draw(st.integers(0, top)) for n in range(graph.dag.inputs, count)}
    found = path_lengths(graph, weight=lambda node: cost[node.id])
    assert found.dtype == np.int64
    assert np.array_equal(found, expected_lengths(graph, cost))
    halves = path_lengths(graph, weight=lambda node: cost[node.id] / 2)
    assert halves.dtype == (np.float64 if cost else np.int64)
    assert np.array_equal(halves, np.where(found < 0, -1, found / 2))


@given(graphs())
@settings(max_examples=40)
def test_contractions_count_operations_that_multiply_and_sum(graph: DependencyGraph) -> None:
    cost = {n: int(o.contraction) for o in graph.operations for n in range(o.start, o.stop)}
    assert np.array_equal(path_lengths(graph, weight="contractions"), expected_lengths(graph, cost))


@given(graphs(), st.data())
def test_shortest_paths_are_paths_of_that_length(graph: DependencyGraph, data: st.DataObject) -> None:
    lengths = path_lengths(graph)
    i = data.draw(st.integers(0, lengths.shape[0] - 1))
    j = data.draw(st.integers(0, lengths.shape[1] - 1))
    path = shortest_path(graph, ("x", i), ("output", j))
    assert path.length == lengths[i, j]
    assert len(path.nodes) == max(path.length, 0)
    if path.length >= 0:
        numbers = [node.id for node in path.nodes]
        assert nx.is_path(as_networkx(graph), [("x", i), i, *numbers, ("y", j)])


@given(graphs(), st.data())
@settings(max_examples=40)
def test_shortest_paths_by_weight(graph: DependencyGraph, data: st.DataObject) -> None:
    cost = {n: data.draw(st.sampled_from([0, 0.25, 1, 2.5])) for n in range(graph.dag.inputs, graph.dag.nodes)}
    lengths = path_lengths(graph, weight=lambda node: cost[node.id])
    j = data.draw(st.integers(0, lengths.shape[1] - 1))
    path = shortest_path(graph, ("x", 0), ("output", j), weight=lambda node: cost[node.id])
    assert path.length == lengths[0, j]
    if path.length >= 0:
        assert sum(cost[node.id] for node in path.nodes) == path.length
        assert nx.is_path(as_networkx(graph), [("x", 0), 0, *(node.id for node in path.nodes), ("y", j)])


@given(graphs())
def test_critical_path_is_a_longest_path(graph: DependencyGraph) -> None:
    path = critical_path(graph)
    numbers = [node.id for node in path.nodes]
    executed = as_networkx(graph).subgraph(range(graph.dag.inputs, graph.dag.nodes))
    assert path.length == len(numbers) == len(nx.dag_longest_path(executed))
    assert not numbers or nx.is_path(executed, numbers)


@given(graphs(), st.data())
@settings(max_examples=40)
def test_critical_path_by_weight(graph: DependencyGraph, data: st.DataObject) -> None:
    cost = {n: data.draw(st.integers(0, 5)) for n in range(graph.dag.inputs, graph.dag.nodes)}
    path = critical_path(graph, weight=lambda node: cost[node.id])
    dag = as_networkx(graph)
    heaviest: dict[object, int] = {}
    for v in nx.topological_sort(dag):
        heaviest[v] = cost.get(v, 0) + max((heaviest[u] for u in dag.predecessors(v)), default=0)
    assert path.length == max(heaviest.values()) == sum(cost[node.id] for node in path.nodes)


@pytest.mark.parametrize("attention", ["causal", "full", "window", "centred"])
@pytest.mark.parametrize("tokens", [1, 2, 23, 70])
def test_transformers(attention: str, tokens: int) -> None:
    graph = transformer(3, tokens, attention, window=4)
    assert np.array_equal(path_lengths(graph), expected_lengths(graph, ones(graph)))


@pytest.mark.parametrize("tokens", [2, 17])
def test_causal_transformer_in_closed_form(tokens: int) -> None:
    # An embedding, two adds a layer along the residual stream, a norm and a projection; attention takes four more.
    lengths = path_lengths(transformer(12, tokens))
    expected = np.where(np.tri(tokens, dtype=bool).T, 27 + 4 * (1 - np.eye(tokens, dtype=int)), -1)
    assert np.array_equal(lengths, expected)


@pytest.mark.parametrize("both_ways", [False, True])
def test_recurrent_layers(both_ways: bool) -> None:
    graph = recurrent(2, 30, both_ways)
    assert np.array_equal(path_lengths(graph), expected_lengths(graph, ones(graph)))


def test_attention_written_out() -> None:
    graph = eager_attention(2, 7)
    assert np.array_equal(path_lengths(graph), expected_lengths(graph, ones(graph)))


@pytest.mark.parametrize("graph", [transformer(2, 40), recurrent(2, 40, both_ways=True), eager_attention(1, 9)])
def test_sources_are_taken_in_parts_where_memory_is_short(
    graph: DependencyGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = path_lengths(graph)
    monkeypatch.setattr(passage, "_MEMORY", 4000)
    taken = []
    starts = Passage.starts
    monkeypatch.setattr(Passage, "starts", lambda way, part, *rest: taken.append(len(part)) or starts(way, part, *rest))
    assert np.array_equal(path_lengths(graph), whole)
    assert len(taken) > 1
    assert sum(taken) == len(whole)


def test_every_position_may_be_asked_for() -> None:
    graph = transformer(1, 6)
    whole = path_lengths(graph)
    assert np.array_equal(path_lengths(graph, "x", "output.0"), whole)
    assert np.array_equal(path_lengths(graph, ("x", 2)), whole[[2]])
    assert np.array_equal(path_lengths(graph, (0, (2,)), ("output", [5, 0, 5])), whole[[2]][:, [5, 0, 5]])
    assert np.array_equal(path_lengths(graph, ("x", range(1, 3)), ("output", slice(4, None))), whole[1:3, 4:])
    assert np.array_equal(path_lengths(graph, ("x", np.array([-1])), ("output", -1)), [[whole[-1, -1]]])
    assert path_lengths(graph, ("x", [])).shape == (0, 6)
    assert path_lengths(graph, target=("output", [])).shape == (6, 0)


def image() -> DependencyGraph:
    """A 2 × 3 image whose pixels are summed along rows, then down."""
    names = [(r, c) for r in range(2) for c in range(3)]
    dag = nx.DiGraph([(name, ("row", name[0])) for name in names] + [(("row", r), "sum") for r in range(2)])
    graph = depgraph.from_networkx(dag, sources=names, targets=["sum"])
    terminal = graph.inputs["input"]
    object.__setattr__(terminal, "shape", (2, 3))
    object.__setattr__(terminal, "positions", (0, 1))
    return graph


def test_a_position_on_several_axes_is_a_tuple() -> None:
    graph = image()
    path = shortest_path(graph, ("input", (1, 2)), "output")
    assert [node.id for node in path.nodes] == [("row", 1), "sum"]
    assert path_lengths(graph, ("input", [(0, 0), (1, 2)])).tolist() == [[2], [2]]
    with pytest.raises(PositionError, match=r"input has positions of shape \(2, 3\); there is no position \(2, 0\)\."):
        shortest_path(graph, ("input", (2, 0)), "output")


def test_an_output_that_is_an_input_is_at_no_distance() -> None:
    dag = nx.DiGraph([("a", "c")])
    dag.add_node("b")
    graph = depgraph.from_networkx(dag, sources=["a", "b"], targets=["b", "a", "c"])
    assert path_lengths(graph).tolist() == [[-1, 0, 1], [0, -1, -1]]
    assert shortest_path(graph, ("input", 0), ("output", 1)) == (0, [])
    assert shortest_path(graph, ("input", 0), ("output", 0)) == (-1, [])
    assert shortest_path(graph, ("input", 0), ("output", 2)) == (1, [Node("c", "c", (), "", "")])


def test_no_path_at_all() -> None:
    graph = depgraph.from_networkx(nx.DiGraph([("a", "b"), ("c", "d")]), sources=["a", "c"], targets=["b"])
    assert path_lengths(graph, ("input", [1])).tolist() == [[-1]]
    assert shortest_path(graph, ("input", 1), "output") == (-1, [])
    assert path_lengths(graph, ("input", [1]), weight=lambda node: 0.5).tolist() == [[-1.0]]


def test_graphs_without_work() -> None:
    assert critical_path(nothing()) == (0, [])
    graph = depgraph.from_networkx(nx.empty_graph(2, create_using=nx.DiGraph), sources=[0, 1], targets=[1])
    assert critical_path(graph) == (0, [])
    assert path_lengths(graph).tolist() == [[-1], [0]]


def test_the_operation_graph() -> None:
    small = transformer(2, 9).collapse()
    assert path_lengths(small).tolist() == [[7]]
    assert shortest_path(small, "x", "output").length == 7
    assert critical_path(small).length == 35
    assert critical_path(small, weight="contractions").length == 11


def test_lengths_beyond_sixteen_bits() -> None:
    chain = nx.path_graph(5, create_using=nx.DiGraph)
    graph = depgraph.from_networkx(chain, sources=[0], targets=[4])
    for cost in (4095, 4096, 2**29, 2**31, 2**58):
        assert path_lengths(graph, weight=lambda node, cost=cost: cost).item() == 4 * cost
        assert critical_path(graph, weight=lambda node, cost=cost: cost).length == 4 * cost


@pytest.mark.parametrize(
    ("source", "target", "error", "message"),
    [
        ("y", "output", PositionError, "There is no input 'y'. The inputs are: x."),
        (("x", 0), "logits", PositionError, "There is no output 'logits'. The outputs are: output."),
        (("x", 5), "output", PositionError, "x has positions 0 to 4; there is no position 5."),
        (("x", 0, 1), "output", PositionError, "An input is given as a name, or as (name, positions) like ('x', 0); "),
        (
            ("x", 1.5),
            "output",
            PositionError,
            "A position of x is a whole number, or a tuple with one for each of the ",
        ),
        (("x", ["a"]), "output", PositionError, "A position of x is a whole number, or a tuple with one for each of "),
        (("x", "abc"), "output", PositionError, "A position of x is a whole number, or a tuple with one for each of "),
    ],
)
def test_what_is_not_there(source: object, target: object, error: type[Exception], message: str) -> None:
    graph = transformer(1, 5)
    for call in (path_lengths, shortest_path):
        with pytest.raises(error) as caught:
            call(graph, source, target)
        assert str(caught.value).startswith(message)


def test_a_path_has_one_position_at_either_end() -> None:
    with pytest.raises(PositionError) as caught:
        shortest_path(transformer(1, 5), "x", ("output", 0))
    assert str(caught.value) == (
        "A path has one position at either end; x was given 5 of its 5. Name one, like ('x', 0)."
    )


def test_graphs_without_inputs_or_outputs() -> None:
    chain = nx.path_graph(3, create_using=nx.DiGraph)
    assert critical_path(depgraph.from_networkx(chain)).length == 3
    with pytest.raises(GraphError, match=r"This graph has no inputs; name some when building it\."):
        path_lengths(depgraph.from_networkx(chain, targets=[2]))
    with pytest.raises(GraphError, match=r"This graph has no outputs; name some when building it\."):
        path_lengths(depgraph.from_networkx(chain, sources=[0]))


@given(graphs())
@settings(max_examples=60)
def test_lengths_equal_those_of_scipy(graph: DependencyGraph) -> None:
    start, end = graph.inputs.default(), graph.outputs.default()
    hops = dijkstra(graph.dag.adjacency().T.tocsr().astype(float), indices=start.nodes.starts, unweighted=True)
    gathered = [hops[:, end.nodes.row(j)].min(axis=1, initial=np.inf) for j in range(end.count)]
    expected = np.stack(gathered, 1)
    assert np.array_equal(path_lengths(graph), np.where(np.isinf(expected), -1, expected))
