from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import comb, factorial

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import depgraph
from depgraph.dag.graph import DependencyGraph
from depgraph.dag.runs import Runs, union
from depgraph.errors import GraphError, PositionError
from depgraph.metrics.paths import passage
from depgraph.metrics.paths.counts import count_paths
from tests.metrics.strategies import as_networkx, graphs
from tests.metrics.synthetic import Builder, eager_attention, one_to_one, recurrent, transformer, windows


def by_recursion(graph: DependencyGraph, cost: dict[int, float] | None = None) -> np.ndarray:
    """Return how many paths there are, of all or of the smallest cost, worked out node by node."""
    dag = as_networkx(graph)
    order = list(nx.topological_sort(dag))
    result = np.zeros((graph.inputs["x"].count, graph.outputs["output"].count), object)
    for i in range(len(result)):
        found: dict[object, tuple[float, int]] = {("x", i): (0, 1)}
        for v in order:
            ways = [found[u] for u in dag.predecessors(v) if u in found]
            if ways:
                least = min(length for length, _ in ways) if cost is not None else 0
                number = sum(count for length, count in ways if cost is None or length == least)
                found[v] = (least + (cost or {}).get(v, 0), number)
        result[i] = [found.get(("y", j), (0, 0))[1] for j in range(result.shape[1])]
    return result


def same(found: np.ndarray, expected: np.ndarray) -> bool:
    return found.dtype == object and {type(n) for n in found.ravel()} <= {int} and np.array_equal(found, expected)


@given(graphs())
def test_all_paths(graph: DependencyGraph) -> None:
    assert same(count_paths(graph), by_recursion(graph))


@given(graphs(blocks=3, width=4))
@settings(max_examples=40)
def test_all_paths_are_those_of_networkx(graph: DependencyGraph) -> None:
    dag, found = as_networkx(graph), count_paths(graph)
    for (i, j), number in np.ndenumerate(found):
        assert number == len(list(nx.all_simple_paths(dag, ("x", i), ("y", j))))


@given(graphs(), st.data())
def test_shortest_paths_are_those_of_networkx(graph: DependencyGraph, data: st.DataObject) -> None:
    weights = data.draw(st.sampled_from([[1], [0, 1], [0, 0.25, 0.5], [0, 3, 10**15]]))
    cost = {n: data.draw(st.sampled_from(weights)) for n in range(graph.dag.inputs, graph.dag.nodes)}
    dag = as_networkx(graph)
    for u, v in dag.edges:
        dag.edges[u, v]["cost"] = cost.get(v, 0)
    found = count_paths(graph, shortest=True, weight=lambda node: cost[node.id])
    for (i, j), number in np.ndenumerate(found):
        paths = nx.all_shortest_paths(dag, ("x", i), ("y", j), weight="cost")
        assert number == (len(list(paths)) if nx.has_path(dag, ("x", i), ("y", j)) else 0)


@given(graphs(blocks=8), st.data())
def test_shortest_paths_where_sums_are_rounded(graph: DependencyGraph, data: st.DataObject) -> None:
    cost = {n: data.draw(st.sampled_from([0.1, 0.2, 0.3])) for n in range(graph.dag.inputs, graph.dag.nodes)}
    assert same(count_paths(graph, shortest=True, weight=lambda node: cost[node.id]), by_recursion(graph, cost))


@given(graphs())
@settings(max_examples=40)
def test_shortest_paths_by_contractions(graph: DependencyGraph) -> None:
    cost = {n: int(o.contraction) for o in graph.operations for n in range(o.start, o.stop)}
    assert same(count_paths(graph, shortest=True, weight="contractions"), by_recursion(graph, cost))


@given(st.integers(9, 40), st.sets(st.tuples(st.integers(-2, 38), st.integers(0, 39)), max_size=12), st.data())
@settings(max_examples=60)
def test_along_loops(steps: int, jumps: set[tuple[int, int]], data: st.DataObject) -> None:
    """A loop whose steps also read inputs (-2 and -1) and steps long before."""
    dag = nx.DiGraph([(-2, 0), (-1, steps // 2), *pairwise(range(steps))])
    dag.add_edges_from((u, v) for u, v in jumps if u < v < steps)
    cost = {v: data.draw(st.integers(0, 2)) for v in range(steps)}
    ends = data.draw(st.lists(st.integers(-2, steps - 1), min_size=1, unique=True))
    graph = depgraph.from_networkx(dag, sources=[-2, -1], targets=ends)
    assert graph.dag.stretches.chained.any() or jumps
    for shortest in (False, True):
        found = count_paths(graph, shortest=shortest, weight=lambda node: cost[node.id])
        for i, source in enumerate((-2, -1)):
            ways = {source: (0, 1)}
            for v in range(steps):
                read = [ways[u] for u in dag.predecessors(v) if u in ways]
                least = min((length for length, _ in read), default=0)
                if read:
                    number = sum(count for length, count in read if length == least or not shortest)
                    ways[v] = (least + cost[v], number)
            assert found[i].tolist() == [ways.get(end, (0, 0))[1] for end in ends]


MODELS = [
    transformer(2, 23),
    transformer(2, 23, "full"),
    transformer(2, 70, "window", 5),
    transformer(2, 40, "window", 17),
    transformer(2, 40, "centred", 9),
    recurrent(2, 30),
    recurrent(2, 30, both_ways=True),
    eager_attention(2, 7),
]


@pytest.mark.parametrize("graph", MODELS)
def test_models(graph: DependencyGraph) -> None:
    ones = dict.fromkeys(range(graph.dag.inputs, graph.dag.nodes), 1)
    assert same(count_paths(graph), by_recursion(graph))
    assert same(count_paths(graph, shortest=True), by_recursion(graph, ones))


@pytest.mark.parametrize("graph", MODELS)
@pytest.mark.parametrize("shortest", [False, True])
def test_sources_are_taken_in_parts_where_memory_is_short(
    graph: DependencyGraph, shortest: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = count_paths(graph, shortest=shortest)
    monkeypatch.setattr(passage, "_MEMORY", 20_000)
    assert same(count_paths(graph, shortest=shortest), whole)


# Closed forms.


def attention_stack(layers: int, tokens: int, causal: bool) -> DependencyGraph:
    build, where = Builder(tokens), np.arange(tokens)
    x = where
    for _ in range(layers):
        x = build.add("attention", windows(x, 0 * where, where + 1 if causal else 0 * where + tokens))
    return build.graph(one_to_one(x))


@pytest.mark.parametrize(("layers", "tokens"), [(1, 5), (3, 6), (12, 40), (40, 100)])
def test_attention_stacks(layers: int, tokens: int) -> None:
    full = count_paths(attention_stack(layers, tokens, causal=False))
    assert same(full, np.full((tokens, tokens), tokens ** (layers - 1), object))
    apart = np.arange(tokens) - np.arange(tokens)[:, None]
    causal = [[comb(d + layers - 1, layers - 1) if d >= 0 else 0 for d in row] for row in apart.tolist()]
    assert same(count_paths(attention_stack(layers, tokens, causal=True)), np.array(causal, object))
    # All of a stack's paths are as long as each other.
    assert same(count_paths(attention_stack(layers, tokens, causal=True), shortest=True), np.array(causal, object))


@pytest.mark.parametrize("depth", [1, 61, 62, 63, 64, 500, 1500])
def test_residual_stacks(depth: int) -> None:
    build = Builder(1)
    x = np.array([0])
    for _ in range(depth):
        x = build.add("add", one_to_one(x), one_to_one(build.add("linear", one_to_one(x))))
    graph = build.graph(one_to_one(x))
    assert count_paths(graph).item() == 2**depth
    assert count_paths(graph, shortest=True).item() == 1


@pytest.mark.parametrize("depth", [1, 63, 400])
def test_diamonds(depth: int) -> None:
    dag = nx.DiGraph()
    for k in range(depth):
        dag.add_edges_from([(k, (k, 0)), (k, (k, 1)), ((k, 0), k + 1), ((k, 1), k + 1)])
    graph = depgraph.from_networkx(dag, sources=[0], targets=[depth])
    assert count_paths(graph, shortest=True).item() == count_paths(graph).item() == 2**depth
    left = {(k, 0): 0.5 for k in range(0, depth, 2)}
    by_weight = count_paths(graph, shortest=True, weight=lambda node: left.get(node.id, 1))
    assert by_weight.item() == 2 ** (depth // 2)


@pytest.mark.parametrize(("n", "m"), [(4, 7), (6, 6), (40, 50)])
def test_grid(n: int, m: int) -> None:
    dag = nx.grid_2d_graph(n, m, create_using=nx.DiGraph)
    dag.remove_edges_from([(u, v) for u, v in dag.edges if u > v])
    graph = depgraph.from_networkx(dag, sources=[(0, 0)], targets=[(i, j) for i in range(n) for j in range(m)])
    expected = np.array([[comb(i + j, i) for i in range(n) for j in range(m)]], object)
    assert same(count_paths(graph), expected)
    assert same(count_paths(graph, shortest=True), expected)


def test_butterfly_of_the_fast_fourier_transform() -> None:
    dag = nx.DiGraph(((k, j), (k + 1, i)) for k in range(4) for i in range(16) for j in (i, i ^ 1 << k))
    graph = depgraph.from_networkx(dag, [(0, i) for i in range(16)], [(4, i) for i in range(16)])
    assert same(count_paths(graph), np.ones((16, 16), object))


@pytest.mark.parametrize("n", [3, 5, 9])
def test_boolean_lattice(n: int) -> None:
    dag = nx.DiGraph((a, a | 1 << b) for a in range(1 << n) for b in range(n) if not a >> b & 1)
    graph = depgraph.from_networkx(dag, sources=[0], targets=[(1 << n) - 1])
    assert count_paths(graph).item() == count_paths(graph, shortest=True).item() == factorial(n)


def test_a_recurrent_layer_has_one_path_and_stacked_ones_binomials() -> None:
    assert same(count_paths(recurrent(1, 9)), np.triu(np.ones((9, 9), int)).astype(object))
    # Up from layer to layer at any of the steps on the way.
    stacked = count_paths(recurrent(3, 9))
    assert stacked[2].tolist() == [0, 0, *(comb(d + 2, 2) for d in range(7))]


@pytest.mark.parametrize("tokens", [2, 17])
def test_causal_transformer(tokens: int) -> None:
    # Shortest: along the residual stream, with a move to a later position in one of the 12 layers.
    shortest = np.where(np.tri(tokens, dtype=bool).T, np.where(np.eye(tokens, dtype=bool), 1, 12), 0)
    assert np.array_equal(count_paths(transformer(12, tokens), shortest=True), shortest)
    # All: three ways through the gate and one around it; through attention or, to the same position, around it.
    assert np.array_equal(count_paths(transformer(1, tokens)), 4 * np.triu(1 + np.eye(tokens, dtype=int)))


# Outputs, selections, and what is refused.


def test_an_output_that_gathers_several_nodes_has_the_paths_to_all_of_them() -> None:
    build = Builder(2)
    a = build.add("a", one_to_one(np.array([0, 1])))
    b = build.add("b", one_to_one(a), one_to_one(a[::-1]))
    graph = build.graph(union([one_to_one(b), one_to_one(a), one_to_one(np.array([0, 0]))]))
    assert count_paths(graph).tolist() == [[3, 2], [1, 2]]
    assert count_paths(graph, shortest=True).tolist() == [[1, 1], [1, 1]]
    assert count_paths(graph, shortest=True, weight="contractions").tolist() == [[3, 2], [1, 2]]


def test_a_constant_output_has_none() -> None:
    build = Builder(2)
    build.add("a", one_to_one(np.array([0, 1])))
    graph = build.graph(Runs.singletons(np.array([-1, 2])))
    assert count_paths(graph).tolist() == count_paths(graph, shortest=True).tolist() == [[0, 1], [0, 0]]


def test_an_output_that_is_an_input() -> None:
    dag = nx.DiGraph([("a", "c")])
    dag.add_node("b")
    graph = depgraph.from_networkx(dag, sources=["a", "b"], targets=["b", "a", "c"])
    for shortest in (False, True):
        assert count_paths(graph, shortest=shortest).tolist() == [[0, 1, 1], [1, 0, 0]]


def test_every_position_may_be_asked_for() -> None:
    graph = transformer(1, 6)
    whole = count_paths(graph)
    assert np.array_equal(count_paths(graph, ("x", 2)), whole[[2]])
    assert np.array_equal(count_paths(graph, (0, (2,)), ("output", [5, 0, 5])), whole[[2]][:, [5, 0, 5]])
    assert np.array_equal(count_paths(graph, ("x", [4, 1, 4]), ("output", slice(4, None))), whole[[4, 1, 4], 4:])
    assert count_paths(graph, ("x", [])).shape == (0, 6)
    assert count_paths(graph, target=("output", [])).shape == (6, 0)


def test_each_weight_has_its_own_shortest_paths() -> None:
    chain = [("x", "a"), ("a", "y"), ("x", "b"), ("b", "c"), ("c", "y"), ("x", "d"), ("d", "e"), ("e", "y")]
    graph = depgraph.from_networkx(nx.DiGraph(chain), sources=["x"], targets=["y"])
    cost = {"a": 5, "b": 2, "c": 2, "d": 1, "e": 3, "y": 0}
    found = [
        count_paths(graph, shortest=True, weight=lambda node, unit=unit: cost[node.id] * unit).item()
        for unit in (1, 0.5, 0, Fraction(1, 4), 2**55)
    ]
    assert found == [2, 2, 3, 2, 2]
    assert count_paths(graph, shortest=True).item() == 1


def test_what_is_refused() -> None:
    graph = transformer(1, 5)
    with pytest.raises(PositionError, match=r"There is no input 'y'\. The inputs are: x\."):
        count_paths(graph, "y")
    with pytest.raises(PositionError, match=r"output has positions 0 to 4; there is no position 5\."):
        count_paths(graph, target=("output", 5))
    with pytest.raises(GraphError, match=r"There is no weight 'steps'"):
        count_paths(graph, weight="steps")
    with pytest.raises(GraphError, match=r"A graph is what depgraph\.trace"):
        count_paths(as_networkx(graph))  # type: ignore[arg-type]
    with pytest.raises(GraphError, match=r"This graph has no outputs; name some when building it\."):
        count_paths(depgraph.from_networkx(nx.path_graph(3, create_using=nx.DiGraph), sources=[0]))


def test_numbers_grow_by_one_digit_after_the_other() -> None:
    # Every size of a count from one to several hundred bits occurs on the way.
    found = count_paths(attention_stack(90, 30, causal=False), ("x", 0), ("output", 0)).item()
    assert found == 30**89
    sizes = [count_paths(attention_stack(n, 3, causal=False), ("x", 0), ("output", 0)).item() for n in range(1, 90)]
    assert all(b == 3 * a for a, b in pairwise(sizes))
