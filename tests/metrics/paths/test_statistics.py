from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import depgraph
from depgraph.dag.graph import DependencyGraph
from depgraph.errors import GraphError, PositionError
from depgraph.metrics.paths import passage, statistics
from depgraph.metrics.paths.lengths import path_lengths
from depgraph.metrics.paths.statistics import PathStatistics, path_statistics
from tests.metrics.strategies import graphs
from tests.metrics.synthetic import recurrent, transformer


def check(found: PathStatistics, lengths: np.ndarray, distances: np.ndarray | None) -> None:
    """Compare with figures worked out pair by pair."""
    reached = sorted(lengths[lengths >= 0].tolist())
    assert found.pairs == lengths.size
    assert found.unreachable == lengths.size - len(reached)
    assert (found.minimum, found.maximum) == ((reached[0], reached[-1]) if reached else (None, None))
    assert found.mean == (float(sum(map(Fraction, reached)) / len(reached)) if reached else None)
    assert list(found.histogram.items()) == [(n, reached.count(n)) for n in sorted(set(reached))]
    assert {type(key) for key in found.histogram} <= {lengths.dtype.type(0).item().__class__}
    if distances is None:
        assert found.by_distance is None
        return
    table = found.by_distance
    assert table is not None
    arrays = (table.pairs, table.unreachable, table.minimum, table.mean, table.maximum)
    assert {len(array) for array in arrays} == {int(distances.max()) + 1 if distances.size else 0}
    assert table.minimum.dtype == table.maximum.dtype == lengths.dtype
    for d, figures in enumerate(zip(*(array.tolist() for array in arrays), strict=True)):
        here = lengths[distances == d]
        there = here[here >= 0].tolist()
        assert figures[:3] == (here.size, here.size - len(there), min(there, default=-1))
        assert figures[4] == max(there, default=-1)
        assert np.array_equal(figures[3], float(sum(map(Fraction, there)) / len(there)) if there else np.nan, True)


def apart(rows: list[int], columns: list[int]) -> np.ndarray:
    return np.abs(np.array(rows, int)[:, None] - np.array(columns, int))


@given(graphs(), st.data())
def test_figures_are_those_of_all_pairs(graph: DependencyGraph, data: st.DataObject) -> None:
    top = data.draw(st.sampled_from([1, 3, 10**17]))
    cost = {n: data.draw(st.integers(0, top)) for n in range(graph.dag.inputs, graph.dag.nodes)}

    def weight(node: depgraph.Node) -> int:
        return cost[node.id]

    lengths = path_lengths(graph, weight=weight)
    rows, columns = lengths.shape
    whole = apart([*range(rows)], [*range(columns)]) if rows == columns else None
    check(path_statistics(graph, weight=weight), lengths, whole)
    some = data.draw(st.lists(st.integers(0, rows - 1)))
    others = data.draw(st.lists(st.integers(0, columns - 1)))
    found = path_statistics(graph, ("x", some), ("output", others), weight)
    check(found, lengths[some][:, others], apart(some, others) if rows == columns else None)


@given(graphs(), st.data())
@settings(max_examples=40)
def test_weights_that_are_not_integers(graph: DependencyGraph, data: st.DataObject) -> None:
    cost = {n: data.draw(st.sampled_from([0.25, 1.5, 3.0])) for n in range(graph.dag.inputs, graph.dag.nodes)}
    lengths = path_lengths(graph, weight=lambda node: cost[node.id])
    whole = apart([*range(lengths.shape[0])], [*range(lengths.shape[1])])
    check(
        path_statistics(graph, weight=lambda node: cost[node.id]),
        lengths,
        whole if lengths.shape[0] == lengths.shape[1] else None,
    )


@pytest.mark.parametrize("graph", [transformer(2, 40), recurrent(2, 60), recurrent(1, 40, both_ways=True)])
@pytest.mark.parametrize("sparse", [0, 1, 1000])
def test_in_parts(graph: DependencyGraph, sparse: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = path_lengths(graph)
    monkeypatch.setattr(passage, "_MEMORY", 4000)
    monkeypatch.setattr(statistics, "_SPARSE", sparse)
    check(path_statistics(graph), lengths, apart([*range(len(lengths))], [*range(len(lengths))]))


def test_models_in_closed_form() -> None:
    found = path_statistics(recurrent(1, 100))
    assert (found.pairs, found.unreachable, found.minimum, found.mean, found.maximum) == (10_000, 4950, 1, 34.0, 100)
    assert found.histogram == {length: 101 - length for length in range(1, 101)}
    table = found.by_distance
    assert table is not None
    assert table.mean.tolist() == table.minimum.tolist() == table.maximum.tolist() == list(range(1, 101))
    assert table.pairs.tolist() == [100, *(2 * (100 - d) for d in range(1, 100))]
    assert table.unreachable.tolist() == [0, *(100 - d for d in range(1, 100))]
    attention = path_statistics(transformer(2, 50)).by_distance
    assert attention is not None
    assert attention.maximum.tolist() == [7] + [11] * 49


def test_sums_beyond_sixty_four_bits() -> None:
    names = [("x", i) for i in range(40)]
    dag = nx.DiGraph([(name, "middle") for name in names] + [("middle", ("y", j)) for j in range(40)])
    graph = depgraph.from_networkx(dag, names, [("y", j) for j in range(40)])
    large = 2**59 - 1
    found = path_statistics(graph, weight=lambda node: large if node.id == "middle" else 0)
    assert found.histogram == {large: 1600}
    assert found.mean == float(large)
    assert found.by_distance is not None
    assert set(found.by_distance.mean.tolist()) == {float(large)}


def image(rows: int, columns: int) -> DependencyGraph:
    """An image that a 3 × 3 kernel is passed over twice."""
    places = [(r, c) for r in range(rows) for c in range(columns)]
    near = [(a, b) for a in places for b in places if abs(a[0] - b[0]) <= 1 and abs(a[1] - b[1]) <= 1]
    dag = nx.DiGraph(((k, *a), (k + 1, *b)) for k in (0, 1) for a, b in near)
    graph = depgraph.from_networkx(dag, [(0, *a) for a in places], [(2, *a) for a in places])
    for terminal in (graph.inputs["input"], graph.outputs["output"]):
        object.__setattr__(terminal, "shape", (rows, columns))
        object.__setattr__(terminal, "positions", (0, 1))
    return graph


def test_on_several_axes_the_largest_difference_along_any_is_the_distance() -> None:
    graph = image(4, 5)
    table = path_statistics(graph).by_distance
    assert table is not None
    assert table.minimum.tolist() == [2, 2, 2, -1, -1]
    assert (table.pairs - table.unreachable).tolist() == [table.pairs[0], table.pairs[1], table.pairs[2], 0, 0]
    assert table.pairs.sum() == 400
    assert table.pairs[0] == 20
    corner = path_statistics(graph, ("input", (0, 0)), ("output", [(1, 2), (2, 2), (0, 0), (0, 4), (3, 0)])).by_distance
    assert corner is not None
    assert corner.pairs.tolist() == [1, 0, 2, 1, 1]
    assert corner.unreachable.tolist() == [0, 0, 0, 1, 1]


def test_there_is_no_distance_between_different_grids() -> None:
    dag = nx.DiGraph([("a", "y"), ("b", "y")])
    assert path_statistics(depgraph.from_networkx(dag, ["a", "b"], ["y"])).by_distance is None
    graph = image(2, 3)
    object.__setattr__(graph.outputs["output"], "shape", (3, 2))
    assert path_statistics(graph).by_distance is None


def test_no_path_at_all_and_no_pair() -> None:
    graph = depgraph.from_networkx(nx.DiGraph([("a", "b"), ("c", "d")]), sources=["a"], targets=["d"])
    found = path_statistics(graph)
    assert (found.pairs, found.unreachable, found.minimum, found.mean, found.maximum) == (1, 1, None, None, None)
    assert found.histogram == {}
    found = path_statistics(graph, ("input", []))
    assert (found.pairs, found.unreachable, found.mean) == (0, 0, None)


def test_what_is_refused() -> None:
    graph = transformer(1, 5)
    with pytest.raises(PositionError, match=r"There is no input 'y'\. The inputs are: x\."):
        path_statistics(graph, "y")
    with pytest.raises(GraphError, match=r"There is no weight 'steps'"):
        path_statistics(graph, weight="steps")
    with pytest.raises(GraphError, match=r"A graph is what depgraph\.trace"):
        path_statistics([1])  # type: ignore[arg-type]
