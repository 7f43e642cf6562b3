"""How far information travels: shortest paths between positions, and the longest chain of work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from depgraph.dag.dag import Dag
from depgraph.dag.graph import DependencyGraph, Node, check_graph
from depgraph.dag.levels import depths, longest_path
from depgraph.dag.nodes import Nodes
from depgraph.dag.runs import IntArray
from depgraph.metrics.paths.joins import Table
from depgraph.metrics.paths.passage import Passage
from depgraph.metrics.paths.sweep import Sweep, Value
from depgraph.metrics.select import Selection, endpoint
from depgraph.metrics.weights import Weight, node_weights

#: From that many sources on it pays to look first for what only makes paths longer.
_WORTHWHILE = 32


class Path(NamedTuple):
    """A path through the graph.

    Attributes
    ----------
    length : int or float
        Operations executed, or their summed weight; -1 where there is no path.
    nodes : sequence of Node
        The nodes executed, in order; inputs are left out.
    """

    length: int | float
    nodes: Sequence[Node]


def path_lengths(
    graph: DependencyGraph, source: Selection = None, target: Selection = None, weight: Weight = "ops"
) -> npt.NDArray[Any]:
    """Return the number of operations on the shortest path from every input position to every output position.

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
    (inputs, outputs) array
        -1 where there is no path. Positions are in row-major order over the tracked axes. Of int64, or of float64 where
        weights are not integers.

    Raises
    ------
    PositionError
        Where a name or a position does not exist.
    GraphError
        Where the graph has no inputs or no outputs, or the weight is none.

    Examples
    --------
    A recurrent network of three steps: reading ``x1`` leads to ``h1`` and, through it, to ``h2``.

    >>> import networkx as nx
    >>> import depgraph
    >>> rnn = nx.DiGraph([("x0", "h0"), ("x1", "h1"), ("x2", "h2"), ("h0", "h1"), ("h1", "h2")])
    >>> graph = depgraph.from_networkx(rnn, sources=["x0", "x1", "x2"], targets=["h0", "h1", "h2"])
    >>> depgraph.path_lengths(graph)
    array([[ 1,  2,  3],
           [-1,  1,  2],
           [-1, -1,  1]])
    """
    check_graph(graph)
    weights = node_weights(graph, weight)
    passage = Passage.between(graph, source, target, exact=weights.dtype.kind == "i")
    result = np.full(passage.shape, -1, weights.dtype)
    for part, write in length_parts(passage, weights):
        write(result[part])
    return result


def length_parts(passage: Passage, weights: Table) -> Iterator[tuple[slice, Callable[[Table], None]]]:
    """Find the lengths of the shortest paths for a few sources at a time; nothing is found where there is no path.

    Yields
    ------
    part : slice
        The sources.
    write : callable
        Writes the lengths into a (sources, targets) array; -1 where there is no path.
    """
    longest = None
    if weights.dtype.kind == "i" and min(passage.shape) and len(passage.sources) >= _WORTHWHILE:
        longest = int(depths(passage.dag, weights).max())
        passage, weights = passage.shortened(weights)
    else:
        weights = passage.with_targets(weights)
    if not passage.exists:
        return
    dtype, missing = _number_type(passage, weights, longest)
    for part in passage.parts(dtype.itemsize):
        start = _starts(passage, passage.sources[part], dtype, missing)
        value = passage.arrive(passage.sweep, weights, missing, start)

        def write(out: Table, value: Value = value) -> None:
            lengths = np.ascontiguousarray(value.table.T)
            out[...] = lengths
            out += value.offset
            np.putmask(out, lengths >= missing - value.offset, -1)

        yield part, write


def shortest_path(graph: DependencyGraph, source: Selection, target: Selection, weight: Weight = "ops") -> Path:
    """Return a shortest path from an input position to an output position.

    Parameters
    ----------
    graph : DependencyGraph
    source, target : (key, position)
        A key of ``graph.inputs`` and one of ``graph.outputs``, each with a position: a number, or one index an axis. A
        key alone will do where there is only one position.
    weight : str or callable, optional
        What a node adds to the length; see `node_weights`.

    Returns
    -------
    Path
        Of length -1 and without nodes where there is no path. Of length 0 and without nodes where the output position
        is the input position, moved.

    Raises
    ------
    PositionError
        Where a name or a position does not exist.

    Examples
    --------
    >>> import networkx as nx
    >>> import depgraph
    >>> dag = nx.DiGraph([("x", "a"), ("a", "b"), ("b", "y"), ("x", "y")])
    >>> graph = depgraph.from_networkx(dag, sources=["x"], targets=["y"])
    >>> path = depgraph.shortest_path(graph, ("input", 0), ("output", 0))
    >>> path.length, [node.id for node in path.nodes]
    (1, ['y'])
    """
    check_graph(graph)
    start_terminal, start = endpoint(graph.inputs, source)
    end_terminal, end = endpoint(graph.outputs, target)
    weights = node_weights(graph, weight)
    gathered = end_terminal.nodes.take(np.array([end]))
    passage = Passage(graph, start_terminal.nodes.row(start), gathered, exact=weights.dtype.kind == "i")
    if not passage.exists:
        return Path(-1, [])
    weights = passage.with_targets(weights)
    dtype, missing = _number_type(passage, weights)
    lengths = np.full(len(weights), missing, weights.dtype)
    starts = _starts(passage, passage.sources, dtype, missing, flat=True)
    passage.sweep.run(weights, missing, starts, _keep(passage.sweep, lengths), passage.wanted)
    if lengths[-1] >= missing:
        return Path(-1, [])
    return Path(lengths[-1].item(), Nodes(graph, _walk_back(graph.dag.followed_by(gathered), lengths)))


def critical_path(graph: DependencyGraph, weight: Weight = "ops") -> Path:
    """Return a longest chain of nodes each of which reads the one before: T∞, the least time with unlimited workers.

    Parameters
    ----------
    graph : DependencyGraph
    weight : str or callable, optional
        What a node adds to the length; see `node_weights`.

    Returns
    -------
    Path
        Inputs are left out.

    Examples
    --------
    >>> import networkx as nx
    >>> import depgraph
    >>> dag = nx.DiGraph([("x", "a"), ("a", "b"), ("b", "y"), ("x", "y")])
    >>> path = depgraph.critical_path(depgraph.from_networkx(dag, sources=["x"]))
    >>> path.length, [node.id for node in path.nodes]
    (3, ['a', 'b', 'y'])
    """
    weights = node_weights(graph, weight)
    depth = depths(graph.dag, weights)
    return Path(depth.max(initial=0).item(), Nodes(graph, lambda: longest_path(graph.dag, depth)))


def _number_type(passage: Passage, weights: Table, longest: int | None = None) -> tuple[np.dtype[Any], Any]:
    """Return the smallest type that holds all lengths, and the number that stands for "no path" in it.

    A path has at most one node of each block, and all nodes of a chain; and it is no longer than the longest one. What
    no path leads to also has weights added: at most twice the bound.
    """
    if weights.dtype.kind == "f":
        return weights.dtype, np.inf
    if longest is None:
        first, chained = passage.stretches.bounds[:-1], passage.stretches.chained
        most = np.where(chained, np.add.reduceat(weights, first), np.maximum.reduceat(weights, first))
        longest = int(most[passage.wanted].sum())
        if 2 * longest + 1 > np.iinfo(np.int16).max:
            longest = int(depths(passage.dag, weights[: passage.dag.nodes]).max())
    for dtype in (np.int16, np.int32):
        if 2 * longest + 1 <= np.iinfo(dtype).max:
            return np.dtype(dtype), longest + 1
    return np.dtype(np.int64), longest + 1


def _starts(
    passage: Passage, sources: IntArray, dtype: np.dtype[Any], missing: Any, flat: bool = False
) -> Callable[[int], Table | None]:
    """Return the tables of the stretches of inputs: 0 from a source to itself, no path from it to other inputs."""

    def blank(rows: int) -> Table:
        return np.full(rows if flat else (rows, len(sources)), missing, dtype)

    def mark(table: Table, rows: IntArray, columns: IntArray) -> None:
        table[rows if flat else (rows, columns)] = 0

    return passage.starts(sources, blank, mark)


def _keep(sweep: Sweep, lengths: Table) -> Callable[[int, Value], None]:
    bounds = sweep.bounds

    def keep(stretch: int, value: Value) -> None:
        np.add(value.table, value.offset, out=lengths[bounds[stretch] : bounds[stretch + 1]], dtype=lengths.dtype)

    return keep


def _walk_back(dag: Dag, lengths: Table) -> IntArray:
    """Return the nodes on the way to the last node, at each of them going back to the nearest node that it reads."""
    numbers: list[int] = []
    node = dag.nodes - 1
    while node >= dag.inputs:
        numbers.append(node)
        read = dag.reads.row(node)
        node = int(read[np.argmin(lengths[read])])
    return np.array(numbers[:0:-1], np.int64)
