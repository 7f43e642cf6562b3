"""Which nodes a set of nodes depends on."""

from __future__ import annotations

import numpy as np

from depgraph.dag.dag import Dag
from depgraph.dag.runs import BoolArray, IntArray, ragged_arange


def ancestors(dag: Dag, starts: IntArray, stops: IntArray) -> BoolArray:
    """Return which nodes can be reached backwards from the nodes in the given runs, these included.

    Parameters
    ----------
    dag : Dag
    starts, stops : (runs,) int64
        None of them crosses a block boundary.

    Returns
    -------
    (nodes,) bool
        In time linear in the runs, not in the edges.
    """
    # Marks to be summed up within a block: +1 where a wanted run starts, -1 where it stops short of the block's end.
    marks = np.zeros(dag.nodes + 1, np.int64)

    def mark(starts: IntArray, stops: IntArray) -> None:
        ends = dag.blocks[np.searchsorted(dag.blocks, starts, side="right")]
        np.add.at(marks, starts, 1)
        np.add.at(marks, stops[stops < ends], -1)

    mark(starts, stops)
    reads = dag.reads
    found = np.zeros(dag.nodes, bool)
    for low, high in zip(dag.blocks[-2::-1].tolist(), dag.blocks[:0:-1].tolist(), strict=True):
        live = np.cumsum(marks[low:high]) > 0
        if live.any():
            found[low:high] = live
            first, last = reads.indptr[low:high][live], reads.indptr[low + 1 : high + 1][live]
            counts = last - first
            runs = np.repeat(first, counts) + ragged_arange(counts)
            if len(runs):
                mark(reads.starts[runs], reads.stops[runs])
    return found
