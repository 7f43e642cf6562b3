"""Recurrent layers: work, critical path, path lengths, width."""

import numpy as np
import pytest
import torch
from torch import nn

import depgraph

KINDS = [nn.RNN, nn.LSTM, nn.GRU]
CELLS = [nn.RNNCell, nn.LSTMCell, nn.GRUCell]


class Loop(nn.Module):
    """Stacked cells in a loop, as people write it."""

    def __init__(self, kind, layers):
        super().__init__()
        self.cells = nn.ModuleList(kind(3, 3) for _ in range(layers))

    def forward(self, x):
        states, found = [None] * len(self.cells), []
        for t in range(x.shape[1]):
            h = x[:, t]
            for k, cell in enumerate(self.cells):
                states[k] = cell(h, states[k])
                h = states[k][0] if isinstance(states[k], tuple) else states[k]
            found.append(h)
        return torch.stack(found, 1)


def traced(n, kind=nn.LSTM, layers=1, bidirectional=False):
    model = kind(3, 3, layers, bidirectional=bidirectional, batch_first=True).eval()
    return depgraph.trace(model, (torch.randn(2, n, 3),))


def distance(n):
    """Return j - i for input position i (row) and output position j (column)."""
    return np.arange(n)[None, :] - np.arange(n)[:, None]


def carried(graph, t):
    """Return how many vectors lead from the inputs before t to the outputs from t on."""
    return depgraph.bottleneck(graph, (0, slice(0, t)), ("output.0", slice(t, None))).size


@pytest.mark.parametrize(("kind", "n"), [(kind, n) for kind in KINDS for n in (2, 100)] + [(nn.LSTM, 1), (nn.GRU, 7)])
def test_one_layer(kind, n):
    graph = traced(n, kind)
    found = depgraph.parallelism(graph)
    assert (found.work, found.span, found.width, found.width_is_exact) == (n, n, 1, True)
    assert depgraph.critical_path(graph).length == n
    lengths = depgraph.path_lengths(graph)
    assert np.array_equal(lengths, np.where(distance(n) >= 0, distance(n) + 1, -1))
    assert (lengths < 0).sum() == n * (n - 1) // 2


def test_a_hundred_steps():
    graph = traced(100, nn.RNN)
    path = depgraph.shortest_path(graph, (0, 0), ("output.0", 99))
    assert path.length == 100
    assert [node.op for node in path.nodes] == ["rnn_tanh"] * 100  # 99 state transitions between them
    assert (depgraph.path_lengths(graph) < 0).sum() == 4950
    assert depgraph.bottleneck(graph).size == 100
    for t in (1, 50, 99):
        assert carried(graph, t) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "layers"), [(8, 4), (3, 5)])
def test_stacked(kind, n, layers):
    graph = traced(n, kind, layers)
    found = depgraph.parallelism(graph)
    assert (found.work, found.span) == (n * layers, n + layers - 1)
    assert (found.width, found.width_is_exact) == (min(n, layers), True)
    assert found.average == n * layers / (n + layers - 1)
    lengths = depgraph.path_lengths(graph)
    assert np.array_equal(lengths, np.where(distance(n) >= 0, distance(n) + layers, -1))


def test_four_layers_of_eight_steps():
    found = depgraph.parallelism(traced(8, nn.LSTM, 4))
    assert (found.work, found.span, round(found.average, 3)) == (32, 11, 2.909)
    assert found.level_widths == [1, 2, 3, 4, 4, 4, 4, 4, 3, 2, 1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [2, 9])
def test_bidirectional(kind, n):
    graph = traced(n, kind, bidirectional=True)
    found = depgraph.parallelism(graph)
    assert (found.work, found.span, found.width, found.width_is_exact) == (2 * n, n, 2, True)
    assert np.array_equal(depgraph.path_lengths(graph), abs(distance(n)) + 1)


@pytest.mark.parametrize(("kind", "n"), [(nn.RNN, 9), (nn.LSTM, 2), (nn.LSTM, 9), (nn.GRU, 5)])
def test_two_bidirectional_layers(kind, n):
    graph = traced(n, kind, 2, bidirectional=True)
    found = depgraph.parallelism(graph)
    assert (found.work, found.span) == (4 * n, 2 * n)
    lengths = depgraph.path_lengths(graph)
    assert np.array_equal(lengths, abs(distance(n)) + 2)
    assert lengths.max() == n + 1


@pytest.mark.parametrize(("kind", "n", "layers"), [(kind, 4, 3) for kind in CELLS] + [(nn.LSTMCell, 6, 1)])
def test_loops_of_cells_are_the_same(kind, n, layers):
    graph = depgraph.trace(Loop(kind, layers).eval(), (torch.randn(2, n, 3),))
    found = depgraph.parallelism(graph)
    assert (found.work, found.span, found.width) == (n * layers, n + layers - 1, min(n, layers))
    assert np.array_equal(depgraph.path_lengths(graph), np.where(distance(n) >= 0, distance(n) + layers, -1))


@pytest.mark.parametrize("layers", [1, 3])
def test_the_past_is_carried_by_one_vector_a_layer(layers):
    graph = traced(12, nn.GRU, layers)
    assert [carried(graph, t) for t in (layers, 6, 12 - layers)] == [layers] * 3
