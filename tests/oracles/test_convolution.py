"""Convolutions: how many layers connect all pairs, and how far a position sees."""

from math import ceil, log, log2

import pytest
import torch
from torch import nn

import depgraph
from tests.gallery.files import built, traced
from tests.oracles.pairs import every, past
from tests.oracles.stacks import layers_to_connect, per_layer, stacked


def image(*size):
    return torch.randn(1, 1, *size)


def layers_needed(pairs, name, n, layers, **sizes):
    """Return how many layers it takes to connect pairs, tried with one more."""
    return layers_to_connect(pairs, name, image(n), features=1, channels=1, layers=layers + 1, **sizes)


def field(layers):
    """Return how much one result sees of what it is made from, by r = 1 + Σ d (k - 1) · product of the strides below.

    Parameters
    ----------
    layers : iterable of (kernel, stride, dilation)
    """
    result = jump = 1
    for kernel, stride, dilation in layers:
        result += dilation * (kernel - 1) * jump
        jump *= stride
    return result


def reads(graph, position):
    """Return how many input positions an output position reads: those just before it, or around it."""
    seen = depgraph.reads(graph, ("output", position))
    assert len(seen.intervals) == 1
    return len(seen)


@pytest.mark.parametrize(("k", "n", "layers"), [(3, 16, 8), (3, 64, 32), (5, 64, 16), (7, 64, 11)])
def test_causal_contiguous(k, n, layers):
    assert layers == ceil((n - 1) / (k - 1))
    assert layers_needed(past(n), "cnn", n, layers, kernel=k, causal=True) == layers


@pytest.mark.parametrize(("k", "n", "layers"), [(3, 64, 63), (5, 64, 32), (7, 64, 21), (3, 10, 9)])
def test_centred_contiguous(k, n, layers):
    assert layers == ceil(2 * (n - 1) / (k - 1))
    assert layers_needed(every(n), "cnn", n, layers, kernel=k) == layers


@pytest.mark.parametrize(("k", "n", "layers"), [(2, 16, 4), (2, 64, 6), (3, 64, 4), (5, 64, 3)])
def test_causal_dilated_by_powers_of_the_kernel(k, n, layers):
    assert layers == ceil(round(log(n, k), 9))
    if k == 2:  # the same stack, by either formula
        assert layers == by_powers_of_two(n, k)
    assert layers_needed(past(n), "dilated_cnn", n, layers, kernel=k, base=k) == layers


def by_powers_of_two(n, k):
    return ceil(log2(1 + (n - 1) / (k - 1)))


@pytest.mark.parametrize(("k", "n", "layers"), [(3, 16, 4), (3, 64, 6), (3, 128, 7)])
def test_causal_dilated_by_powers_of_two(k, n, layers):
    assert layers == by_powers_of_two(n, k)
    assert layers_needed(past(n), "dilated_cnn", n, layers, kernel=k, base=2) == layers


@pytest.mark.parametrize(("n", "fraction"), [(16, 0.883), (64, 0.809)])
def test_centred_dilated_by_powers_of_three_never_connects_all(n, fraction):
    # Ends or not, no layer after those that would reach from one to the other, and one more, changes anything.
    needed = ceil(log(n, 3)) + 1
    found = per_layer("dilated_cnn_centred", image(n), features=1, channels=1, layers=needed + 4)
    fractions = [layer.mean() for layer in found[needed - 1 :]]
    assert round(fractions[0], 3) == fraction
    assert fractions == [fractions[0]] * 5


@pytest.mark.parametrize(("size", "layers"), [(4, 3), (8, 7)])
def test_from_corner_to_corner(size, layers):
    graph = stacked("cnn2d", image(size, size), features=1, channels=1, layers=layers + 1)
    lengths = [
        depgraph.path_lengths(graph, ("x", (0, 0)), (output, (-1, -1)), "contractions").item()
        for output in graph.outputs
    ]
    assert lengths == [-1] * (layers - 1) + [layers, layers + 1]
    assert layers == size - 1


def test_the_receptive_field_of_strides_and_dilations():
    layers = [(3, 2, 1), (5, 1, 2), (2, 3, 1), (4, 1, 3)]
    expected, jump = field(layers), 2 * 3
    model = nn.Sequential(*(nn.Conv1d(1, 1, k, stride=s, dilation=d) for k, s, d in layers))
    for n in (expected, expected + 2 * jump):
        graph = depgraph.trace(model.eval(), (image(n),))
        units = graph.outputs["output"].count
        assert units == 1 + (n - expected) // jump
        for unit in range(units):
            seen = depgraph.reads(graph, ("output", unit))
            assert seen.intervals == [(unit * jump, unit * jump + expected)]


@pytest.mark.parametrize(("layers", "sees", "n"), [(10, 1024, 1050), (10, 1024, 700), (6, 64, 100)])
def test_wavenet(layers, sees, n):
    dilations = [2**layer for layer in range(layers)]
    assert sees == field((2, 1, dilation) for dilation in dilations)
    graph = traced("wavenet", n, channels=1, skips=1, levels=1, dilations=dilations)
    assert reads(graph, n - 1) == min(n, sees)


@pytest.mark.parametrize(("kernel", "blocks", "sees", "n"), [(2, 8, 511, 520), (3, 4, 61, 70), (3, 4, 61, 30)])
def test_temporal_convolutional_network(kernel, blocks, sees, n):
    assert sees == 1 + 2 * (kernel - 1) * (2**blocks - 1)
    assert sees == field((kernel, 1, 2**block) for block in range(blocks) for _ in range(2))
    graph = traced("tcn", n, channels=1, kernel=kernel, blocks=blocks)
    assert reads(graph, n - 1) == min(n, sees)


def test_the_receptive_field_of_vgg_is_that_of_its_layers():
    layers = built("vgg").layers
    convolutions = [layer for layer in layers if isinstance(layer, nn.Conv2d)]
    pools = [layer for layer in layers if isinstance(layer, nn.MaxPool2d)]
    assert (len(convolutions), len(pools)) == (13, 5)
    assert {(layer.kernel_size, layer.stride) for layer in convolutions} == {((3, 3), (1, 1))}
    assert {(layer.kernel_size, layer.stride) for layer in pools} == {(2, 2)}
    sizes = {nn.Conv2d: (3, 1, 1), nn.MaxPool2d: (2, 2, 1)}
    assert field(sizes[type(layer)] for layer in layers if type(layer) in sizes) == 212


@pytest.mark.parametrize(("height", "sees"), [(288, 212), (96, 96)])
def test_vgg(height, sees):
    graph = traced("vgg", 32, image(height, 32), positions={"x": 2}, features=1, width=1)
    assert reads(graph, height // 32 // 2) == sees


def test_vgg_in_two_dimensions():
    graph = traced("vgg", 224, image(224, 224), features=1, width=1)
    assert graph.outputs["output"].positions == (2, 3)
    # The unit in the middle of 7 × 7 sees 212 × 212 pixels, from (6, 6) on; those nearer to a corner see less of it.
    seen = depgraph.reads(graph, ("output", (3, 3)))
    assert seen.box == ((6, 218), (6, 218))
    assert len(seen) == 212**2
    for where, box in (((0, 0), (0, 122)), ((1, 1), (0, 154)), ((-1, -1), (102, 224))):
        seen = depgraph.reads(graph, ("output", where))
        assert seen.box == (box, box)
        assert len(seen) == (box[1] - box[0]) ** 2
    reaches = depgraph.feeds(graph, ("x", (0, 0)))
    assert reaches.box == ((0, 3), (0, 3))
    assert len(reaches) == 9
