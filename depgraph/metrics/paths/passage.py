"""The part of a graph between some input positions and some output positions, swept for a few inputs at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from depgraph.dag.graph import DependencyGraph, check_graph
from depgraph.dag.runs import BoolArray, IntArray, Runs
from depgraph.dag.stretches import Stretches, in_blocks
from depgraph.metrics.paths.joins import Table
from depgraph.metrics.paths.skeleton import skeleton
from depgraph.metrics.paths.sweep import Sweep, Value
from depgraph.metrics.select import Selection, select

#: Tables alive at the same time stay below this many bytes, and one of usual size fits into a processor's cache.
_MEMORY, _CACHE = 1 << 29, 1 << 20
#: Sources are taken at least this many at a time, if memory allows: each pass over the blocks costs time by itself.
_FEWEST_COLUMNS = 256


class Passage:
    """The way from some nodes to others, each of these read by one more node in a stretch of their own at the end.

    Parameters
    ----------
    graph : DependencyGraph
    sources : (sources,) int64
        Inputs.
    targets : Runs
        Row j: the nodes that target j gathers.
    exact : bool
        Whether weights, if there are any, are integers, which may be added up in any order.

    Attributes
    ----------
    dag : Dag
        The graph itself.
    lengths : (runs,) int64 or None
        What reading each run adds to a path, besides the weight of the node that reads it.
    """

    def __init__(self, graph: DependencyGraph, sources: IntArray, targets: Runs, exact: bool = True) -> None:
        self.dag, self.sources, self.targets = graph.dag, sources, len(targets)
        self.lengths: IntArray | None = None
        self._alone, self._rows = self.dag.stretches if exact else in_blocks(self.dag), targets

    @cached_property
    def stretches(self) -> Stretches:
        """The graph's stretches, and that of the targets."""
        return self._alone.followed_by(self._rows)

    @cached_property
    def sweep(self) -> Sweep:
        """Over the stretches, taking minima."""
        return Sweep(self.stretches, lengths=self.lengths)

    @cached_property
    def wanted(self) -> BoolArray:
        """Those stretches in which there may be something on the way."""
        return self.sweep.between(self.sweep.stretch_of(self.sources), np.array([self.sweep.count - 1]))

    @property
    def exists(self) -> bool:
        """Whether there may be a way at all."""
        return bool(len(self.sources) and self.targets and self.wanted[-1])

    @classmethod
    def between(cls, graph: DependencyGraph, source: Selection, target: Selection, exact: bool = True) -> Passage:
        """Return the way between what is meant by two selections; see `select`."""
        check_graph(graph)
        start, start_positions = select(graph.inputs, source)
        end, end_positions = select(graph.outputs, target)
        return cls(graph, start.nodes.take(start_positions).starts, end.nodes.take(end_positions), exact)

    def shortened(self, weights: Table) -> tuple[Passage, Table]:
        """Return the skeleton of the way for weights that are integers, and the weights of what it keeps."""
        found = skeleton(self._alone, self._rows, self.dag.inputs, weights)
        shorter = copy(self)
        shorter.__dict__.update(stretches=found.stretches)
        for kept in ("sweep", "wanted"):
            shorter.__dict__.pop(kept, None)
        shorter.lengths = found.lengths
        return shorter, self.with_targets(weights[found.kept])

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
        sizes = np.where(wanted, np.diff(sweep.bounds), 0)
        last = sweep.last_readers(wanted)
        freed = np.zeros(sweep.count + 1, np.int64)
        np.add.at(freed, np.where(last < 0, np.arange(sweep.count), last) + 1, sizes)
        alive = int((np.cumsum(sizes) - np.cumsum(freed)[:-1]).max())
        runs = int(np.where(wanted, sweep.run_counts, 0).max())
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
        bounds, of_source = self.sweep.bounds, self.sweep.stretch_of(sources)

        def start(stretch: int) -> Table | None:
            low, high = bounds[stretch], bounds[stretch + 1]
            if low >= self.dag.inputs:
                return None
            table = blank(high - low)
            here = np.flatnonzero(of_source == stretch)
            mark(table, sources[here] - low, here)
            return table

        return start

    def arrive(self, sweep: Sweep, weights: Table, empty: Any, start: Callable[[int], Table | None]) -> Value:
        """Return the values of the targets, a row each."""
        arrived: list[Value] = []

        def visit(stretch: int, value: Value) -> None:
            if stretch == sweep.count - 1:
                arrived.append(value)

        sweep.run(weights, empty, start, visit, self.wanted)
        return arrived[0]
