"""The receptive field of an output position, and the reach of an input position."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from depgraph.dag.graph import DependencyGraph, Terminal, check_graph
from depgraph.dag.reach import ancestors
from depgraph.dag.runs import IntArray, offsets
from depgraph.metrics.reach import descendants
from depgraph.metrics.select import Selection, select


@dataclass(frozen=True, eq=False)
class Field:
    """A set of positions of one input or output, in row-major order.

    Has a length, can be iterated over, and knows what is ``in`` it: a row-major number or, as positions are written
    where several axes are tracked, one index an axis; both count from 0.

    Attributes
    ----------
    terminal : str
        The name of the input or output.
    grid : tuple of int
        Sizes of its tracked axes.
    numbers : (positions,) int64
        Row-major numbers of the positions, ascending.
    """

    terminal: str
    grid: tuple[int, ...]
    numbers: IntArray

    @property
    def positions(self) -> set[int] | set[tuple[int, ...]]:
        """The positions as numbers, or as tuples with one index an axis where several axes are tracked."""
        return set(self)

    @property
    def intervals(self) -> list[tuple[int, int]]:
        """The stretches (start, stop) of consecutive row-major numbers, ``stop`` left out."""
        cuts = np.flatnonzero(np.diff(self.numbers) > 1)
        starts = self.numbers[np.append(-1, cuts) + 1] if len(self) else self.numbers
        stops = self.numbers[np.append(cuts, len(self) - 1)] + 1 if len(self) else self.numbers
        return list(zip(starts.tolist(), stops.tolist(), strict=True))

    @property
    def box(self) -> tuple[tuple[int, int], ...]:
        """For each tracked axis (start, stop) of the smallest box around the positions; (0, 0) where there are none."""
        indices = np.unravel_index(self.numbers, self.grid) if self.grid else ()
        return tuple((int(i.min()), int(i.max()) + 1) if len(self) else (0, 0) for i in indices)

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[Any]:
        if len(self.grid) < 2:
            return iter(self.numbers.tolist())
        return zip(*(i.tolist() for i in np.unravel_index(self.numbers, self.grid)), strict=True)

    def __contains__(self, position: object) -> bool:
        if isinstance(position, tuple):
            if len(position) != len(self.grid) or not all(
                isinstance(p, (int, np.integer)) and 0 <= p < n for p, n in zip(position, self.grid, strict=True)
            ):
                return False
            position = int(np.ravel_multi_index(position, self.grid)) if position else 0
        return isinstance(position, (int, np.integer)) and bool((self.numbers == position).any())

    def __repr__(self) -> str:
        shown = ", ".join(f"{start}–{stop - 1}" if stop - start > 1 else f"{start}" for start, stop in self.intervals)
        return f"<Field: {len(self):,} of {int(np.prod(self.grid)):,} positions of {self.terminal}: {shown or 'none'}>"


def reads(graph: DependencyGraph, target: Selection = None, source: Selection = None) -> Field:
    """Return the receptive field of output positions: the input positions that any of them depends on.

    Parameters
    ----------
    graph : DependencyGraph
    target : optional
        (key, position) or (key, positions), the key being one of ``graph.outputs``. A key alone, be it the number of
        an output, stands for all its positions. All of the first output by default.
    source : optional
        The input that is looked at, a key of ``graph.inputs`` or (key, positions) for some positions only. The first
        tracked input by default.

    Returns
    -------
    Field
        Found in time linear in the runs that reads are stored in, not in the edges.

    Raises
    ------
    PositionError
        Where a name or a position does not exist.
    GraphError
        Where the graph has no inputs or no outputs.

    Examples
    --------
    >>> import networkx as nx
    >>> import depgraph
    >>> convolution = nx.DiGraph([(f"x{i}", f"y{j}") for j in range(4) for i in range(6) if 0 <= i - j < 3])
    >>> graph = depgraph.from_networkx(convolution, [f"x{i}" for i in range(6)], [f"y{j}" for j in range(4)])
    >>> field = depgraph.reads(graph, ("output", 1))
    >>> field.intervals, sorted(field.positions), 4 in field
    ([(1, 4)], [1, 2, 3], False)
    """
    check_graph(graph)
    end, end_positions = select(graph.outputs, target)
    start, start_positions = select(graph.inputs, source)
    gathered = end.nodes.take(end_positions).split_at(graph.dag.blocks[1:])
    found = ancestors(graph.dag, gathered.starts, gathered.stops)
    return _field(start, start_positions[found[start.nodes.take(start_positions).starts]])


def feeds(graph: DependencyGraph, source: Selection = None, target: Selection = None) -> Field:
    """Return the reach of input positions: the output positions that depend on any of them.

    Parameters
    ----------
    graph : DependencyGraph
    source : optional
        (key, position) or (key, positions), the key being one of ``graph.inputs``. A key alone, be it the number of
        an input, stands for all its positions. All of the first tracked input by default.
    target : optional
        The output that is looked at, a key of ``graph.outputs`` or (key, positions) for some positions only. The first
        output by default.

    Returns
    -------
    Field
        Found in time linear in the runs that reads are stored in, not in the edges.

    Raises
    ------
    PositionError
        Where a name or a position does not exist.
    GraphError
        Where the graph has no inputs or no outputs.

    Examples
    --------
    >>> import networkx as nx
    >>> import depgraph
    >>> rnn = nx.DiGraph([("x0", "h0"), ("x1", "h1"), ("x2", "h2"), ("h0", "h1"), ("h1", "h2")])
    >>> graph = depgraph.from_networkx(rnn, sources=["x0", "x1", "x2"], targets=["h0", "h1", "h2"])
    >>> depgraph.feeds(graph, ("input", 1))
    <Field: 2 of 3 positions of output: 1–2>
    """
    check_graph(graph)
    start, start_positions = select(graph.inputs, source)
    end, end_positions = select(graph.outputs, target)
    found = descendants(graph.dag, start.nodes.take(start_positions).starts)
    before = offsets(found.astype(np.int64))  # a run holds a node that was found if the count differs at its ends
    gathered = end.nodes.take(end_positions)
    hit = before[gathered.stops] > before[gathered.starts]
    return _field(end, end_positions[gathered.rows[hit]])


def _field(terminal: Terminal, numbers: IntArray) -> Field:
    return Field(terminal.name, terminal.grid, np.unique(numbers))
