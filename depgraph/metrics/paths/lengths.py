"""How far information travels: shortest paths between positions, and the longest chain of work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from depgraph.dag.dag import Dag
from depgraph.dag.graph import DependencyGraph, Node, check_graph
from depgraph.dag.levels import longest_path
from depgraph.dag.runs import BoolArray, IntArray, Runs
from depgraph.metrics.paths.reading import Table
from depgraph.metrics.paths.sweep import Sweep, Value, with_readers
from depgraph.metrics.select import Selection, endpoint, select
from depgraph.metrics.weights import Weight, node_weights, total

#: Tables alive at the same time stay below this many bytes, and one of usual size fits into a processor's cache.
_MEMORY, _CACHE = 1 << 29, 1 << 20
#: Sources are taken at least this many at a time, if memory allows: each pass over the blocks costs time by itself.
_FEWEST_COLUMNS = 256


class Path(NamedTuple):
    """A path through the graph.

    Attributes
    ----------
    length : int or float
        Operations executed, or their summed weight; -1 where there is no path.
    nodes : list of Node
        The nodes executed, in order; inputs are left out.
    """

    length: int | float
    nodes: list[Node]


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
    start, start_positions = select(graph.inputs, source)
    end, end_positions = select(graph.outputs, target)
    sources, gathered = start.nodes.take(start_positions).starts, end.nodes.take(end_positions)
    sweep, weights = _sweep_to(graph, gathered, weight)
    result = np.full((len(sources), len(gathered)), -1, weights.dtype)
    wanted = sweep.between(_blocks(sweep.dag, sources), np.array([sweep.blocks - 1]))
    if not result.size or not wanted[-1]:
        return result
    dtype, missing = _number_type(sweep.dag, weights, wanted)
    columns = _columns(sweep, wanted, dtype.itemsize)
    for first in range(0, len(sources), columns):
        part = slice(first, first + columns)

        def write(block: int, value: Value, part: slice = part) -> None:
            if block == sweep.blocks - 1:
                lengths = np.ascontiguousarray(value.table.T)
                result[part] = lengths
                result[part] += value.offset
                np.putmask(result[part], lengths >= missing - value.offset, -1)

        sweep.run(weights, missing, _starts(sweep.dag, sources[part], dtype, missing), write, wanted)
    return result


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
    first = start_terminal.nodes.row(start)
    sweep, weights = _sweep_to(graph, end_terminal.nodes.take(np.array([end])), weight)
    dag = sweep.dag
    wanted = sweep.between(_blocks(dag, first), np.array([sweep.blocks - 1]))
    if not wanted[-1]:
        return Path(-1, [])
    dtype, missing = _number_type(dag, weights, wanted)
    lengths = np.full(dag.nodes, missing, weights.dtype)
    sweep.run(weights, missing, _starts(dag, first, dtype, missing, flat=True), _keep(dag, lengths), wanted)
    if lengths[-1] >= missing:
        return Path(-1, [])
    return Path(lengths[-1].item(), [graph.node(number) for number in _walk_back(dag, lengths)])


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
    numbers = longest_path(graph.dag, weights)
    return Path(total(weights[numbers]), [graph.node(number) for number in numbers.tolist()])


def _sweep_to(graph: DependencyGraph, target: Runs, weight: Weight) -> tuple[Sweep, Table]:
    """Return the graph with one more node of weight 0 for each target position, in a last block, and the weights."""
    weights = node_weights(graph, weight)
    return Sweep(with_readers(graph.dag, target)), np.append(weights, np.zeros(len(target), weights.dtype))


def _blocks(dag: Dag, nodes: IntArray) -> IntArray:
    return np.unique(dag.block_of[nodes])


def _number_type(dag: Dag, weights: Table, wanted: BoolArray) -> tuple[np.dtype[Any], Any]:
    """Return the smallest type that holds all lengths, and the number that stands for "no path" in it.

    A path has at most one node of each block. What no path leads to also has weights added: at most twice the bound.
    """
    if weights.dtype.kind == "f":
        return weights.dtype, np.inf
    bound = int(np.maximum.reduceat(weights, dag.blocks[:-1])[wanted].sum())
    for dtype in (np.int16, np.int32):
        if 2 * bound + 1 <= np.iinfo(dtype).max:
            return np.dtype(dtype), bound + 1
    return np.dtype(np.int64), bound + 1


def _columns(sweep: Sweep, wanted: BoolArray, itemsize: int) -> int:
    """Return how many sources to take at a time."""
    sizes = np.where(wanted, np.diff(sweep.dag.blocks), 0)
    last = sweep.last_readers(wanted)
    freed = np.zeros(sweep.blocks + 1, np.int64)
    np.add.at(freed, np.where(last < 0, np.arange(sweep.blocks), last) + 1, sizes)
    alive = int((np.cumsum(sizes) - np.cumsum(freed)[:-1]).max())
    runs = int(np.where(wanted, np.diff(sweep.run_bounds), 0).max())
    within_memory = _MEMORY // (itemsize * (alive + 2 * runs))
    within_cache = _CACHE * int(wanted.sum()) // (itemsize * int(sizes.sum()))
    return max(1, min(within_memory, max(within_cache, _FEWEST_COLUMNS)))


def _starts(
    dag: Dag, sources: IntArray, dtype: np.dtype[Any], missing: Any, flat: bool = False
) -> Callable[[int], Table | None]:
    """Return the tables of the input blocks: 0 from a source to itself, no path from it to other inputs."""
    blocks = dag.block_of[sources]
    inputs = int(np.searchsorted(dag.blocks, dag.inputs))

    def start(block: int) -> Table | None:
        if block >= inputs:
            return None
        low, high = int(dag.blocks[block]), int(dag.blocks[block + 1])
        table = np.full((high - low, len(sources)), missing, dtype)
        here = np.flatnonzero(blocks == block)
        table[sources[here] - low, here] = 0
        return table[:, 0] if flat else table

    return start


def _keep(dag: Dag, lengths: Table) -> Callable[[int, Value], None]:
    bounds = dag.blocks.tolist()

    def keep(block: int, value: Value) -> None:
        np.add(value.table, value.offset, out=lengths[bounds[block] : bounds[block + 1]], dtype=lengths.dtype)

    return keep


def _walk_back(dag: Dag, lengths: Table) -> list[int]:
    """Return the nodes on the way to the last node, at each of them going back to the nearest node that it reads."""
    numbers: list[int] = []
    node = dag.nodes - 1
    while node >= dag.inputs:
        numbers.append(node)
        read = dag.reads.row(node)
        node = int(read[np.argmin(lengths[read])])
    return numbers[:0:-1]
