"""The skeleton of a graph: paths between what it keeps are as long as before."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import depgraph
from depgraph.dag.graph import DependencyGraph
from depgraph.dag.runs import Runs
from depgraph.metrics.paths import lengths as module
from depgraph.metrics.paths import skeleton as bones
from depgraph.metrics.paths.skeleton import skeleton
from tests.metrics.paths.test_lengths import expected_lengths
from tests.metrics.strategies import graphs
from tests.metrics.synthetic import Builder, eager_attention, one_to_one, recurrent, transformer


def kept(graph: DependencyGraph) -> int:
    """Return how many executed nodes a skeleton keeps, the readers of outputs left out."""
    weights = (np.arange(graph.dag.nodes) >= graph.dag.inputs).astype(np.int64)
    outputs = graph.outputs.default().nodes
    found = skeleton(graph.dag.stretches, outputs, graph.dag.inputs, weights)
    assert len(found.stretches.reads) == len(found.kept) + len(outputs)
    return int((found.kept >= graph.dag.inputs).sum())


@st.composite
def layered(draw: st.DrawFn) -> DependencyGraph:
    """Return a model of operations on n or 2n positions: one by one, halves, pairs, sums, attention, shifts."""
    n = draw(st.integers(1, 6))
    build = Builder(n)
    of_size: dict[int, list[np.ndarray]] = {n: [np.arange(n)]}
    for _ in range(draw(st.integers(1, 12))):
        size = draw(st.sampled_from(sorted(of_size)))
        one, other = (draw(st.sampled_from(of_size[size])) for _ in range(2))
        kind = draw(st.sampled_from(["map", "sum", "split", "join", "prefix", "flip", "both"]))
        if kind == "split" and size == n:
            made = build.add(kind, one_to_one(np.repeat(one, 2)))
        elif kind == "join" and size == 2 * n:
            made = build.add(kind, one_to_one(one[::2]), one_to_one(one[1::2]))
        elif kind == "both" and size == n:  # halves that come from two operations in turn
            made = build.add(kind, one_to_one(np.stack([one, other], 1).ravel()))
        elif kind == "prefix":
            stops = np.minimum(one[0] + 1 + np.arange(len(one)) * draw(st.integers(0, 2)), one[-1] + 1)
            reach = Runs(np.arange(len(one) + 1), np.full(len(one), one[0]), stops)
            made = build.add(kind, one_to_one(other), reach)
        else:
            made = build.add(kind, *map(one_to_one, {"sum": (one, other), "flip": (one[::-1],)}.get(kind, (one,))))
        of_size.setdefault(len(made), []).append(made)
    last = draw(st.sampled_from([m for made in of_size.values() for m in made]))
    return build.graph(one_to_one(last))


@given(graphs() | layered(), st.data())
@settings(max_examples=200)
def test_lengths_are_those_of_dijkstra(graph: DependencyGraph, data: st.DataObject) -> None:
    most = data.draw(st.integers(0, 3))
    cost = {n: data.draw(st.integers(0, most)) for n in range(graph.dag.inputs, graph.dag.nodes)}
    if cost and data.draw(st.booleans()):  # too large to be multiplied by the number of nodes
        cost[data.draw(st.sampled_from(sorted(cost)))] = 2 * 10**18
    by_operation = {n: k % (most + 1) for k, o in enumerate(graph.operations) for n in range(o.start, o.stop)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_WORTHWHILE", 0)
        patch.setattr(bones, "_WORTHWHILE", 1e-9)
        for weights in (cost, by_operation):
            found = depgraph.path_lengths(graph, weight=lambda node, weights=weights: weights[node.id])
            assert np.array_equal(found, expected_lengths(graph, weights))


@pytest.mark.parametrize(
    "graph", [transformer(3, 40, "window", window=7), eager_attention(2, 33), recurrent(2, 40, True)]
)
def test_the_same_with_and_without(graph: DependencyGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    found = depgraph.path_lengths(graph)
    monkeypatch.setattr(module, "_WORTHWHILE", 10**9)
    assert np.array_equal(depgraph.path_lengths(graph), found)


@pytest.mark.parametrize("layers", [1, 3])
def test_of_a_transformer_attention_and_the_sum_behind_it_are_left(layers: int) -> None:
    assert kept(transformer(layers, 20, "causal")) == layers * 2 * 20


def test_nothing_goes_where_every_node_brings_two_together() -> None:
    grid = nx.DiGraph()
    grid.add_edges_from(((i - 1, j), (i, j)) for i in range(5) for j in range(6))
    grid.add_edges_from(((i, j - 1), (i, j)) for i in range(5) for j in range(1, 6))
    graph = depgraph.from_networkx(grid, [(-1, j) for j in range(6)], [(4, j) for j in range(6)])
    first_column = 5  # each of them reads the one above alone, but they are not all that is in their blocks
    assert kept(graph) >= 5 * 6 - first_column


def test_weights_too_large_to_be_lifted() -> None:
    build = Builder(64)
    split = build.add("split", one_to_one(np.repeat(np.arange(64), 2)))
    made = build.add("map", one_to_one(split))
    ends = build.add("read", Runs(np.arange(65), np.full(64, made[0]), made[1::2] + 1), one_to_one(np.arange(64)))
    graph = build.graph(one_to_one(ends))
    cost = dict.fromkeys(range(64, graph.dag.nodes), 1) | {int(made[1]): 10**18}
    found = depgraph.path_lengths(graph, weight=lambda node: cost[node.id])
    assert np.array_equal(found, expected_lengths(graph, cost))
