"""A chain cover in which operations follow each other position by position."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from depgraph.dag.dag import Dag
from depgraph.dag.runs import IntArray, Runs
from depgraph.metrics.flow.cover import halved


def columns(dag: Dag) -> int:
    """Return the number of chains of a cover in which blocks of one size follow each other, node i after node i.

    Where each node i of a block reads node i of another one, a chain of the one block goes on in the other: a chain
    cover of the blocks, each as often as it has nodes, is one of the nodes. Models that keep one vector a position all
    the way have no better one. Inputs are left out.
    """
    pairs = np.array(_aligned(dag), np.int64).reshape(-1, 2)
    blocks = len(dag.blocks) - 1
    inputs = int(np.searchsorted(dag.blocks, dag.inputs))
    amount = np.diff(dag.blocks)
    amount[:inputs] = 0
    reads = Runs.from_elements(pairs[:, 0], pairs[:, 1], blocks)
    edges = np.arange(blocks + 1)
    return halved(Dag(inputs, reads.split_at(edges[1:]), edges), amount).least()[0]


def _aligned(dag: Dag) -> list[tuple[int, int]]:
    """Return the pairs of blocks (reading, read) of one size in which each node i reads node i."""
    reads, sizes = dag.reads, np.diff(dag.blocks)

    def blocks_of(nodes: IntArray) -> IntArray:
        return np.searchsorted(dag.blocks, nodes, side="right") - 1

    found = []
    for block, (low, high) in enumerate(pairwise(dag.blocks.tolist())):
        first, last = int(reads.indptr[low]), int(reads.indptr[high])
        if not (sizes[blocks_of(reads.starts[first : reads.indptr[low + 1]])] == high - low).any():
            continue  # the first node reads no block of that size
        read = blocks_of(reads.starts[first:last])
        own = dag.blocks[read] + np.repeat(np.arange(high - low), np.diff(reads.indptr[low : high + 1]))
        hit = (reads.starts[first:last] <= own) & (own < reads.stops[first:last]) & (sizes[read] == high - low)
        blocks, hits = np.unique(read[hit], return_counts=True)
        found += [(block, other) for other in blocks[hits == high - low].tolist()]
    return found
