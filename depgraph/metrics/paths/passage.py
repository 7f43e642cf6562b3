"""The part of a graph between some input positions and some output positions, swept for a few inputs at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from depgraph.dag.graph import DependencyGraph, check_graph
from depgraph.dag.runs import IntArray, Runs
from depgraph.metrics.paths.joins import Table
from depgraph.metrics.paths.sweep import Sweep, Value, with_readers
from depgraph.metrics.select import Selection, select

#: Tables alive at the same time stay below this many bytes, and one of usual size fits into a processor's cache.
_MEMORY, _CACHE = 1 << 29, 1 << 20
#: Sources are taken at least this many at a time, if memory allows: each pass over the blocks costs time by itself.
_FEWEST_COLUMNS = 256


class Passage:
    """The way from some nodes to others, each of these read by one more node in a last block.

    Parameters
    ----------
    graph : DependencyGraph
    sources : (sources,) int64
        Inputs.
    targets : Runs
        Row j: the nodes that target j gathers.

    Attributes
    ----------
    dag : Dag
        The graph with the targets as nodes.
    sweep : Sweep
        Over that, taking minima.
    wanted : (blocks,) bool array
        The blocks in which there may be something on the way.
    exists : bool
        Whether there may be a way at all.
    """

    def __init__(self, graph: DependencyGraph, sources: IntArray, targets: Runs) -> None:
        self.dag = with_readers(graph.dag, targets)
        self.sources, self.targets = sources, len(targets)
        self.sweep = Sweep(self.dag)
        self.wanted = self.sweep.between(np.unique(self.dag.block_of[sources]), np.array([self.sweep.blocks - 1]))
        self.exists = bool(len(sources) and len(targets) and self.wanted[-1])

    @classmethod
    def between(cls, graph: DependencyGraph, source: Selection, target: Selection) -> Passage:
        """Return the way between what is meant by two selections; see `select`."""
        check_graph(graph)
        start, start_positions = select(graph.inputs, source)
        end, end_positions = select(graph.outputs, target)
        return cls(graph, start.nodes.take(start_positions).starts, end.nodes.take(end_positions))

    @property
    def shape(self) -> tuple[int, int]:
        """Sources and targets."""
        return len(self.sources), self.targets

    def with_targets(self, weights: Table) -> Table:
        """Return the weights of the graph's nodes with those of the targets, which are 0."""
        return np.append(weights, np.zeros(self.targets, weights.dtype))

    def parts(self, itemsize: float) -> Iterator[slice]:
        """Yield which sources to take at a time, given how many bytes each of them takes up in each node's row."""
        sweep, wanted = self.sweep, self.wanted
        sizes = np.where(wanted, np.diff(self.dag.blocks), 0)
        last = sweep.last_readers(wanted)
        freed = np.zeros(sweep.blocks + 1, np.int64)
        np.add.at(freed, np.where(last < 0, np.arange(sweep.blocks), last) + 1, sizes)
        alive = int((np.cumsum(sizes) - np.cumsum(freed)[:-1]).max())
        runs = int(np.where(wanted, np.diff(sweep.run_bounds), 0).max())
        within_memory = int(_MEMORY / (itemsize * (alive + 2 * runs)))
        within_cache = int(_CACHE * int(wanted.sum()) / (itemsize * int(sizes.sum())))
        columns = max(1, min(within_memory, max(within_cache, _FEWEST_COLUMNS)))
        for first in range(0, len(self.sources), columns):
            yield slice(first, min(first + columns, len(self.sources)))

    def starts(
        self,
        sources: IntArray,
        blank: Callable[[int], Table],
        mark: Callable[[Table, IntArray, IntArray], None],
    ) -> Callable[[int], Table | None]:
        """Return the tables that inputs start with, for `Sweep.run`.

        Parameters
        ----------
        sources : (columns,) int64
        blank : callable
            A number of rows to a table on which nothing has been set out from.
        mark : callable
            Called with such a table, rows and columns: the node in each of these rows is the source of that column.
        """
        dag, blocks = self.dag, self.dag.block_of[sources]
        inputs = int(np.searchsorted(dag.blocks, dag.inputs))

        def start(block: int) -> Table | None:
            if block >= inputs:
                return None
            low, high = int(dag.blocks[block]), int(dag.blocks[block + 1])
            table = blank(high - low)
            here = np.flatnonzero(blocks == block)
            mark(table, sources[here] - low, here)
            return table

        return start

    def arrive(self, sweep: Sweep, weights: Table, empty: Any, start: Callable[[int], Table | None]) -> Value:
        """Return the values of the targets, a row each."""
        arrived: list[Value] = []

        def visit(block: int, value: Value) -> None:
            if block == sweep.blocks - 1:
                arrived.append(value)

        sweep.run(weights, empty, start, visit, self.wanted)
        return arrived[0]
