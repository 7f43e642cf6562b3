"""Smaller graphs made of a graph: without some of its nodes, or with some of them drawn together."""

from __future__ import annotations

import numpy as np

from depgraph.dag.dag import Dag
from depgraph.dag.runs import BoolArray, IntArray, Runs, offsets


def induced(dag: Dag, keep: BoolArray) -> Dag:
    """Return the graph without the nodes that are not kept; those left are numbered anew, in the same order."""
    rank = offsets(keep.astype(np.int64))
    reads = dag.reads
    rows, starts, stops = reads.rows, rank[reads.starts], rank[reads.stops]
    live = keep[rows] & (stops > starts)
    counts = np.bincount(rank[rows[live]], minlength=int(rank[-1]))
    return Dag(int(rank[dag.inputs]), Runs(offsets(counts), starts[live], stops[live]), np.unique(rank[dag.blocks]))


def quotient(dag: Dag, representative: IntArray) -> Dag:
    """Return the graph with each node drawn together with its representative; nodes are numbered anew, in order.

    Parameters
    ----------
    dag : Dag
    representative : (nodes,) int array
        The node that stands for each node; it stands for itself. No edge of the result may lead backwards.
    """
    kept = representative == np.arange(dag.nodes)
    rank = offsets(kept.astype(np.int64))
    group = rank[representative]
    count = int(rank[-1])
    # A stretch of nodes whose groups ascend by 0 or 1 is mapped onto a stretch of groups.
    step = np.diff(group)
    reads = dag.reads.split_at(np.append(np.flatnonzero((step < 0) | (step > 1)) + 1, dag.nodes))
    rows, starts, stops = group[reads.rows], group[reads.starts], group[reads.stops - 1] + 1
    # Leave out the group itself: what is left of a run lies before it or after it.
    within = (starts <= rows) & (rows < stops)
    starts = np.concatenate([starts, rows[within] + 1])
    stops = np.concatenate([np.where(within, rows, stops), stops[within]])
    rows = np.concatenate([rows, rows[within]])
    live = stops > starts
    bounds = np.unique(rank[dag.blocks])
    merged = _merged(rows[live], starts[live], stops[live], count)
    return Dag(int(rank[dag.inputs]), merged.split_at(bounds[1:]), bounds)


def reader_counts(dag: Dag, weights: IntArray | None = None) -> IntArray:
    """Return, for each node, the number of nodes that read it, or their summed weight."""
    rows = dag.reads.rows
    values = np.ones(len(rows), np.int64) if weights is None else weights[rows]
    change = np.zeros(dag.nodes + 1, np.int64)
    np.add.at(change, dag.reads.starts, values)
    np.subtract.at(change, dag.reads.stops, values)
    return np.cumsum(change)[:-1]


def _merged(rows: IntArray, starts: IntArray, stops: IntArray, count: int) -> Runs:
    """Return the sets that the runs, in any order, overlapping or not, make up row by row."""
    if not len(rows):
        return Runs.empty(count)
    key = rows * count + starts
    if (key[1:] < key[:-1]).any():
        order = np.argsort(key)
        rows, starts, stops = rows[order], starts[order], stops[order]
    lift = rows * (int(stops.max()) + 1)  # above everything in the rows before, so that the maximum starts anew
    reach = np.maximum.accumulate(stops + lift) - lift
    fresh = np.append(True, (rows[1:] != rows[:-1]) | (starts[1:] > reach[:-1]))
    first = np.flatnonzero(fresh)
    last = np.append(first[1:], len(rows)) - 1
    return Runs(offsets(np.bincount(rows[first], minlength=count)), starts[first], reach[last])
