"""A chain cover in which each node follows one that it reads itself."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from depgraph.dag.runs import expand, offsets
from depgraph.metrics.flow.thinning import Candidates

#: Longer runs are not looked at: what reads many nodes finds another one to follow.
_SHORT = 8


def direct_chains(candidates: Candidates) -> int:
    """Return the number of chains of a cover of the nodes that count, each following one that it reads in a short run.

    The more nodes follow another one, the fewer chains; the most is a maximum matching, by Hopcroft and Karp.
    """
    dag, counted = candidates.dag, candidates.counted
    length = dag.reads.stops - dag.reads.starts
    looked_at = np.flatnonzero((length <= _SHORT) & np.repeat(counted, dag.reads.counts))
    reader = np.repeat(dag.reads.rows[looked_at], length[looked_at])
    read = expand(dag.reads.starts[looked_at], dag.reads.stops[looked_at])
    both = counted[read]
    reader, read = reader[both], read[both].astype(np.int32)
    indptr = offsets(np.bincount(reader, minlength=dag.nodes)).astype(np.int32)
    follows = csr_array((np.ones(len(read), np.int8), read, indptr), shape=(dag.nodes, dag.nodes))
    followed = maximum_bipartite_matching(follows, perm_type="column") >= 0
    return int(counted.sum()) - int(followed.sum())
