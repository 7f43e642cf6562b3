"""Scans of a linear recurrence, as products of 2 × 2 matrices: the same result by chains of different length."""

from math import log2

import numpy as np
import pytest
import torch

import depgraph
from tests.gallery.files import built, load, traced
from tests.oracles.pairs import past, reached


def counted(name, n, **sizes):
    graph = traced(name, n, **sizes)
    assert np.array_equal(reached(graph), past(n))
    found = depgraph.parallelism(graph)
    return found.work, found.span


@pytest.mark.parametrize(("n", "work", "span"), [(16, 15, 15), (64, 63, 63)])
def test_sequential(n, work, span):
    assert counted("sequential_scan", n) == (work, span) == (n - 1, n - 1)


@pytest.mark.parametrize(("n", "work", "span"), [(16, 49, 4), (64, 321, 6)])
def test_kogge_and_stone(n, work, span):
    steps = int(log2(n))
    assert counted("scan", n) == (work, span) == (n * steps - n + 1, steps)


@pytest.mark.parametrize(("n", "chunk", "work", "span"), [(16, 4, 24, 6), (64, 8, 112, 14)])
def test_chunked(n, chunk, work, span):
    expected = (n - n // chunk) + (n - chunk), chunk + n // chunk - 2
    assert counted("chunked_scan", n, chunk=chunk) == (work, span) == expected


@pytest.mark.parametrize("name", ["sequential_scan", "scan", "chunked_scan"])
@pytest.mark.parametrize("n", [16, 64])
def test_they_compute_the_recurrence(name, n):
    maps = load(name).example_inputs(n).double()
    state, expected = torch.zeros(()), []
    for t in range(n):
        state = maps[t, 0, 0] * state + maps[t, 0, 1]
        expected.append(state)
    assert torch.allclose(built(name)(maps)[:, 0, 1], torch.stack(expected))
