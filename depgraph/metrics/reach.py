"""Which nodes depend on a set of nodes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from depgraph.dag.dag import Dag
from depgraph.dag.runs import BoolArray, IntArray


def descendants(dag: Dag, nodes: IntArray) -> BoolArray:
    """Return, for each node, whether it is one of the given nodes or depends on one of them."""
    found = np.zeros(dag.nodes, bool)
    found[nodes] = True
    rows = dag.reads.rows
    # How many nodes before a given one have been found: a run has one of them if the count differs at its ends.
    before = np.zeros(dag.nodes + 1, np.int64)
    for low, high in pairwise(dag.blocks.tolist()):
        first, last = dag.reads.indptr[low], dag.reads.indptr[high]
        if last > first:
            hit = before[dag.reads.stops[first:last]] > before[dag.reads.starts[first:last]]
            found[rows[first:last][hit]] = True
        np.cumsum(found[low:high], out=before[low + 1 : high + 1])
        before[low + 1 : high + 1] += before[low]
    return found
