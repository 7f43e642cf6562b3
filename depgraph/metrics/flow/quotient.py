"""Smaller graphs made of a graph: without some of its nodes, or with some of them drawn together."""

from __future__ import annotations

import numpy as np

from depgraph.dag.dag import Dag
from depgraph.dag.runs import BoolArray, IntArray, Runs, offsets


def induced(dag: Dag, keep: BoolArray) -> Dag:
    """Return the graph without the nodes that are not kept; those left are numbered anew, in the same order."""
    rank = offsets(keep.astype(np.int64))
    reads = dag.reads
    live = np.flatnonzero(np.repeat(keep, reads.counts))
    starts, stops = rank[reads.starts[live]], rank[reads.stops[live]]
    some = stops > starts
    before = offsets(some.astype(np.int64))  # of the runs of nodes that are kept, how many lie before each
    indptr = before[offsets(reads.counts[keep])]
    if not some.all():
        starts, stops = starts[some], stops[some]
    return Dag(int(rank[dag.inputs]), Runs(indptr, starts, stops), np.unique(rank[dag.blocks]))


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
    reads = _split(dag.reads, (step < 0) | (step > 1))
    rows, starts, stops = np.repeat(group, reads.counts), group[reads.starts], group[reads.stops - 1] + 1
    # Leave out the group itself: what is left of a run lies before it or after it.
    within = (starts <= rows) & (rows < stops)
    if within.any():
        more = within & (stops > rows + 1)
        after, end, row = rows[more] + 1, stops[more], rows[more]
        stops[within] = rows[within]
        live = stops > starts
        rows, starts, stops = rows[live], starts[live], stops[live]
        if len(row):
            rows, starts, stops = np.append(rows, row), np.append(starts, after), np.append(stops, end)
    bounds = np.unique(rank[dag.blocks])
    first = np.zeros(count, np.bool_)
    first[bounds[:-1]] = True
    return Dag(int(rank[dag.inputs]), _split(_merged(rows, starts, stops, count), first[1:]), bounds)


def ends(moves: BoolArray, target: IntArray) -> IntArray:
    """Return where one gets from each node by following the targets of those that move, as far as they lead.

    Jumps double in length.
    """
    result = np.arange(len(moves))
    moving = np.flatnonzero(moves)
    result[moving] = target[moving]
    while len(moving):
        here = result[moving]
        further = result[here]
        changed = further != here
        result[moving] = further
        moving = moving[changed]
    return result


def readers(dag: Dag) -> tuple[IntArray, IntArray]:
    """Return how many nodes read each node, and which one does (themselves, where it is not a single one)."""
    reads = dag.reads
    number, rows = reader_counts(dag), reads.rows
    long = np.flatnonzero(reads.stops - reads.starts > 1)
    sole = np.zeros(dag.nodes, np.int64)
    if len(long):  # the sum over all long runs; right where a single one holds the node
        change = np.zeros(dag.nodes + 1, np.int64)
        np.add.at(change, reads.starts[long], rows[long])
        np.subtract.at(change, reads.stops[long], rows[long])
        sole = np.cumsum(change)[:-1]
        short = np.flatnonzero(reads.stops - reads.starts == 1)
        sole[reads.starts[short]] = rows[short]
    else:
        sole[reads.starts] = rows
    return number, np.where(number == 1, sole, np.arange(dag.nodes))


def single_reads(dag: Dag) -> tuple[BoolArray, IntArray]:
    """Return which nodes read a single other one, and which one (themselves, where they do not)."""
    reads, single = dag.reads, np.zeros(dag.nodes, np.bool_)
    one = np.flatnonzero(reads.counts == 1)
    run = reads.indptr[one]
    alone = reads.stops[run] - reads.starts[run] == 1
    read = np.arange(dag.nodes)
    single[one[alone]] = True
    read[one[alone]] = reads.starts[run[alone]]
    return single, read


def reader_counts(dag: Dag) -> IntArray:
    """Return the number of nodes that read each node."""
    size = dag.nodes + 1
    change = np.bincount(dag.reads.starts, minlength=size) - np.bincount(dag.reads.stops, minlength=size)
    return np.cumsum(change)[:-1]


def _split(runs: Runs, breaks: BoolArray) -> Runs:
    """Return the same sets with runs cut after each number at which there is a break."""
    before = offsets(breaks.astype(np.int64))
    if not len(runs.starts) or np.array_equal(before[runs.starts], before[runs.stops - 1]):
        return runs
    return runs.split_at(np.append(np.flatnonzero(breaks), len(breaks)) + 1)


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
    if fresh.all():
        return Runs(offsets(np.bincount(rows, minlength=count)), starts, stops)
    first = np.flatnonzero(fresh)
    last = np.append(first[1:], len(rows)) - 1
    return Runs(offsets(np.bincount(rows[first], minlength=count)), starts[first], reach[last])
