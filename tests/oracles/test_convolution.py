"""Convolutions: how many layers connect all pairs, and how far a position sees."""

from math import ceil, log, log2

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import depgraph
from tests.oracles.models import Convolutions, TemporalBlocks, vgg16


def per_layer(model, n):
    """Return, for each layer, which input position (row) reaches which of its positions (column)."""
    graph = depgraph.trace(model.eval(), (torch.randn(1, 1, n),))
    assert graph.inputs["x"].positions == (2,)
    return [depgraph.path_lengths(graph, target=name) >= 0 for name in graph.outputs]


def first_that_connects(model, n, pairs):
    """Return the number of the first layer that connects the given pairs; it has to be the model's last but one."""
    found = per_layer(model, n)
    number = next(k for k, reached in enumerate(found, 1) if reached[pairs].all())
    assert number == len(found) - 1
    return number


def past(n):
    return np.triu(np.ones((n, n), bool))


@pytest.mark.parametrize(("k", "n", "layers"), [(3, 16, 8), (3, 64, 32), (5, 64, 16), (7, 64, 11)])
def test_causal_contiguous(k, n, layers):
    assert layers == ceil((n - 1) / (k - 1))
    assert first_that_connects(Convolutions(k, [1] * (layers + 1), causal=True), n, past(n)) == layers


@pytest.mark.parametrize(("k", "n", "layers"), [(3, 64, 63), (5, 64, 32), (7, 64, 21), (3, 10, 9)])
def test_centred_contiguous(k, n, layers):
    assert layers == ceil(2 * (n - 1) / (k - 1))
    model = Convolutions(k, [1] * (layers + 1), causal=False)
    assert first_that_connects(model, n, np.ones((n, n), bool)) == layers


@pytest.mark.parametrize(("k", "n", "layers"), [(2, 16, 4), (2, 64, 6), (3, 64, 4), (5, 64, 3)])
def test_causal_dilated_by_powers_of_the_kernel(k, n, layers):
    assert layers == ceil(round(log(n, k), 9))
    model = Convolutions(k, [k**layer for layer in range(layers + 1)], causal=True)
    assert first_that_connects(model, n, past(n)) == layers


@pytest.mark.parametrize(
    ("k", "n", "layers"), [(3, 16, 4), (3, 64, 6), (3, 128, 7), (2, 16, 4), (2, 64, 6)]
)  # fmt: skip
def test_causal_dilated_by_powers_of_two(k, n, layers):
    assert layers == ceil(log2(1 + (n - 1) / (k - 1)))
    model = Convolutions(k, [2**layer for layer in range(layers + 1)], causal=True)
    assert first_that_connects(model, n, past(n)) == layers


@pytest.mark.parametrize(("n", "fraction"), [(16, 0.883), (64, 0.809)])
def test_centred_dilated_by_powers_of_three_never_connects_all(n, fraction):
    needed = ceil(log(n, 3))
    found = per_layer(Convolutions(3, [3**layer for layer in range(needed + 5)], causal=False), n)
    fractions = [reached.mean() for reached in found]
    assert round(fractions[-1], 3) == fraction
    assert fractions[needed:] == [fractions[-1]] * 5


@pytest.mark.parametrize(("size", "layers"), [(4, 3), (8, 7)])
def test_from_corner_to_corner(size, layers):
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Conv2d(1, 1, 3, padding=1) for _ in range(layers + 1))

        def forward(self, x):
            found = []
            for layer in self.layers:
                x = layer(x)
                found.append(x)
            return found

    graph = depgraph.trace(Stack(), (torch.randn(1, 1, size, size),))
    assert graph.inputs["x"].positions == (2, 3)
    lengths = [depgraph.path_lengths(graph, ("x", (0, 0)), (name, (-1, -1))).item() for name in graph.outputs]
    assert lengths == [-1] * (layers - 1) + [layers, layers + 1]
    assert layers == size - 1


def test_the_receptive_field_of_strides_and_dilations():
    # r = 1 + Σ d (k - 1) · product of the strides below
    layers = [(3, 2, 1), (5, 1, 2), (2, 3, 1), (4, 1, 3)]
    field, jump = 1, 1
    for kernel, stride, dilation in layers:
        field += dilation * (kernel - 1) * jump
        jump *= stride
    model = nn.Sequential(*(nn.Conv1d(1, 1, k, stride=s, dilation=d) for k, s, d in layers))
    for n in (field, field + 2 * jump):
        graph = depgraph.trace(model.eval(), (torch.randn(1, 1, n),))
        reached = depgraph.path_lengths(graph) >= 0
        assert reached.shape == (n, 1 + (n - field) // jump)
        for unit in range(reached.shape[1]):
            assert np.flatnonzero(reached[:, unit]).tolist() == list(range(unit * jump, unit * jump + field))


@pytest.mark.parametrize(("n", "reads"), [(1100, 1024), (700, 700)])
def test_wavenet(n, reads):
    model = Convolutions(2, [2**layer for layer in range(10)], causal=True)
    graph = depgraph.trace(model.eval(), (torch.randn(1, 1, n),))
    assert (depgraph.path_lengths(graph, target=("output.9", n - 1)) >= 0).sum() == reads


@pytest.mark.parametrize(("kernel", "blocks", "field"), [(2, 8, 511), (3, 4, 61)])
def test_temporal_convolutional_network(kernel, blocks, field):
    assert field == 1 + 2 * (kernel - 1) * (2**blocks - 1)
    for n in (field + 9, field // 2) if kernel == 3 else (field + 9,):
        graph = depgraph.trace(TemporalBlocks(kernel, blocks).eval(), (torch.randn(1, 1, n),), positions={"x": 2})
        assert (depgraph.path_lengths(graph, target=("output", n - 1)) >= 0).sum() == min(n, field)


@pytest.mark.parametrize(("size", "reads"), [(288, 212), (96, 96)])
def test_vgg(size, reads):
    graph = depgraph.trace(vgg16().eval(), (torch.randn(1, 1, size, 32),), positions={"input": 2})
    middle = size // 32 // 2
    assert (depgraph.path_lengths(graph, target=("output", middle)) >= 0).sum() == reads


def test_vgg_in_two_dimensions():
    graph = depgraph.trace(vgg16().eval(), (torch.randn(1, 1, 224, 224),))
    assert graph.inputs["input"].positions == (2, 3)
    # The unit in the middle of 7 × 7 sees 212 × 212 pixels, from (6, 6) on.
    cross = [(r, 112) for r in range(224)] + [(112, c) for c in range(224)]
    reached = depgraph.path_lengths(graph, ("input", cross), ("output", (3, 3)))[:, 0] >= 0
    assert np.flatnonzero(reached[:224]).tolist() == np.flatnonzero(reached[224:]).tolist() == list(range(6, 218))
    corners = [(6, 6), (6, 217), (217, 6), (217, 217), (5, 6), (6, 5), (218, 217), (217, 218)]
    reached = depgraph.path_lengths(graph, ("input", corners), ("output", (3, 3)))[:, 0] >= 0
    assert reached.tolist() == [True] * 4 + [False] * 4


@pytest.mark.parametrize("n", [6, 20])
def test_one_convolution_is_one_step(n):
    class Same(nn.Module):
        def forward(self, x, w):
            return F.conv1d(x, w, padding="same")

    graph = depgraph.trace(Same(), (torch.randn(2, 3, n), torch.randn(3, 3, 3)), positions={"x": 2})
    found = depgraph.parallelism(graph)
    assert (found.work, found.span, found.width) == (n, 1, n)
