"""All shortest paths in a few figures."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from depgraph.dag.graph import DependencyGraph, check_graph
from depgraph.dag.runs import IntArray
from depgraph.metrics.paths.joins import Table
from depgraph.metrics.paths.lengths import length_parts
from depgraph.metrics.paths.passage import Passage
from depgraph.metrics.select import Selection, select
from depgraph.metrics.weights import Weight, node_weights

#: Lengths and distances are counted in a table of all combinations unless it has this many times as many entries.
_SPARSE = 32


@dataclass(frozen=True, eq=False)
class DistanceStatistics:
    """Path lengths by how far apart input position and output position are; entry d of each array is on distance d.

    The distance between positions on one tracked axis is |i − j|; on several it is the largest difference along any
    of them (Chebyshev), which is what square kernels cover in equal steps.

    Attributes
    ----------
    pairs, unreachable : (distances,) int64
        Pairs of positions at that distance, and those of them without a path.
    minimum, maximum : (distances,) array
        -1 where there is no path.
    mean : (distances,) float64
        NaN where there is no path.
    """

    pairs: IntArray
    unreachable: IntArray
    minimum: Table
    mean: npt.NDArray[np.float64]
    maximum: Table


@dataclass(frozen=True, eq=False)
class PathStatistics:
    """Figures on the shortest paths between all pairs of an input position and an output position.

    Attributes
    ----------
    pairs : int
    unreachable : int
        Pairs without a path.
    minimum, maximum : int or float or None
        Lengths; None where there is no path at all.
    mean : float or None
        Of the lengths of the pairs that have a path. Lengths that are integers are added up exactly.
    histogram : dict
        Length to number of pairs, lengths ascending.
    by_distance : DistanceStatistics or None
        None where input and output have other grids of positions than each other: no distance is defined then.
    """

    pairs: int
    unreachable: int
    minimum: int | float | None
    mean: float | None
    maximum: int | float | None
    histogram: dict[int | float, int] = field(repr=False)
    by_distance: DistanceStatistics | None = field(repr=False)


def path_statistics(
    graph: DependencyGraph, source: Selection = None, target: Selection = None, weight: Weight = "ops"
) -> PathStatistics:
    """Return how long shortest paths are: smallest, mean and largest length, and how lengths are distributed.

    Parameters
    ----------
    graph : DependencyGraph
    source : optional
        A key of ``graph.inputs``, or (key, positions) for some positions only. The first tracked input by default.
    target : optional
        A key of ``graph.outputs``, or (key, positions). The first output by default.
    weight : str or callable, optional
        What a node adds to the length; see `node_weights`.

    Returns
    -------
    PathStatistics
        Found for some of the input positions at a time: the matrix of `path_lengths` is never there as a whole.

    Raises
    ------
    PositionError
        Where a name or a position does not exist.
    GraphError
        Where the graph has no inputs or no outputs, or the weight is none.

    Examples
    --------
    >>> import networkx as nx
    >>> import depgraph
    >>> rnn = nx.DiGraph([("x0", "h0"), ("x1", "h1"), ("x2", "h2"), ("h0", "h1"), ("h1", "h2")])
    >>> graph = depgraph.from_networkx(rnn, sources=["x0", "x1", "x2"], targets=["h0", "h1", "h2"])
    >>> found = depgraph.path_statistics(graph)
    >>> found
    PathStatistics(pairs=9, unreachable=3, minimum=1, mean=1.6666666666666667, maximum=3)
    >>> found.histogram
    {1: 3, 2: 2, 3: 1}
    >>> found.by_distance.mean.tolist()
    [1.0, 2.0, 3.0]
    """
    check_graph(graph)
    start, rows = select(graph.inputs, source)
    end, columns = select(graph.outputs, target)
    weights = node_weights(graph, weight)
    exact = weights.dtype.kind == "i"
    passage = Passage(graph, start.nodes.take(rows).starts, end.nodes.take(columns), exact)
    distances = _Distances(start.grid, rows, columns) if start.grid == end.grid and start.count == end.count else None
    tallies = []
    for part, lengths in _lengths(passage, weights):
        apart = distances.of(part) if distances else np.zeros(lengths.shape, np.int64)
        tallies.append(_tally(apart.ravel(), lengths.ravel()))
    return _summed_up(math.prod(passage.shape), *_merged(tallies), with_distances=distances is not None)


def _lengths(passage: Passage, weights: Table) -> Iterator[tuple[slice, Table]]:
    """Yield lengths for some sources at a time, -1 where there is no path."""
    if not passage.exists:
        yield slice(0, len(passage.sources)), np.full(passage.shape, -1, weights.dtype)
    for part, write in length_parts(passage, weights):
        lengths = np.empty((part.stop - part.start, passage.targets), weights.dtype)
        write(lengths)
        yield part, lengths


class _Distances:
    """How far apart positions on the same grid are, given by row-major numbers."""

    def __init__(self, grid: tuple[int, ...], rows: IntArray, columns: IntArray) -> None:
        self.rows, self.columns = (np.unravel_index(n, grid) if grid else (n,) for n in (rows, columns))

    def of(self, part: slice) -> IntArray:
        """Return the distances of some of the row positions from all column positions."""
        result: IntArray | None = None
        for row, column in zip(self.rows, self.columns, strict=True):
            along = np.abs(row[part, None] - column)
            result = along if result is None else np.maximum(result, along, out=result)
        assert result is not None
        return result


def _tally(distances: IntArray, lengths: Table) -> tuple[IntArray, Table, IntArray]:
    """Return each combination of a distance and a length that occurs, sorted, and how often it does."""
    if not len(lengths):
        return distances, lengths, distances
    if lengths.dtype.kind == "i" and int(lengths.max()) < len(lengths):
        levels, rank = np.arange(-1, int(lengths.max()) + 1, dtype=lengths.dtype), lengths + 1
    else:
        levels, rank = np.unique(lengths, return_inverse=True)
    key = distances * len(levels) + rank
    if (int(distances.max()) + 1) * len(levels) < _SPARSE * len(lengths):
        counts = np.bincount(key)
        occurring = np.flatnonzero(counts)
        counts = counts[occurring]
    else:
        occurring, counts = np.unique(key, return_counts=True)
    distance, rank = np.divmod(occurring, len(levels))
    return distance, levels[rank], counts


def _merged(tallies: list[tuple[IntArray, Table, IntArray]]) -> tuple[IntArray, Table, IntArray]:
    """Return several tallies as one, sorted by distance, then length."""
    if len(tallies) == 1:
        return tallies[0]
    distance, length, count = (np.concatenate(arrays) for arrays in zip(*tallies, strict=True))
    order = np.lexsort((length, distance))
    distance, length = distance[order], length[order]
    first = np.flatnonzero(np.append(True, (np.diff(distance) > 0) | (np.diff(length) > 0)))
    return distance[first], length[first], np.add.reduceat(count[order], first)


def _summed_up(pairs: int, distance: IntArray, length: Table, count: IntArray, with_distances: bool) -> PathStatistics:
    live = length >= 0
    levels, which = np.unique(length[live], return_inverse=True)
    numbers = np.zeros(len(levels), np.int64)
    np.add.at(numbers, which, count[live])
    some, reached = len(levels) > 0, int(numbers.sum())
    return PathStatistics(
        pairs,
        pairs - reached,
        levels[0].item() if some else None,
        _total(levels, numbers) / reached if some else None,
        levels[-1].item() if some else None,
        dict(zip(levels.tolist(), numbers.tolist(), strict=True)),
        _by_distance(distance, length, count) if with_distances else None,
    )


def _total(lengths: Table, counts: IntArray) -> int | float:
    """Return the sum of lengths that occur so many times each, exact or, if they are floats, rounded once."""
    if lengths.dtype.kind == "f":
        return math.fsum(lengths * counts)
    return int(np.dot(lengths.astype(object), counts.astype(object)))


def _by_distance(distance: IntArray, length: Table, count: IntArray) -> DistanceStatistics:
    size = int(distance.max()) + 1 if len(distance) else 0
    pairs, unreachable = np.zeros((2, size), np.int64)
    np.add.at(pairs, distance, count)
    live = length >= 0
    np.add.at(unreachable, distance[~live], count[~live])
    distance, length, count = distance[live], length[live], count[live]
    smallest, largest = np.full((2, size), -1, length.dtype)
    mean = np.full(size, np.nan)
    if len(distance):
        here, first = np.unique(distance, return_index=True)
        smallest[here], largest[here] = length[first], length[np.append(first[1:], len(length)) - 1]
        # Products and sums of integers may outgrow an int64; Python's own do not.
        exact = length.astype(object) if length.dtype.kind == "i" else length
        mean[here] = np.add.reduceat(exact * count, first) / (pairs - unreachable)[here]
    return DistanceStatistics(pairs, unreachable, smallest, mean, largest)
