"""Scans of a linear recurrence, as products of 2 × 2 matrices: the same result by chains of different length."""

from math import log2

import numpy as np
import pytest
import torch

import depgraph
from tests.oracles.models import Scan


def traced(kind, n, chunk=None):
    graph = depgraph.trace(Scan(kind, chunk), (torch.randn(n, 2, 2),), positions={"maps": 0, "output": 0})
    reached = depgraph.path_lengths(graph) >= 0
    assert np.array_equal(reached, np.triu(np.ones((n, n), bool)))
    found = depgraph.parallelism(graph)
    return found.work, found.span


@pytest.mark.parametrize(("n", "work", "span"), [(16, 15, 15), (64, 63, 63)])
def test_sequential(n, work, span):
    assert traced("sequential", n) == (work, span) == (n - 1, n - 1)


@pytest.mark.parametrize(("n", "work", "span"), [(16, 49, 4), (64, 321, 6)])
def test_kogge_and_stone(n, work, span):
    steps = int(log2(n))
    assert traced("kogge-stone", n) == (work, span) == (n * steps - n + 1, steps)


@pytest.mark.parametrize(("n", "chunk", "work", "span"), [(16, 4, 24, 6), (64, 8, 112, 14)])
def test_chunked(n, chunk, work, span):
    expected = (n - n // chunk) + (n - chunk), chunk + n // chunk - 2
    assert traced("chunked", n, chunk) == (work, span) == expected


@pytest.mark.parametrize(("kind", "chunk"), [("sequential", None), ("kogge-stone", None), ("chunked", 4)])
def test_they_compute_the_same(kind, chunk):
    maps = torch.randn(16, 2, 2, dtype=torch.float64)
    expected = maps[0]
    for t in range(1, 16):
        expected = maps[t] @ expected
    assert torch.allclose(Scan(kind, chunk)(maps)[-1], expected)
