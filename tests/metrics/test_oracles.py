"""Published and derived figures of well-known graphs, as plain DAGs."""

from __future__ import annotations

from math import comb

import networkx as nx
import numpy as np
import pytest

import depgraph
from depgraph.dag.graph import DependencyGraph
from depgraph.metrics.flow.bottleneck import bottleneck, state
from depgraph.metrics.paths.lengths import critical_path, path_lengths
from depgraph.metrics.work.parallelism import parallelism
from tests.metrics.antichains import is_antichain
from tests.metrics.families import (
    CHOLESKY_COST,
    boolean_lattice,
    butterfly,
    cholesky,
    chunked,
    grid,
    kogge_stone,
    reduction_tree,
    sequential,
)


def figures(dag: nx.DiGraph, sources: list[object] | None = None) -> tuple[int, int, int]:
    """Return work, critical path and (exact) width; check that as many nodes do not depend on each other."""
    graph = depgraph.from_networkx(dag, sources=sources or [])
    found, widest = parallelism(graph), depgraph.width(graph)
    assert found.width_is_exact
    assert widest.is_exact
    assert len(widest.nodes) == widest.size == found.width
    assert is_antichain(dag, [node.id for node in widest.nodes])
    assert found.span == critical_path(graph).length
    return found.work, found.span, found.width


@pytest.mark.parametrize(
    ("n", "m", "span", "width"), [(4, 7, 10, 4), (6, 6, 11, 6), (1, 5, 5, 1), (2, 2, 3, 2), (30, 50, 79, 30)]
)
def test_grid(n: int, m: int, span: int, width: int) -> None:
    assert figures(grid(n, m)) == (n * m, span, width)


@pytest.mark.parametrize(("n", "vertices", "span"), [(8, 32, 4), (16, 80, 5), (256, 2304, 9)])
def test_butterfly_of_the_fast_fourier_transform(n: int, vertices: int, span: int) -> None:
    assert figures(butterfly(n)) == (vertices, span, n)
    assert (n * (span - 1) + n, (n - 1).bit_length() + 1) == (vertices, span)


@pytest.mark.parametrize(("n", "span"), [(2, 2), (5, 4), (8, 4), (9, 5), (100, 8)])
def test_reduction_tree(n: int, span: int) -> None:
    assert figures(reduction_tree(n)) == (2 * n - 1, span, n)


@pytest.mark.parametrize(("n", "width"), [(3, 3), (4, 6), (5, 10), (10, 252)])
def test_boolean_lattice(n: int, width: int) -> None:
    assert figures(boolean_lattice(n)) == (1 << n, n + 1, width)
    assert width == comb(n, n // 2)


@pytest.mark.parametrize("t", [3, 4, 8, 13])
def test_tiled_cholesky(t: int) -> None:
    dag = cholesky(t)
    assert figures(dag) == (t * (t + 1) * (t + 2) // 6, 3 * t - 2, t * (t - 1) // 2)
    graph = depgraph.from_networkx(dag)
    path = critical_path(graph, weight=lambda node: CHOLESKY_COST[node.op])
    assert path.length == sum(CHOLESKY_COST[node.op] for node in path.nodes) == 9 * t - 10
    found = parallelism(graph, weight=lambda node: CHOLESKY_COST[node.op])
    assert (found.span, found.work) == (path.length, sum(CHOLESKY_COST[op] for _, op in dag.nodes(data="op")))


def test_tiled_cholesky_of_eight_tiles() -> None:
    assert figures(cholesky(8)) == (120, 22, 28)


@pytest.mark.parametrize("n", [16, 64])
def test_sequential_scan(n: int) -> None:
    work, span, width = figures(sequential(n), [("x", t) for t in range(n)])
    assert (work, span, width) == (n - 1, n - 1, 1)


@pytest.mark.parametrize(("n", "work", "span"), [(16, 49, 4), (64, 321, 6)])
def test_kogge_stone_scan(n: int, work: int, span: int) -> None:
    assert figures(kogge_stone(n), [("x", t) for t in range(n)])[:2] == (work, span)
    assert work == n * span - n + 1


@pytest.mark.parametrize(("n", "size", "work", "span"), [(16, 4, 24, 6), (64, 8, 112, 14)])
def test_chunked_scan(n: int, size: int, work: int, span: int) -> None:
    assert figures(chunked(n, size), [("x", t) for t in range(n)])[:2] == (work, span)
    assert (n - n // size + n - size, size + n // size - 2) == (work, span)


# Generation: one node a layer and position, and one that samples; what is sampled at a position is read at the next.


def decoder(n: int, layers: int, *, generates: bool) -> DependencyGraph:
    dag = nx.DiGraph()
    for t in range(n):
        for s in range(t + 1):
            below = ("sample", s - 1) if generates and s else (0, s)
            dag.add_edges_from(((layer, s) if layer else below, (layer + 1, t)) for layer in range(layers))
        dag.add_edge((layers, t), ("sample", t))
    return depgraph.from_networkx(dag, [(0, 0)] if generates else [(0, t) for t in range(n)])


@pytest.mark.parametrize(("n", "layers", "span"), [(4, 2, 12), (6, 3, 24)])
def test_training_is_parallel_and_generation_is_not(n: int, layers: int, span: int) -> None:
    training, generation = (parallelism(decoder(n, layers, generates=generates)) for generates in (False, True))
    assert training.work == generation.work == generation.span == n * (layers + 1) == span
    assert (training.span, training.width) == (layers + 1, n)
    assert generation.width == 1


# Zhang et al. 2016, "Architectural complexity measures of recurrent neural networks".


def unrolled(steps: int, edges: list[tuple[int, int, int]], layers: int) -> DependencyGraph:
    """Return a cyclic graph of layers unrolled: an edge (layer, layer, delay) each. Layer 0 is the input."""
    dag = nx.DiGraph()
    for t in range(steps):
        dag.add_nodes_from((layer, t) for layer in range(layers + 1))
        dag.add_edges_from(((u, t - delay), (v, t)) for u, v, delay in edges if t >= delay)
    inputs, outputs = ([(layer, t) for t in range(steps)] for layer in (0, layers))
    return depgraph.from_networkx(dag, inputs, outputs)


@pytest.mark.parametrize("n", [10, 50])
def test_recurrent_depth_and_feedforward_depth(n: int) -> None:
    one = unrolled(n, [(0, 1, 0), (1, 1, 1)], 1)
    assert critical_path(one).length == n
    assert [path_lengths(one)[0, t] for t in (0, n - 1)] == [1, n]
    stacked = unrolled(n, [(0, 1, 0), (1, 1, 1), (1, 2, 0), (2, 2, 1)], 2)
    assert critical_path(stacked).length == n + 1  # still one more node a step: recurrent depth 1
    feedback = unrolled(n, [(0, 1, 0), (1, 1, 1), (1, 2, 0), (2, 2, 1), (2, 1, 1)], 2)
    assert critical_path(feedback).length == 2 * n  # two more nodes a step: recurrent depth 2
    assert critical_path(unrolled(n + 1, [(0, 1, 0), (1, 2, 0), (2, 1, 1)], 2)).length == 2 * n + 2


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("n", [21, 84])
def test_recurrent_skip_coefficient(n: int, k: int) -> None:
    lengths = path_lengths(unrolled(n + 1, [(0, 1, 0), (1, 1, 1), (1, 1, k)], 1))
    between = np.arange(n + 1)
    assert lengths[0].tolist() == (1 + between // k + between % k).tolist()
    assert critical_path(unrolled(n + 1, [(0, 1, 0), (1, 1, 1), (1, 1, k)], 1)).length == n + 1


# Encoders and decoders.


def sutskever(n: int, m: int, layers: int, *, backwards: bool = False) -> DependencyGraph:
    """Return an encoder whose last states a decoder starts from; each output is a projection of the last layer."""
    dag = nx.DiGraph()
    order = [("x", i) for i in range(n)]
    fed = order[::-1] if backwards else order
    cells = [fed]
    for layer in range(layers):
        cells.append([("encoder", layer, t) for t in range(n)])
        dag.add_edges_from(zip(cells[-2], cells[-1], strict=True))
        nx.add_path(dag, cells[-1])
    below: list[object] = []
    for layer in range(layers):
        row = [("decoder", layer, t) for t in range(m)]
        dag.add_edge(cells[layer + 1][-1], row[0])
        nx.add_path(dag, row)
        dag.add_edges_from(zip(below, row, strict=bool(below)))
        below = row
    outputs = [("output", t) for t in range(m)]
    dag.add_edges_from(zip(below, outputs, strict=True))
    return depgraph.from_networkx(dag, order, outputs)


@pytest.mark.parametrize(("n", "m", "layers"), [(4, 4, 1), (5, 3, 2), (6, 7, 4), (2, 5, 3)])
def test_sequence_to_sequence(n: int, m: int, layers: int) -> None:
    graph = sutskever(n, m, layers)
    i, j = np.arange(1, n + 1)[:, None], np.arange(1, m + 1)
    assert np.array_equal(path_lengths(graph), n - i + j + 2 + layers - 1)
    assert np.array_equal(path_lengths(sutskever(n, m, layers, backwards=True)), i + j + 1 + layers - 1)
    found = parallelism(graph)
    assert (found.work, found.span) == (layers * (n + m) + m, n + m + layers)
    assert bottleneck(graph).size == min(n, m, layers)


def test_reversing_the_source_brings_the_first_words_close() -> None:
    assert np.diag(path_lengths(sutskever(4, 4, 1))).tolist() == [6, 6, 6, 6]
    assert np.diag(path_lengths(sutskever(4, 4, 1, backwards=True))).tolist() == [3, 5, 7, 9]


def bahdanau(n: int, m: int) -> DependencyGraph:
    """Return a bidirectional encoder, and a decoder each of whose states reads a context of all the annotations."""
    dag = nx.DiGraph()
    for i in range(n):
        dag.add_edges_from((("x", i), (way, i)) for way in ("forward", "backward"))
        dag.add_edges_from(((way, i), ("energy", i, j)) for way in ("forward", "backward") for j in range(m))
    nx.add_path(dag, [("forward", i) for i in range(n)])
    nx.add_path(dag, [("backward", i) for i in reversed(range(n))])
    for j in range(m):
        for i in range(n):
            dag.add_edge(("energy", i, j), ("weights", j))
            dag.add_edges_from(((way, i), ("context", j)) for way in ("forward", "backward"))
            if j:
                dag.add_edge(("state", j - 1), ("energy", i, j))
        dag.add_edges_from([(("weights", j), ("context", j)), (("context", j), ("state", j))])
        dag.add_edge(("state", j), ("output", j))
        if j:
            dag.add_edge(("state", j - 1), ("state", j))
    return depgraph.from_networkx(dag, [("x", i) for i in range(n)], [("output", j) for j in range(m)])


@pytest.mark.parametrize(("n", "m"), [(3, 3), (5, 8), (9, 4)])
def test_attention_makes_every_path_from_source_to_target_equally_short(n: int, m: int) -> None:
    graph = bahdanau(n, m)
    assert set(path_lengths(graph).ravel().tolist()) == {4}
    assert critical_path(graph).length == n + 4 * m + 1
    assert bottleneck(graph).size == min(n, m)


def long_short_term_memory_network(n: int) -> DependencyGraph:
    """Return states that each attend to all states before them (Cheng et al. 2016)."""
    dag = nx.DiGraph()
    for t in range(n):
        dag.add_edges_from([(("x", t), ("h", t)), (("x", t), ("weights", t)), (("summary", t), ("h", t))])
        dag.add_edge(("weights", t), ("summary", t))
        for s in range(t):
            dag.add_edges_from([(("h", s), ("weights", t)), (("h", s), ("summary", t))])
    return depgraph.from_networkx(dag, [("x", t) for t in range(n)], [("h", t) for t in range(n)])


@pytest.mark.parametrize("n", [5, 12])
def test_a_short_path_is_not_parallelism(n: int) -> None:
    graph = long_short_term_memory_network(n)
    lengths = path_lengths(graph)
    assert set(lengths[np.triu_indices(n, 1)].tolist()) == {3}
    assert set(np.diag(lengths).tolist()) == {1}
    assert (lengths[np.tril_indices(n, -1)] == -1).all()
    assert critical_path(graph).length == 3 * n
    assert [state(graph, t).size for t in range(n + 1)] == [min(t, n - t) for t in range(n + 1)]


def decomposable_attention(n: int, m: int) -> DependencyGraph:
    """Return two sentences compared word by word with what the other has to say on it (Parikh et al. 2016)."""
    dag = nx.DiGraph()
    for side, own, other in (("a", n, m), ("b", m, n)):
        for i in range(own):
            dag.add_edge((side, i), (side, "projected", i))
            for j in range(other):
                pair = (i, j) if side == "a" else (j, i)
                dag.add_edges_from(
                    [((side, "projected", i), ("energy", *pair)), (("energy", *pair), (side, "share", i))]
                )
                dag.add_edge(("b" if side == "a" else "a", j), (side, "aligned", i))
            dag.add_edges_from([((side, "share", i), (side, "aligned", i)), ((side, i), (side, "compared", i))])
            dag.add_edges_from([((side, "aligned", i), (side, "compared", i)), ((side, "compared", i), (side, "sum"))])
    words = [("a", i) for i in range(n)] + [("b", j) for j in range(m)]
    return depgraph.from_networkx(dag, words, [("a", "sum"), ("b", "sum")])


@pytest.mark.parametrize(("n", "m"), [(3, 3), (9, 5)])
def test_decomposable_attention(n: int, m: int) -> None:
    graph = decomposable_attention(n, m)
    assert critical_path(graph).length == 6
    assert path_lengths(graph).tolist() == [[2, 3]] * n + [[3, 2]] * m
    assert bottleneck(graph).size == 2
    assert parallelism(graph).width == n * m
