"""How many paths there are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from depgraph.dag.graph import DependencyGraph
from depgraph.dag.runs import IntArray
from depgraph.dag.stretches import Stretches
from depgraph.metrics.paths.joins import Digits, DigitsFullError, SmallestSum, Sum, Table
from depgraph.metrics.paths.passage import Passage
from depgraph.metrics.paths.sweep import Sweep
from depgraph.metrics.select import Selection
from depgraph.metrics.weights import Weight, node_weights

#: No path, among lengths that are integers: more than any length, and room for as much again.
_MISSING = 1 << 61


def count_paths(
    graph: DependencyGraph,
    source: Selection = None,
    target: Selection = None,
    *,
    shortest: bool = False,
    weight: Weight = "ops",
) -> npt.NDArray[np.object_]:
    """Return the number of paths from every input position to every output position.

    A path is a chain of nodes each of which reads the one before. It begins at the input position and ends at a node
    that the output position gathers; where that gathers several, paths to any of them are added up. A node that reads
    another one in two roles (``x * x``) still reads it once. An output position that is the input position, moved, has
    one path from it, without nodes.

    Parameters
    ----------
    graph : DependencyGraph
    source : optional
        A key of ``graph.inputs``, or (key, positions) for some positions only. The first tracked input by default.
    target : optional
        A key of ``graph.outputs``, or (key, positions). The first output by default.
    shortest : bool, optional
        Count only the shortest paths.
    weight : str or callable, optional
        What a node adds to the length, which says which paths are the shortest; see `node_weights`. Where weights are
        not integers, lengths are sums of floats, added up from the input on; of the ways to a node, all are shortest
        whose sums are exactly the smallest.

    Returns
    -------
    (inputs, outputs) array of int
        Exact, of Python's integers, which have any size (an array of dtype object); 0 where there is no path.
        Positions are in row-major order over the tracked axes.

    Raises
    ------
    PositionError
        Where a name or a position does not exist.
    GraphError
        Where the graph has no inputs or no outputs, or the weight is none.

    Examples
    --------
    Two residual layers: information goes through each of them or around it.

    >>> import networkx as nx
    >>> import depgraph
    >>> dag = nx.DiGraph([("x", "f"), ("x", "a"), ("f", "a"), ("a", "g"), ("a", "b"), ("g", "b")])
    >>> graph = depgraph.from_networkx(dag, sources=["x"], targets=["b"])
    >>> depgraph.count_paths(graph)
    array([[4]], dtype=object)
    >>> depgraph.count_paths(graph, shortest=True)
    array([[1]], dtype=object)
    """
    weights = node_weights(graph, weight)
    passage = Passage.between(graph, source, target, exact=not shortest or weights.dtype.kind == "i")
    weights = passage.with_targets(weights)
    result = np.zeros(passage.shape, object)
    if not passage.exists:
        return result
    count = _Count(passage, weights if shortest else None)
    for part in passage.parts(8 * (1 + shortest)):
        result[part] = count.from_sources(passage.sources[part])
    return result


class _Count:
    """Counts for some sources at a time, with as many digits as were needed so far."""

    def __init__(self, passage: Passage, weights: Table | None) -> None:
        self.passage, self.weights = passage, weights
        self.floats = weights is not None and weights.dtype.kind == "f"
        self.places, self.summands = 1, _summands(passage.stretches)
        self.sweep: Sweep | None = None

    def from_sources(self, sources: IntArray) -> npt.NDArray[np.object_]:
        """Return (sources, targets) counts."""
        while True:
            try:
                return self._try(sources)
            except DigitsFullError:
                self.places += (self.places + 1) // 2

    def _try(self, sources: IntArray) -> npt.NDArray[np.object_]:
        columns, passage = len(sources), self.passage
        digits = Digits(columns, self.summands)
        join = Sum(np.add, False, digits) if self.weights is None else SmallestSum(digits, self.floats)
        if self.sweep is None or self.sweep.join != join:
            self.sweep = Sweep(passage.stretches, join)
        missing = np.inf if self.floats else 0 if self.weights is None else _MISSING
        lengths = 0 if self.weights is None else columns

        def blank(rows: int) -> Table:
            table = np.empty((rows, lengths + self.places * columns), np.int64)
            join.fill(table, missing)
            return table

        def mark(table: Table, rows: IntArray, at: IntArray) -> None:
            if lengths:
                table[rows, at] = 0  # the bits of 0.0 as well
            table[rows, lengths + at] = 1

        weights = passage.with_targets(np.zeros(passage.dag.nodes, np.int64)) if self.weights is None else self.weights
        value = passage.arrive(self.sweep, weights, missing, passage.starts(sources, blank, mark))
        return digits.integers(value.table[:, lengths:]).T


def _summands(stretches: Stretches) -> int:
    """Return how many counts are added up at most before there is a chance to carry: all that a chain is long."""
    chain = np.diff(stretches.bounds)[stretches.chained]
    return int(max(stretches.reads.sizes.max(), chain.max(initial=0)))
