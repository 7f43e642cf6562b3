"""Large sets of nodes none of which depends on another, without a proof that they are the largest."""

from __future__ import annotations

import numpy as np

from depgraph.dag.dag import Dag
from depgraph.dag.reach import ancestors
from depgraph.dag.runs import IntArray
from depgraph.metrics.flow.quotient import reader_counts
from depgraph.metrics.reach import descendants

#: How many times an antichain is made larger unless one says otherwise.
EXTENSIONS = 8


def large_antichain(dag: Dag, depth: IntArray, extensions: int = EXTENSIONS) -> IntArray:
    """Return the numbers of the nodes of a large antichain, inputs left out, in order.

    The nodes at one depth do not depend on each other, nor do those of one block, nor those that nothing reads. To the
    largest such set come, again and again, the most nodes at one depth among those that no node so far depends on or
    is depended on by.

    Parameters
    ----------
    dag : Dag
    depth : (nodes,) int64
        The longest chain that ends in each node, in nodes.
    extensions : int, optional
        How many times it is made larger.
    """
    free = np.arange(dag.nodes) >= dag.inputs
    if not free.any():
        return np.zeros(0, np.int64)
    sizes = np.diff(dag.blocks) * (dag.blocks[1:] > dag.inputs)
    block = int(sizes.argmax())
    found = [
        max(
            _deepest(depth, free),
            np.arange(dag.blocks[block], dag.blocks[block + 1]),
            np.flatnonzero((reader_counts(dag) == 0) & free),
            key=len,
        )
    ]
    for _ in range(extensions):
        free &= ~(ancestors(dag, found[-1], found[-1] + 1) | descendants(dag, found[-1]))
        if not free.any():
            break
        found.append(_deepest(depth, free))
    return np.sort(np.concatenate(found))


def _deepest(depth: IntArray, free: np.ndarray) -> IntArray:
    """Return the free nodes at the depth at which there are most of them."""
    return np.flatnonzero(free & (depth == np.bincount(depth[free]).argmax()))
