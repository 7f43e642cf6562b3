"""What the nodes of one block read from an earlier block, as whole-array operations.

The values of a block's nodes are a table with one row a node (a vector, or a matrix with one column a source). The
minimum over the runs that many nodes read, or another join of them, is then a few operations on whole tables: which
ones depends on the pattern of the runs, found once by `selector`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from depgraph.dag.runs import IntArray, offsets, ragged_arange
from depgraph.metrics.paths.joins import MINIMUM, Join, SmallestSum, Sum, Table

#: Takes the table that is read; returns one row a reading node, and whether that result is a new array (which may be
#: overwritten) or a view.
Selector = Callable[[Table], tuple[Table, bool]]

#: Below this many columns, accumulating down a table in one go beats doing it in two levels.
_NARROW = 32


def selector(starts: IntArray, stops: IntArray, size: int, join: Join | SmallestSum = MINIMUM) -> Selector:
    """Return how to join the rows ``starts[i] … stops[i] - 1`` of a table, for every i.

    Parameters
    ----------
    starts, stops : int arrays of the same, positive length
        Non-empty runs, local to the table.
    size : int
        Rows of the table.
    join : Join or SmallestSum, optional
        The minimum by default.
    """
    count, low, high = len(starts), int(starts[0]), int(stops[0])
    same_start, same_stop = (True, True) if count == 1 else ((starts == low).all(), (stops == high).all())
    if same_start and same_stop:
        return _one_run(low, high, count, join)
    lengths = stops - starts
    longest = int(lengths.max())
    if longest == 1:
        return _slice(low, low + count, size) if _ascending(starts, 1) else _gather(starts)
    if same_start:
        return _running(low, int(stops.max()), stops - low - 1, join, backwards=False)
    if same_stop:
        return _running(int(starts.min()), high, high - starts - 1, join, backwards=True)
    if int(lengths.min()) == longest and _ascending(starts, longest):
        return _tiles(low, count, longest, join)
    if longest == 2 and (join.idempotent or int(lengths.min()) == 2):
        return _both(starts, stops - 1, size, join)
    keys, inverse = np.unique(starts * (size + 1) + stops, return_inverse=True)
    if len(keys) < count:
        inner = selector(keys // (size + 1), keys % (size + 1), size, join)
        return lambda table: (inner(table)[0].take(inverse, axis=0), True)
    span = int(stops.max()) - int(starts.min())
    if 3 * int(lengths.sum()) < span * (longest.bit_length() - 1) + 3 * count:
        return lambda table: (segments(table, starts, lengths, join), True)
    if isinstance(join, Sum):
        return _differences(starts, stops, join)
    return _doubling(starts, stops, join) if join.idempotent else _halving(starts, stops, join)


def segments(table: Table, starts: IntArray, counts: IntArray, join: Join | SmallestSum = MINIMUM) -> Table:
    """Join the rows ``starts[i] … starts[i] + counts[i] - 1``, for every i; no count is 0.

    Both halves of every segment are laid over each other until one row is left of each, which costs as much as
    copying the segments twice. (`numpy.ufunc.reduceat` walks down each column by itself.)
    """
    while True:
        longest = int(counts.max())
        if longest == int(counts.min()) and _ascending(starts, longest):
            low, count = int(starts[0]), len(starts)
            return _reduce_tiles(table[low : low + count * longest], count, longest, join)
        if longest == 1:
            return table.take(starts, axis=0)
        half = (counts + 1) // 2
        step = ragged_arange(half)
        left = table.take(np.repeat(starts, half) + step, axis=0)
        if join.idempotent:  # a row in the middle may be in both halves
            right = table.take(np.repeat(starts + counts - half, half) + step, axis=0)
            table = join(left, right, out=left)
        else:
            two = step < np.repeat(counts // 2, half)
            right = table.take((np.repeat(starts + half, half) + step)[two], axis=0)
            left[two] = join(left[two], right, out=right)
            table = left
        starts, counts = offsets(half)[:-1], half


def running(table: Table, join: Join | SmallestSum = MINIMUM) -> Table:
    """Return each row joined with all rows before it, worked out row by row rather than column by column."""
    rows = len(table)
    if isinstance(join, Join) and (rows < 4 or table[0].size < _NARROW):
        result: Table = join.ufunc.accumulate(table, axis=0)
        return result
    out = table.copy()
    width = int(rows**0.5)
    stretches = rows // width
    grid = out[: stretches * width].reshape(stretches, width, *table.shape[1:])
    for i in range(1, width):  # within all stretches at once
        join(grid[:, i], grid[:, i - 1], out=grid[:, i])
    for j in range(1, stretches):  # the last row of each stretch
        join(grid[j, -1], grid[j - 1, -1], out=grid[j, -1])
    join(grid[1:, :-1], grid[:-1, -1:], out=grid[1:, :-1])
    for i in range(stretches * width, rows):
        join(out[i], out[i - 1], out=out[i])
    return out


def _ascending(values: IntArray, step: int) -> bool:
    last = len(values) - 1
    return int(values[last]) - int(values[0]) == step * last and bool((np.diff(values) == step).all())


def _slice(low: int, high: int, size: int) -> Selector:
    if low == 0 and high == size:
        return lambda table: (table, False)
    return lambda table: (table[low:high], False)


def _gather(rows: IntArray) -> Selector:
    return lambda table: (table.take(rows, axis=0), True)


def _one_run(low: int, high: int, count: int, join: Join | SmallestSum) -> Selector:
    def select(table: Table) -> tuple[Table, bool]:
        row = table[low:high]
        if high - low > 1:
            row = join.reduce(row, axis=0, keepdims=True)
            join.settle(row)
        return (row if count == 1 else np.broadcast_to(row, (count, *row.shape[1:]))), False

    return select


def _both(firsts: IntArray, lasts: IntArray, size: int, join: Join | SmallestSum) -> Selector:
    """Runs of one or two rows: their first and their last one."""
    one, other = (
        _slice(int(rows[0]), int(rows[0]) + len(rows), size) if _ascending(rows, 1) else _gather(rows)
        for rows in (firsts, lasts)
    )

    def select(table: Table) -> tuple[Table, bool]:
        left, fresh = one(table)
        return join(left, other(table)[0], out=left if fresh else None), True

    return select


def _running(low: int, high: int, rows: IntArray, join: Join | SmallestSum, *, backwards: bool) -> Selector:
    """All runs begin at ``low``, or, backwards, end at ``high``."""
    count = len(rows)
    in_order = _ascending(rows, 1)
    first = int(rows[0])

    def select(table: Table) -> tuple[Table, bool]:
        part = table[low:high]
        totals = running(part[::-1] if backwards else part, join)
        return (totals[first : first + count] if in_order else totals.take(rows, axis=0)), True

    return select


def _tiles(low: int, count: int, length: int, join: Join | SmallestSum) -> Selector:
    return lambda table: (_reduce_tiles(table[low : low + count * length], count, length, join), True)


def _reduce_tiles(part: Table, count: int, length: int, join: Join | SmallestSum) -> Table:
    if length == 1:
        return part.copy()
    return join.reduce(part.reshape(count, length, *part.shape[1:]), axis=1)


def _doubling(starts: IntArray, stops: IntArray, join: Join | SmallestSum) -> Selector:
    """Any runs: two overlapping stretches of 2ᵏ rows cover a run of 2ᵏ to 2ᵏ⁺¹ rows."""
    low, high, count = int(starts.min()), int(stops.max()), len(starts)
    level = _bits(stops - starts) - 1
    steps = []
    for k in range(int(level.max()) + 1):
        rows = np.flatnonzero(level == k)
        steps.append((1 << k, rows, starts[rows] - low, stops[rows] - low - (1 << k)))

    def select(table: Table) -> tuple[Table, bool]:
        part = table[low:high]
        result = np.empty((count, *table.shape[1:]), table.dtype)
        for length, rows, left, right in steps:
            if length > 1:
                part = join(part[: -(length // 2)], part[length // 2 :])
            if len(rows) == count:
                return join(part.take(left, axis=0), part.take(right, axis=0)), True
            if len(rows):
                result[rows] = join(part.take(left, axis=0), part.take(right, axis=0))
        return result, True

    return select


def _halving(starts: IntArray, stops: IntArray, join: Join | SmallestSum) -> Selector:
    """Any runs, no row joined twice: up and down from the row in a run whose number is divisible by most twos.

    For each power of two that occurs, the rows before and after its odd multiples are joined step by step, as far as
    some run goes ("disjoint sparse table").
    """
    low, high, count = int(starts.min()), int(stops.max()), len(starts)
    first, last = starts - low, stops - 1 - low
    level = _bits(first ^ last)
    single = np.flatnonzero(level == 0)
    steps = []
    for k in np.unique(level[level > 0]).tolist():
        rows = np.flatnonzero(level == k)
        middles, which = np.unique(last[rows] >> (k - 1) << (k - 1), return_inverse=True)
        below, above = middles[which] - 1 - first[rows], last[rows] - middles[which]
        down = middles - 1 - np.arange(int(below.max()) + 1)[:, None]
        up = np.minimum(middles + np.arange(int(above.max()) + 1)[:, None], high - low - 1)
        steps.append((rows, which, (down, below), (up, above)))

    def select(table: Table) -> tuple[Table, bool]:
        part = table[low:high]
        result = np.empty((count, *table.shape[1:]), table.dtype)
        result[single] = part.take(first[single], axis=0)
        for rows, which, *sides in steps:
            left, right = (running(part.take(order, axis=0), join)[far, which] for order, far in sides)
            result[rows] = join(left, right, out=left)
        return result, True

    return select


def _differences(starts: IntArray, stops: IntArray, join: Sum) -> Selector:
    """Any runs of which sums are wanted. Running totals may wrap around; their differences are right all the same."""
    low, high = int(starts.min()), int(stops.max())
    inner = np.flatnonzero(starts > low)
    before, last = starts[inner] - 1 - low, stops - 1 - low

    def select(table: Table) -> tuple[Table, bool]:
        totals = running(table[low:high], join)
        result = totals.take(last, axis=0)
        result[inner] -= totals.take(before, axis=0)
        return result, True

    return select


def _bits(numbers: IntArray) -> IntArray:
    """Return how many binary digits each number has."""
    return np.frexp(numbers)[1].astype(np.int64)
