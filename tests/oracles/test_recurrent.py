"""Recurrent layers: work, critical path, path lengths, width."""

from math import comb

import numpy as np
import pytest
import torch
from torch import nn

import depgraph
from tests.gallery.files import traced
from tests.oracles.models import Cells
from tests.oracles.pairs import distance

# The files, and what a step of them is called.
OPS = {"rnn": "rnn_tanh", "lstm": "lstm", "gru": "gru"}


def layers_of(kind, n, layers=1, bidirectional=False):
    return traced(kind, n, hidden=3, layers=layers, bidirectional=bidirectional)


def carried(graph, t):
    """Return how many vectors lead from the inputs before t to the outputs from t on."""
    return depgraph.bottleneck(graph, (0, slice(0, t)), ("output", slice(t, None))).size


@pytest.mark.parametrize(("kind", "op"), OPS.items())
@pytest.mark.parametrize("n", [2, 100])
def test_one_layer(kind, op, n):
    graph = layers_of(kind, n)
    found = depgraph.parallelism(graph)
    assert (found.work, found.span, found.width, found.width_is_exact) == (n, n, 1, True)
    assert depgraph.critical_path(graph).length == n
    lengths = depgraph.path_lengths(graph)
    assert np.array_equal(lengths, np.where(distance(n) >= 0, distance(n) + 1, -1))
    assert (lengths < 0).sum() == n * (n - 1) // 2
    assert np.array_equal(depgraph.count_paths(graph), lengths > 0)
    path = depgraph.shortest_path(graph, (0, 0), ("output", n - 1))
    assert [node.op for node in path.nodes] == [op] * n  # n - 1 state transitions between them: 99 of 100
    assert depgraph.bottleneck(graph).size == n
    for t in {1, n // 2, n - 1}:
        assert carried(graph, t) == 1


@pytest.mark.parametrize(
    ("kind", "n", "layers"), [("stacked_lstm", 8, 4), ("stacked_lstm", 3, 5), ("rnn", 8, 4), ("gru", 3, 5)]
)
def test_stacked(kind, n, layers):
    graph = traced(kind, n, hidden=3, layers=layers)
    found = depgraph.parallelism(graph)
    assert (found.work, found.span) == (n * layers, n + layers - 1)
    assert (found.width, found.width_is_exact) == (min(n, layers), True)
    assert found.average == n * layers / (n + layers - 1)
    lengths = depgraph.path_lengths(graph)
    assert np.array_equal(lengths, np.where(distance(n) >= 0, distance(n) + layers, -1))
    # Up a layer at any of the steps on the way.
    ways = [[comb(d + layers - 1, layers - 1) if d >= 0 else 0 for d in row] for row in distance(n).tolist()]
    assert np.array_equal(depgraph.count_paths(graph), ways)
    if (n, layers) == (8, 4):
        assert (found.work, found.span, round(found.average, 3)) == (32, 11, 2.909)
        assert found.level_widths == [1, 2, 3, 4, 4, 4, 4, 4, 3, 2, 1]
    # The past is carried by one vector a layer, where there are as many words on either side.
    assert [carried(graph, t) for t in range(1, n)] == [min(t, n - t, layers) for t in range(1, n)]


@pytest.mark.parametrize(("kind", "n"), [("rnn", 2), ("rnn", 9), ("lstm", 9), ("gru", 5)])
def test_bidirectional(kind, n):
    graph = layers_of(kind, n, bidirectional=True)
    found = depgraph.parallelism(graph)
    assert (found.work, found.span, found.width, found.width_is_exact) == (2 * n, n, 2, True)
    assert np.array_equal(depgraph.path_lengths(graph), abs(distance(n)) + 1)


@pytest.mark.parametrize(("kind", "n"), [("bidirectional_lstm", 2), ("bidirectional_lstm", 9), ("rnn", 9), ("gru", 5)])
def test_two_bidirectional_layers(kind, n):
    sizes = {} if kind == "bidirectional_lstm" else {"bidirectional": True}
    graph = traced(kind, n, hidden=3, layers=2, **sizes)
    found = depgraph.parallelism(graph)
    assert (found.work, found.span) == (4 * n, 2 * n)
    lengths = depgraph.path_lengths(graph)
    assert np.array_equal(lengths, abs(distance(n)) + 2)
    assert lengths.max() == n + 1


@pytest.mark.parametrize(("kind", "n", "layers"), [(nn.RNNCell, 4, 3), (nn.LSTMCell, 6, 1), (nn.GRUCell, 3, 4)])
def test_loops_of_cells_are_the_same(kind, n, layers):
    graph = depgraph.trace(Cells(kind, layers).eval(), (torch.randn(2, n, 3),))
    found = depgraph.parallelism(graph)
    assert (found.work, found.span, found.width) == (n * layers, n + layers - 1, min(n, layers))
    assert np.array_equal(depgraph.path_lengths(graph), np.where(distance(n) >= 0, distance(n) + layers, -1))


@pytest.mark.parametrize("n", [2, 5])
def test_loops_of_equations_are_longer_by_a_factor(n):
    d = distance(n)
    for kind, span, length in (
        # Every step is product, sum, tanh; the first of them takes the product with the word.
        ("rnn", 3 * n, 3 * d + 3),
        # Gates, two activations, product and sum for c, tanh and product for h make 6. Short: from word to h by gates,
        # activation and product, 3 a step; or once into c and out of it (6), along c by product and sum.
        ("lstm", 6 * n, np.minimum(3 * d + 3, 2 * d + 6)),
        # Gates, activation, product, candidate, tanh, product, sum make 7. In the first step r ⊙ h is 0, which leaves
        # gates, activation, 1 - z, product, sum. Short: candidate, tanh, product, sum, then product and sum a step.
        ("gru", 7 * n - 2, 2 * d + 4),
    ):
        graph = traced(f"{kind}_loop", n, hidden=3)
        assert depgraph.critical_path(graph).length == span
        assert np.array_equal(depgraph.path_lengths(graph), np.where(d >= 0, length, -1))
