"""Which position is where from which: matrices of input positions (rows) and output positions (columns)."""

from __future__ import annotations

import numpy as np

import depgraph


def distance(n):
    """Return j - i for input position i and output position j."""
    return np.arange(n)[None, :] - np.arange(n)[:, None]


def past(n):
    """Return which position reads which where all read themselves and those before them, and no others."""
    return distance(n) >= 0


def every(n):
    """Return that all positions read all others."""
    return np.ones((n, n), bool)


def reached(graph, source=None, target=None):
    """Return which input position reaches which output position."""
    return depgraph.path_lengths(graph, source, target) >= 0
