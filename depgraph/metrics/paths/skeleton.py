"""What is left of a graph when all that only makes paths longer is drawn together.

Whatever a norm, a rotation of halves or a feed-forward layer computes at a position comes from that position's vector
alone: the shortest way to it is the shortest way to that vector and so many operations more. Of a layer of a
Transformer, the attention and the sum behind it are left.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from depgraph.dag.runs import BoolArray, IntArray, Runs, expand, offsets
from depgraph.dag.stretches import Stretches

#: With less than this share of the nodes to be drawn together, the graph stays as it is.
_WORTHWHILE = 0.1
#: A run is compared with that many behind it in its row.
_COMPARED = 4


@dataclass(frozen=True, eq=False)
class Skeleton:
    """A smaller graph with the same shortest paths between what it keeps.

    Attributes
    ----------
    stretches : Stretches
        The nodes kept, numbered anew.
    kept : (nodes,) int64
        The numbers that they had.
    lengths : (runs,) int64
        What reading each run adds to a path.
    """

    stretches: Stretches
    kept: IntArray
    lengths: IntArray


def skeleton(stretches: Stretches, targets: Runs, inputs: int, weights: IntArray) -> Skeleton:
    """Draw stretches together with what they come from.

    A stretch goes if each of its nodes comes from a single node, its root, if the roots are consecutive nodes of one
    stretch, in order, and if the shortest way is equally long from all of them. A run of the stretch then stands for a
    run of roots, but for what it cuts off at its ends.

    Parameters
    ----------
    stretches : Stretches
    targets : Runs
        One more stretch behind them, which stays: a node for each row, which reads what is in the row.
    inputs : int
        The first nodes, which stay.
    weights : (nodes,) int64
    """
    reads, bounds = stretches.reads, stretches.bounds
    nodes = len(reads)
    root, extra = np.arange(nodes), np.zeros(nodes, np.int64)
    least = np.zeros(len(bounds) - 1, np.int64)
    gone = np.zeros(len(bounds) - 1, bool)
    stretch_of = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    chained, run_bounds = stretches.chained.tolist(), reads.indptr[bounds].tolist()
    for stretch, (low, high) in enumerate(pairwise(bounds.tolist())):
        first, last = run_bounds[stretch], run_bounds[stretch + 1]
        if low < inputs or chained[stretch] or last == first:
            continue
        starts, stops = reads.starts[first:last], reads.stops[first:last]
        found = root[starts]
        if (found[0] != found[: reads.indptr[low + 1] - first]).any() or (found != root[stops - 1]).any():
            continue
        counts = np.diff(reads.indptr[low : high + 1])
        if not counts.all():
            continue
        added = extra[starts]
        if (lengths := stops - starts).max() > 1:
            within = expand(starts, stops)
            cuts = offsets(lengths)[:-1]
            if (root[within] != np.repeat(found, lengths)).any():
                continue
            added = np.minimum.reduceat(extra[within], cuts)
        if last - first > high - low:
            rows = reads.indptr[low:high] - first
            if (found != np.repeat(found[rows], counts)).any():
                continue
            found, added = found[rows], np.minimum.reduceat(added, rows)
        step = np.diff(found)
        if ((step < 0) | (step > 1)).any() or stretch_of[found[0]] != stretch_of[found[-1]]:
            continue
        added = added + weights[low:high]
        shortest = np.minimum.reduceat(added, np.flatnonzero(np.append(True, step > 0)))
        if (shortest != shortest[0]).any():
            continue
        root[low:high], extra[low:high], least[stretch], gone[stretch] = found, added, shortest[0], True
    if int(np.diff(bounds)[gone].sum()) < _WORTHWHILE * nodes:
        whole = stretches.followed_by(targets)
        return Skeleton(whole, np.arange(nodes), np.zeros(len(whole.reads.starts), np.int64))
    return _assembled(stretches, targets, stretch_of, root, extra, least, gone)


def _assembled(
    stretches: Stretches,
    targets: Runs,
    stretch_of: IntArray,
    root: IntArray,
    extra: IntArray,
    least: IntArray,
    gone: BoolArray,
) -> Skeleton:
    """Keep the stretches that are not gone; what they read of those that are becomes what these come from."""
    lows, sizes = stretches.bounds[:-1], np.diff(stretches.bounds)
    kept = expand(lows[~gone], stretches.bounds[1:][~gone])
    shift = offsets(np.where(gone, 0, sizes))[:-1] - lows
    reads = stretches.reads.take(kept).followed_by(targets.split_at(stretches.bounds[1:]))
    rows, starts, stops = reads.rows, reads.starts, reads.stops
    read = stretch_of[starts]
    usual = least[read]
    since, until = _ends(root, extra, stretches.bounds, starts, stops, read)
    first, last = root[starts], root[stops - 1]
    one = first == last
    # A run of a single root; or one from the first to the last, each of them apart where something is cut off.
    before, after = ~one & (until != usual), ~one & (since != usual)
    low, high = first + before, last + 1 - after
    middle = high > low
    single = _smallest(extra, starts[one], stops[one])
    parts = np.stack([before, middle, after], 1)
    begin, end = np.stack([first, low, last], 1)[parts], np.stack([first + 1, high, last + 1], 1)[parts]
    usual = usual.copy()
    usual[one] = single
    added = np.stack([until, usual, since], 1)[parts]
    rows = np.repeat(rows, parts.sum(1))
    useful = _undominated(rows, begin, end, added)
    rows, begin, end, added = rows[useful], begin[useful], end[useful], added[useful]
    moved = shift[stretch_of[begin]]
    count = len(kept) + len(targets)
    shorter = Runs(offsets(np.bincount(rows, minlength=count)), begin + moved, end + moved)
    bounds, chained = np.append((lows + shift)[~gone], len(kept)), stretches.chained[~gone]
    if len(targets):
        bounds, chained = np.append(bounds, count), np.append(chained, False)
    return Skeleton(Stretches(bounds, chained, shorter), kept, added)


def _undominated(rows: IntArray, starts: IntArray, stops: IntArray, added: IntArray) -> BoolArray:
    """Leave out a run that lies within another one of its row that adds no more: keys and values of one attention."""
    useful = np.ones(len(rows), bool)
    for apart in range(1, _COMPARED + 1):
        one, other = slice(None, -apart), slice(apart, None)
        same = rows[one] == rows[other]
        if not same.any():
            break
        inside = same & (starts[one] <= starts[other]) & (stops[other] <= stops[one]) & (added[one] <= added[other])
        useful[other] &= ~inside
        around = same & (starts[other] <= starts[one]) & (stops[one] <= stops[other]) & (added[other] <= added[one])
        useful[one] &= ~(around & ~inside)
    return useful


def _ends(
    root: IntArray, extra: IntArray, bounds: IntArray, starts: IntArray, stops: IntArray, read: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the least addition that each run finds in its last group, and the one that it finds in its first.

    A group is what comes from the same root in the same stretch. A run may begin or end within one: what counts is
    what lies between there and the group's other end.
    """
    stretches, which = np.unique(read, return_inverse=True)
    sizes = bounds[stretches + 1] - bounds[stretches]
    nodes, begin = expand(bounds[stretches], bounds[stretches + 1]), offsets(sizes)[:-1]
    if not len(nodes):
        return np.zeros((2, 0), np.int64)[0], np.zeros(0, np.int64)
    own, roots = extra[nodes], root[nodes]
    fresh = np.append(True, roots[1:] != roots[:-1])
    fresh[begin] = True
    # Ranks, which stay small however large weights are, lifted so that a running minimum starts anew with each group.
    amounts, rank = np.unique(own, return_inverse=True)
    lift = np.cumsum(fresh) * len(amounts)
    since = amounts[np.minimum.accumulate(rank - lift) + lift]
    until = amounts[np.minimum.accumulate((rank + lift)[::-1])[::-1] - lift]
    place = (begin - bounds[stretches])[which]
    return since[stops - 1 + place], until[starts + place]


def _smallest(values: IntArray, starts: IntArray, stops: IntArray) -> IntArray:
    """Return the smallest value of each (non-empty) run."""
    lengths = stops - starts
    if not len(lengths) or lengths.max() == 1:
        return values[starts]
    return np.minimum.reduceat(values[expand(starts, stops)], offsets(lengths)[:-1])
