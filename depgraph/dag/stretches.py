"""Stretches of nodes whose values can be computed in one go: blocks, and chains of blocks of one node.

A recurrent layer is a chain: each step reads the one before, and else only what came before the whole layer. The
recurrence v[t] = w[t] + max(v[t - 1], a[t]) has a closed form, v[t] = W[t] + max over s ≤ t of (a[s] − W[s − 1]) with W
the running sum of w, so that a chain costs a few whole-array operations and not a Python step a node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from depgraph.dag.runs import BoolArray, IntArray, Runs, offsets

if TYPE_CHECKING:
    from depgraph.dag.dag import Dag

#: Shorter chains are left in blocks.
_WORTHWHILE = 8
#: How often chains are cut where an edge leads from within.
_ATTEMPTS = 8


@dataclass(frozen=True, eq=False)
class Stretches:
    """The nodes of a graph in stretches, each of which reads only stretches before it, and itself if it is a chain.

    Attributes
    ----------
    bounds : (stretches + 1,) int64
        From 0 to the number of nodes.
    chained : (stretches,) bool
        Whether it is a chain: every node but the first reads the one before it.
    reads : Runs
        What the nodes read, without the links of the chains.
    """

    bounds: IntArray
    chained: BoolArray
    reads: Runs

    def followed_by(self, rows: Runs) -> Stretches:
        """Return the stretches with one more at the end: a node for each row, which reads what is in the row."""
        last = int(self.bounds[-1])
        return Stretches(
            self.bounds if not len(rows) else np.append(self.bounds, last + len(rows)),
            self.chained if not len(rows) else np.append(self.chained, False),
            self.reads.followed_by(rows.split_at(self.bounds[1:])),
        )


def in_blocks(dag: Dag) -> Stretches:
    """Return every block as a stretch of its own."""
    return Stretches(dag.blocks, np.zeros(len(dag.blocks) - 1, bool), dag.reads)


def in_chains(dag: Dag) -> Stretches:
    """Return the graph in stretches, with as many chains as there are that no other edge reaches into."""
    linked = _links(dag)
    if linked is None:
        return in_blocks(dag)
    first = np.flatnonzero(linked & ~np.append(False, linked[:-1])) - 1
    last = np.flatnonzero(linked & ~np.append(linked[1:], False))
    long = last - first + 1 >= _WORTHWHILE
    if not long.any():
        return in_blocks(dag)
    first, last = first[long], last[long]
    # A chain goes from the node `first` to the node `last`: no stretch begins at those between.
    change = np.zeros(dag.nodes + 1, np.int64)
    change[first + 1] += 1
    change[last + 1] -= 1
    inner = np.cumsum(change) > 0
    bounds = dag.blocks[~inner[dag.blocks]]
    chained = np.zeros(len(bounds) - 1, bool)
    chained[np.searchsorted(bounds, first)] = True
    reads, within = dag.reads, inner[:-1]
    kept = np.ones(dag.runs, bool)
    kept[reads.indptr[1:][within] - 1] = False  # runs ascend: the last one of a node is its link
    return Stretches(bounds, chained, Runs(offsets(reads.counts - within), reads.starts[kept], reads.stops[kept]))


def _links(dag: Dag) -> BoolArray | None:
    """Return, for each node, whether it goes on a chain that the node before it is on; None where hardly any does.

    Both are alone in their blocks, and whatever else the node reads lies before the chain.
    """
    low = dag.blocks[:-1]
    single = low[np.diff(dag.blocks) == 1]
    if len(single) < _WORTHWHILE:
        return None
    reads, counts = dag.reads, dag.reads.counts
    alone = np.zeros(dag.nodes, bool)
    alone[single] = True
    at = single[(counts[single] > 0) & (single > dag.inputs)]
    at = at[alone[at - 1]]
    latest = reads.indptr[at + 1] - 1
    at = at[(reads.stops[latest] == at) & (reads.starts[latest] == at - 1)]
    if len(at) < _WORTHWHILE - 1:
        return None
    linked = np.zeros(dag.nodes, bool)
    linked[at] = True
    several = at[counts[at] > 1]
    latest_other = reads.stops[reads.indptr[several + 1] - 2]
    for attempt in range(_ATTEMPTS):
        # Where something else that a node reads lies on the chain itself, another chain begins at the first such node.
        head = np.maximum.accumulate(np.where(linked, 0, np.arange(dag.nodes)))
        within = several[linked[several] & (latest_other > head[several])]
        if not len(within):
            break
        if attempt < _ATTEMPTS - 1:
            within = within[np.append(True, head[within[1:]] != head[within[:-1]])]
        linked[within] = False
    return linked
