"""Carry values through a graph, a block at a time, from what is read to what reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from depgraph.dag.dag import Dag
from depgraph.dag.runs import BoolArray, IntArray, Runs, offsets
from depgraph.metrics.paths.joins import MINIMUM, Join, SmallestSum, Table
from depgraph.metrics.paths.reading import Selector, segments, selector

#: Nodes whose numbers of runs differ are treated alike, the last run repeated, up to this many runs.
_PADDED = 8


class Value(NamedTuple):
    """The values of a block: ``table``, its lengths plus ``offset``.

    Blocks that read one other block in order share its table.
    """

    table: Table
    offset: Any
    fresh: bool


@dataclass(frozen=True)
class Column:
    """One run of every node of a block, all of them in the block ``read``."""

    read: int
    select: Selector


@dataclass(frozen=True)
class Pile:
    """All runs of a block, whichever blocks they are in: ``groups`` holds (block read, selector, rows of the pile).

    The rows of the pile that belong to node i are ``starts[i] … starts[i] + counts[i] - 1``.
    """

    rows: int
    groups: list[tuple[int, Selector, IntArray]]
    starts: IntArray
    counts: IntArray


class Sweep:
    """Values of the nodes of a graph computed from the values of what they read.

    Parameters
    ----------
    dag : Dag
    join : Join or SmallestSum, optional
        What a node makes of the values that it reads: their minimum by default.
    """

    def __init__(self, dag: Dag, join: Join | SmallestSum = MINIMUM) -> None:
        self.dag, self.join = dag, join
        self.bounds: list[int] = dag.blocks.tolist()
        self.blocks = len(self.bounds) - 1
        self.run_bounds: list[int] = dag.reads.indptr[dag.blocks].tolist()
        self._run_block = dag.block_of[dag.reads.starts] if dag.runs else np.zeros(0, np.int64)
        self._plans: dict[int, list[Column] | Pile] = {}

    @cached_property
    def read_blocks(self) -> Runs:
        """Row b: the blocks that block b reads."""
        key = np.repeat(np.arange(self.blocks), np.diff(self.run_bounds)) * self.blocks + self._run_block
        if len(key):
            key = np.unique(key[np.append(True, key[1:] != key[:-1])])
        return Runs.from_sorted(key // max(self.blocks, 1), key % max(self.blocks, 1), self.blocks)

    def between(self, sources: IntArray, targets: IntArray) -> BoolArray:
        """Return, for each block, whether it may lie on a path from one of some blocks to one of some others."""
        _, edge_read = self.read_blocks.elements()
        cuts = offsets(self.read_blocks.sizes).tolist()
        after, before = np.zeros(self.blocks, bool), np.zeros(self.blocks, bool)
        after[sources], before[targets] = True, True
        for block in range(self.blocks):
            low, high = cuts[block], cuts[block + 1]
            if high > low and not after[block]:
                after[block] = after[edge_read[low:high]].any()
        for block in range(self.blocks - 1, -1, -1):
            if before[block]:
                before[edge_read[cuts[block] : cuts[block + 1]]] = True
        return after & before

    def last_readers(self, wanted: BoolArray) -> IntArray:
        """Return, for each block, the last wanted block that reads it, -1 where there is none."""
        reader, read = self.read_blocks.elements()
        result = np.full(self.blocks, -1)
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
        """Join what each node reads and add the node's weight to its lengths, for all nodes, block by block.

        Parameters
        ----------
        weights : (nodes,) array
        empty : number
            The value of a node that reads nothing that has a value.
        start : callable
            Block to its table if it is given, None if it is to be computed.
        visit : callable
            Called with each block and its value. A table may be shared and must not be changed.
        wanted : (blocks,) bool array, optional
            Leave out the other blocks, and forget values after their last reader.
        """
        exact = weights.dtype.kind == "i"
        values: dict[int, Value] = {}
        dropped: list[list[int]] = [[] for _ in range(self.blocks + 1)]
        if wanted is not None:
            for block, last in enumerate(self.last_readers(wanted).tolist()):
                dropped[last if last >= 0 else block].append(block)
        columns: tuple[int, ...] = ()
        dtype = weights.dtype
        for block in range(self.blocks):
            if wanted is not None and not wanted[block]:
                continue
            given = start(block)
            if given is not None:
                columns, dtype, value = given.shape[1:], given.dtype, Value(given, 0, False)
            else:
                low, high = self.bounds[block], self.bounds[block + 1]
                found = self._read(self._plan(block), values, empty)
                if found is None:
                    found = Value(np.empty((high - low, *columns), dtype), 0, False)
                    self.join.fill(found.table, empty)
                value = _add(found, weights[low:high], exact, self.join)
            values[block] = value
            visit(block, value)
            for old in dropped[block]:
                values.pop(old, None)

    def _plan(self, block: int) -> list[Column] | Pile:
        plan = self._plans.get(block)
        if plan is None:
            plan = self._plans[block] = self._make_plan(block)
        return plan

    def _make_plan(self, block: int) -> list[Column] | Pile:
        low, high = self.run_bounds[block], self.run_bounds[block + 1]
        if low == high:
            return []
        reads, nodes = self.dag.reads, self.bounds[block + 1] - self.bounds[block]
        starts, stops, read = reads.starts[low:high], reads.stops[low:high], self._run_block[low:high]
        if nodes == 1:
            if len(read) <= _PADDED:
                return [self._column(int(b), starts[i : i + 1], stops[i : i + 1]) for i, b in enumerate(read)]
            return self._make_pile(starts, stops, read, np.array([high - low]))
        counts = np.diff(reads.indptr[self.bounds[block] : self.bounds[block + 1] + 1])
        most, fewest = int(counts.max()), int(counts.min())
        if most == fewest or (fewest > 0 and most <= _PADDED and self.join.idempotent):
            which = offsets(counts)[:-1, None] + np.minimum(np.arange(most), counts[:, None] - 1)
            read_grid = read[which]
            if (read_grid == read_grid[0]).all():
                return [
                    self._column(int(b), starts[which[:, i]], stops[which[:, i]]) for i, b in enumerate(read_grid[0])
                ]
        return self._make_pile(starts, stops, read, counts)

    def _make_pile(self, starts: IntArray, stops: IntArray, read: IntArray, counts: IntArray) -> Pile:
        order = np.argsort(read, kind="stable")
        groups = []
        for rows in np.split(order, np.flatnonzero(np.diff(read[order])) + 1):
            column = self._column(int(read[rows[0]]), starts[rows], stops[rows])
            groups.append((column.read, column.select, rows))
        return Pile(len(read), groups, offsets(counts)[:-1], counts)

    def _column(self, read: int, starts: IntArray, stops: IntArray) -> Column:
        low = self.bounds[read]
        return Column(read, selector(starts - low, stops - low, self.bounds[read + 1] - low, self.join))

    def _read(self, plan: list[Column] | Pile, values: dict[int, Value], empty: Any) -> Value | None:
        """Return what the nodes of a block get from what they read, None where nothing they read has a value."""
        if isinstance(plan, Pile):
            return _read_pile(plan, values, empty, self.join)
        result: Value | None = None
        for column in plan:
            value = values.get(column.read)
            if value is None:
                continue
            table, fresh = column.select(value.table)
            found = Value(table, value.offset, fresh)
            result = found if result is None else _combine(result, found, self.join)
        if result is not None and result.fresh:
            self.join.settle(result.table)
        return result


def with_readers(dag: Dag, rows: Runs) -> Dag:
    """Return the graph with one more node for each row, in a last block: the node reads what is in the row."""
    added = rows.split_at(dag.blocks[1:])
    reads = Runs(
        np.append(dag.reads.indptr, dag.runs + added.indptr[1:]),
        np.append(dag.reads.starts, added.starts),
        np.append(dag.reads.stops, added.stops),
    )
    return Dag(dag.inputs, reads, np.unique(np.append(dag.blocks, dag.nodes + len(rows))))


def _read_pile(plan: Pile, values: dict[int, Value], empty: Any, join: Join | SmallestSum) -> Value | None:
    parts = [(values[read], select, rows) for read, select, rows in plan.groups if read in values]
    if not parts:
        return None
    first = parts[0][0].table
    base = min(value.offset for value, _, _ in parts)
    pile = np.empty((plan.rows, *first.shape[1:]), first.dtype)
    if sum(len(rows) for _, _, rows in parts) < plan.rows:
        join.fill(pile, empty - base)
    for value, select, rows in parts:
        found = select(value.table)[0]
        pile[rows] = join.shift(found, value.offset - base) if value.offset != base else found
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
