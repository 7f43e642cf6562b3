"""The most nodes that could ever run at the same moment: the largest antichain."""

from __future__ import annotations

import numpy as np

from depgraph.dag.dag import Dag
from depgraph.dag.reach import ancestors
from depgraph.dag.runs import BoolArray, IntArray, Runs
from depgraph.metrics.flow.contraction import Supply, contract
from depgraph.metrics.flow.network import flow_through
from depgraph.metrics.reach import descendants

#: Up to this many nodes and runs the exact width is computed: some seconds, and about 100 bytes for each of them.
_LARGEST = 4_000_000
#: How many times an antichain is made larger.
_EXTENSIONS = 8


def width(dag: Dag, depth: IntArray) -> tuple[int, bool]:
    """Return the size of the largest set of nodes none of which depends on another, inputs left out.

    By Dilworth's theorem [1]_ that is the least number of chains that cover all nodes. Each node but the last of its
    chain is followed by one that depends on it, directly or through others: the number of nodes less the largest
    number of such successions is the width. That number is a maximum flow [2]_, in which every node gives to one that
    depends on it, takes from one that it depends on, and lets through what passes between others.

    Parameters
    ----------
    dag : Dag
    depth : (nodes,) int64
        The longest chain that ends in each node, in nodes.

    Returns
    -------
    size : int
    exact : bool
        Whether the size is known to be the largest; else it is that of the largest antichain found.

    References
    ----------
    .. [1] R. P. Dilworth, "A decomposition theorem for partially ordered sets", Annals of Mathematics 51, 1950.
    .. [2] D. R. Fulkerson, "Note on Dilworth's decomposition theorem for partially ordered sets", Proceedings of the
       American Mathematical Society 7, 1956.
    """
    executed = dag.nodes - dag.inputs
    if not executed:
        return 0, True
    if dag.nodes + dag.runs > _LARGEST:
        return largest_found(dag, depth), False
    supply = contract(_successions(dag))
    successions = supply.passed
    if supply.dag.nodes:
        successions += flow_through(supply)[0]
    return executed - successions, True


def largest_found(dag: Dag, depth: IntArray) -> int:
    """Return the size of a large antichain: a set of nodes at one depth, and what is independent of all of them.

    Nodes at the same depth do not depend on each other. To the largest such set come, again and again, the most nodes
    at one depth among those that no node so far depends on or is depended on by.
    """
    free = np.arange(dag.nodes) >= dag.inputs
    size = 0
    for _ in range(_EXTENSIONS):
        if not free.any():
            break
        level = np.flatnonzero(free & (depth == np.bincount(depth[free]).argmax()))
        size += len(level)
        free &= ~(ancestors(dag, level, level + 1) | descendants(dag, level))
    return size


def _successions(dag: Dag) -> Supply:
    """Return the graph with every node in two halves, the one that takes (drained) and the one that gives (fed).

    The halves of a block are two blocks, one after the other. The giving half reads the taking one: what a node does
    not take passes through it.
    """
    sizes = np.diff(dag.blocks)
    shift = np.repeat(dag.blocks[:-1], sizes)
    takes = np.arange(dag.nodes) + shift
    gives = takes + np.repeat(sizes, sizes)
    counts = np.ones(2 * dag.nodes, np.int64)
    counts[takes] = dag.reads.counts
    indptr = np.append(0, np.cumsum(counts))
    from_takes = np.zeros(int(indptr[-1]), bool)
    from_takes[indptr[:-1][gives]] = True
    starts, stops = np.empty((2, len(from_takes)), np.int64)
    starts[from_takes] = takes
    stops[from_takes] = takes + 1
    starts[~from_takes] = gives[dag.reads.starts]
    stops[~from_takes] = gives[dag.reads.stops - 1] + 1
    bounds = np.unique(np.concatenate([2 * dag.blocks, 2 * dag.blocks[:-1] + sizes]))
    fed, drained = np.zeros((2, 2 * dag.nodes), np.int64)
    executed: BoolArray = np.arange(dag.nodes) >= dag.inputs
    fed[gives[executed]], drained[takes[executed]] = 1, 1
    doubled = Dag(2 * dag.inputs, Runs(indptr, starts, stops), bounds)
    return Supply(doubled, np.arange(2 * dag.nodes), fed, drained)
