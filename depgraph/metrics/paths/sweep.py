"""Carry values through a graph, a stretch at a time, from what is read to what reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from depgraph.dag.runs import BoolArray, IntArray, Runs, offsets
from depgraph.dag.stretches import Stretches
from depgraph.metrics.paths.joins import MINIMUM, Join, SmallestSum, Table
from depgraph.metrics.paths.reading import Selector, running, segments, selector

#: Nodes whose numbers of runs differ are treated alike, the last run repeated, up to this many runs.
_PADDED = 8


class Value(NamedTuple):
    """The values of a stretch: ``table``, its lengths plus ``offset``.

    Stretches that read one other block in order share its table.
    """

    table: Table
    offset: Any
    fresh: bool


@dataclass(frozen=True)
class Column:
    """One run of every node of a stretch, all of them in the stretch ``read``; what reading them adds, if anything."""

    read: int
    select: Selector
    added: IntArray | int = 0


@dataclass(frozen=True)
class Pile:
    """All runs of a stretch, wherever they are: ``groups`` holds (column, rows of the pile).

    The rows of the pile that belong to node i are ``starts[i] … starts[i] + counts[i] - 1``.
    """

    rows: int
    groups: list[tuple[Column, IntArray]]
    starts: IntArray
    counts: IntArray


class Sweep:
    """Values of the nodes of a graph computed from the values of what they read.

    Parameters
    ----------
    stretches : Stretches
        With chains only where all weights are integers: a chain adds them up in another order.
    join : Join or SmallestSum, optional
        What a node makes of the values that it reads: their minimum by default.
    lengths : (runs,) int64, optional
        What reading each run adds to its lengths; nothing by default.

    Attributes
    ----------
    bounds : list of int
        Boundaries of the stretches.
    count : int
        Number of stretches.
    """

    def __init__(
        self, stretches: Stretches, join: Join | SmallestSum = MINIMUM, lengths: IntArray | None = None
    ) -> None:
        self.stretches, self.join = stretches, join
        self._added = lengths if lengths is not None and lengths.any() else None
        self.bounds: list[int] = stretches.bounds.tolist()
        self.count = len(self.bounds) - 1
        self._run_bounds: list[int] = stretches.reads.indptr[stretches.bounds].tolist()
        self._read = self.stretch_of(stretches.reads.starts)
        self._plans: dict[int, list[Column] | Pile] = {}

    def stretch_of(self, nodes: IntArray) -> IntArray:
        """Return the stretch of each of some nodes."""
        return np.searchsorted(self.stretches.bounds, nodes, side="right") - 1

    @property
    def run_counts(self) -> IntArray:
        """Number of runs that each stretch reads."""
        return np.diff(self._run_bounds)

    @cached_property
    def reads(self) -> Runs:
        """Row s: the stretches that stretch s reads, other than itself."""
        count = max(self.count, 1)
        key = np.repeat(np.arange(self.count), self.run_counts) * count + self._read
        if len(key):
            key = np.unique(key[np.append(True, key[1:] != key[:-1])])
        return Runs.from_sorted(key // count, key % count, self.count)

    def between(self, sources: IntArray, targets: IntArray) -> BoolArray:
        """Return, for each stretch, whether it may lie on a path from one of some stretches to one of some others."""
        _, edge_read = self.reads.elements()
        cuts = offsets(self.reads.sizes).tolist()
        after, before = np.zeros(self.count, bool), np.zeros(self.count, bool)
        after[sources], before[targets] = True, True
        for stretch in range(self.count):
            low, high = cuts[stretch], cuts[stretch + 1]
            if high > low and not after[stretch]:
                after[stretch] = after[edge_read[low:high]].any()
        for stretch in range(self.count - 1, -1, -1):
            if before[stretch]:
                before[edge_read[cuts[stretch] : cuts[stretch + 1]]] = True
        return after & before

    def last_readers(self, wanted: BoolArray) -> IntArray:
        """Return, for each stretch, the last wanted stretch that reads it, -1 where there is none."""
        reader, read = self.reads.elements()
        result = np.full(self.count, -1)
        keep = wanted[reader]
        result[read[keep]] = reader[keep]  # readers ascend, so the last one stays
        return result

    def run(
        self,
        weights: Table,
        empty: Any,
        start: Callable[[int], Table | None],
        visit: Callable[[int, Value], None],
        wanted: BoolArray | None = None,
    ) -> None:
        """Join what each node reads and add the node's weight to its lengths, for all nodes, stretch by stretch.

        Parameters
        ----------
        weights : (nodes,) array
        empty : number
            The value of a node that reads nothing that has a value.
        start : callable
            Stretch to its table if it is given, None if it is to be computed.
        visit : callable
            Called with each stretch and its value. A table may be shared and must not be changed.
        wanted : (stretches,) bool array, optional
            Leave out the others, and forget values after their last reader.
        """
        exact = weights.dtype.kind == "i"
        values: dict[int, Value] = {}
        dropped: list[list[int]] = [[] for _ in range(self.count + 1)]
        if wanted is not None:
            for stretch, last in enumerate(self.last_readers(wanted).tolist()):
                dropped[last if last >= 0 else stretch].append(stretch)
        columns: tuple[int, ...] = ()
        dtype = weights.dtype
        chained = self.stretches.chained.tolist()
        for stretch in range(self.count):
            if wanted is not None and not wanted[stretch]:
                continue
            given = start(stretch)
            if given is not None:
                columns, dtype, value = given.shape[1:], given.dtype, Value(given, 0, False)
            else:
                low, high = self.bounds[stretch], self.bounds[stretch + 1]
                found = self._gather(self._plan(stretch), values, empty)
                if found is None:
                    found = Value(np.empty((high - low, *columns), dtype), 0, True)
                    self.join.fill(found.table, empty)
                add = _along if chained[stretch] else _add
                value = add(found, weights[low:high], exact, self.join)
            values[stretch] = value
            visit(stretch, value)
            for old in dropped[stretch]:
                values.pop(old, None)

    def _plan(self, stretch: int) -> list[Column] | Pile:
        plan = self._plans.get(stretch)
        if plan is None:
            plan = self._plans[stretch] = self._make_plan(stretch)
        return plan

    def _make_plan(self, stretch: int) -> list[Column] | Pile:
        low, high = self._run_bounds[stretch], self._run_bounds[stretch + 1]
        if low == high:
            return []
        reads, nodes = self.stretches.reads, self.bounds[stretch + 1] - self.bounds[stretch]
        every, read = np.arange(low, high), self._read[low:high]
        if nodes == 1:
            if len(read) <= _PADDED:
                return [self._column(every[i : i + 1]) for i in range(len(every))]
            return self._make_pile(every, np.array([high - low]))
        counts = np.diff(reads.indptr[self.bounds[stretch] : self.bounds[stretch + 1] + 1])
        most, fewest = int(counts.max()), int(counts.min())
        if most == fewest or (fewest > 0 and most <= _PADDED and self.join.idempotent):
            which = offsets(counts)[:-1, None] + np.minimum(np.arange(most), counts[:, None] - 1)
            read_grid = read[which]
            if (read_grid == read_grid[0]).all():
                return [self._column(every[which[:, i]]) for i in range(most)]
        return self._make_pile(every, counts)

    def _make_pile(self, runs: IntArray, counts: IntArray) -> Pile:
        read = self._read[runs]
        order = np.argsort(read, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(read[order])) + 1)
        return Pile(len(runs), [(self._column(runs[rows]), rows) for rows in groups], offsets(counts)[:-1], counts)

    def _column(self, runs: IntArray) -> Column:
        """Return runs that are in one stretch as a column."""
        read, reads = int(self._read[runs[0]]), self.stretches.reads
        low = self.bounds[read]
        select = selector(reads.starts[runs] - low, reads.stops[runs] - low, self.bounds[read + 1] - low, self.join)
        if self._added is None:
            return Column(read, select)
        added = self._added[runs]
        return Column(read, select, int(added[0]) if (added == added[0]).all() else added)

    def _gather(self, plan: list[Column] | Pile, values: dict[int, Value], empty: Any) -> Value | None:
        """Return what the nodes of a stretch get from what they read, None where nothing they read has a value."""
        if isinstance(plan, Pile):
            return _read_pile(plan, values, empty, self.join)
        result: Value | None = None
        for column in plan:
            value = values.get(column.read)
            if value is None:
                continue
            found = _taken(column, value, self.join)
            result = found if result is None else _combine(result, found, self.join)
        if result is not None and result.fresh:
            self.join.settle(result.table)
        return result


def _taken(column: Column, value: Value, join: Join | SmallestSum) -> Value:
    """Return what a column takes of the values of the stretch that it reads."""
    table, fresh = column.select(value.table)
    if isinstance(column.added, int):
        return Value(table, value.offset + column.added, fresh)
    added = column.added.reshape(-1, *(1,) * (table.ndim - 1))
    return Value(join.shift(table, added, out=table if fresh else None), value.offset, True)


def _read_pile(plan: Pile, values: dict[int, Value], empty: Any, join: Join | SmallestSum) -> Value | None:
    parts = [(values[column.read], column, rows) for column, rows in plan.groups if column.read in values]
    if not parts:
        return None
    first = parts[0][0].table
    base = min(value.offset for value, _, _ in parts)
    pile = np.empty((plan.rows, *first.shape[1:]), first.dtype)
    if sum(len(rows) for _, _, rows in parts) < plan.rows:
        join.fill(pile, empty - base)
    for value, column, rows in parts:
        found = _taken(column, value, join)
        pile[rows] = join.shift(found.table, found.offset - base) if found.offset != base else found.table
    live = plan.counts > 0
    if live.all():
        result = segments(pile, plan.starts, plan.counts, join)
    else:
        result = np.empty((len(live), *first.shape[1:]), first.dtype)
        join.fill(result, empty - base)
        result[live] = segments(pile, plan.starts[live], plan.counts[live], join)
    join.settle(result)
    return Value(result, base, True)


def _combine(one: Value, other: Value, join: Join | SmallestSum) -> Value:
    if one.table is other.table and (join.idempotent or one.offset != other.offset):
        return one if one.offset <= other.offset else other
    if one.offset > other.offset:
        one, other = other, one
    table, fresh = other.table, other.fresh
    if other.offset != one.offset:
        table, fresh = join.shift(table, other.offset - one.offset, out=table if fresh else None), True
    out = one.table if one.fresh else table if fresh else None
    return Value(join(one.table, table, out=out), one.offset, True)


def _add(value: Value, weights: Table, exact: bool, join: Join | SmallestSum) -> Value:
    """Add each node's weight: to the offset if they are all the same, which leaves the table alone."""
    first = weights[0]
    if exact and (weights == first).all():
        return value._replace(offset=value.offset + int(first), fresh=False)
    if not weights.any():
        return value._replace(fresh=False)
    column = weights.reshape(-1, *(1,) * (value.table.ndim - 1))
    return Value(join.shift(value.table, column), value.offset, False)


def _along(value: Value, weights: Table, _: bool, join: Join | SmallestSum) -> Value:
    """Go along a chain: each node joins what it reads elsewhere and the node before, and adds its weight.

    Where no path leads to, the value only grows, as everywhere.
    """
    if not weights.any():
        table = running(value.table, join)
        join.settle(table)
        return Value(table, value.offset, False)
    total = np.cumsum(weights, dtype=np.int64).reshape(-1, *(1,) * (value.table.ndim - 1))
    before = total - weights.reshape(total.shape)
    table = running(join.shift(value.table, -before, out=value.table if value.fresh else None), join)
    join.settle(table)
    return Value(join.shift(table, total, out=table), value.offset, False)
