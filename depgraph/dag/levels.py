"""How deep each node lies, how much follows it, and the longest path: block by block, range maxima over the runs."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from depgraph.dag.dag import Dag
from depgraph.dag.runs import IntArray
from depgraph.dag.stretches import in_blocks

NumberArray = npt.NDArray[Any]


def depths(dag: Dag, weights: NumberArray | None = None) -> NumberArray:
    """Return the weight of the longest path that ends in each node, the node itself included and inputs left out.

    With unit weights this is the step at which a node runs when every node runs as early as it can: inputs are at 0,
    what reads nothing but inputs at 1.

    Parameters
    ----------
    dag : Dag
    weights : (nodes,) array, optional
        What each node costs, not negative; 1 by default. Those of the inputs are not looked at.

    Returns
    -------
    (nodes,) array
        Integers without weights, else of the type of the weights. Not to be changed where all weights are 1.

    Examples
    --------
    >>> import networkx as nx
    >>> from depgraph.dag.interop import from_networkx
    >>> graph = from_networkx(nx.DiGraph([("x", "a"), ("a", "b"), ("x", "b")]), sources=["x"])
    >>> depths(graph.dag).tolist()
    [0, 1, 2]
    """
    if weights is None or (weights.dtype.kind == "i" and bool((weights[dag.inputs :] == 1).all())):
        return dag.levels
    return deepest(dag, np.array(weights))


def deepest(dag: Dag, depth: NumberArray) -> NumberArray:
    """Turn the weights of nodes into their depths, in place; see `depths`."""
    depth[: dag.inputs] = 0
    # Sums taken in another order are the same sums only if they are of integers.
    stretches = dag.stretches if depth.dtype.kind == "i" else in_blocks(dag)
    reads = stretches.reads
    counts, lengths = reads.counts, reads.stops - reads.starts
    bounds, run_bounds = stretches.bounds.tolist(), reads.indptr[stretches.bounds].tolist()
    chained = stretches.chained.tolist()
    longest, fewest, most = (
        _by_stretch(*of).tolist()
        for of in (
            (np.maximum, lengths, reads.indptr[stretches.bounds]),
            (np.minimum, counts, stretches.bounds),
            (np.maximum, counts, stretches.bounds),
        )
    )
    for stretch, (low, high) in enumerate(pairwise(bounds)):
        first, last = run_bounds[stretch], run_bounds[stretch + 1]
        own = depth[low:high]
        if last > first:
            if longest[stretch] <= 2:  # a run's first and last node are all it has
                found = depth[reads.starts[first:last]]
                if longest[stretch] == 2:
                    found = np.maximum(found, depth[reads.stops[first:last] - 1], out=found)
            else:
                found = _range_maxima(depth, low, reads.starts[first:last], reads.stops[first:last])
            live: slice | IntArray = slice(None) if fewest[stretch] else np.flatnonzero(counts[low:high])
            if most[stretch] > 1:
                found = np.maximum.reduceat(found, reads.indptr[low:high][live] - first)
        if chained[stretch]:
            before = np.zeros_like(own)
            if last > first:
                before[live] = found
            total = np.cumsum(own)
            own[:] = total + np.maximum.accumulate(before - (total - own))
        elif last > first:
            own[live] += found
    return depth


def tails(dag: Dag, weights: NumberArray | None = None) -> NumberArray:
    """Return the weight of the longest path that can still follow each node, the node itself left out.

    Scheduling calls it the node's tail; with the node's own weight it is the bottom level. It is 0 for what nobody
    reads.

    Parameters
    ----------
    dag : Dag
    weights : (nodes,) array, optional
        As for `depths`.

    Returns
    -------
    (nodes,) array
        Integers without weights, else of the type of the weights. In time near-linear in nodes and runs.

    Examples
    --------
    >>> import networkx as nx
    >>> from depgraph.dag.interop import from_networkx
    >>> graph = from_networkx(nx.DiGraph([("x", "a"), ("a", "b"), ("x", "b")]), sources=["x"])
    >>> tails(graph.dag).tolist()
    [2, 1, 0]
    """
    weights = np.ones(dag.nodes, np.int64) if weights is None else weights
    tail = np.zeros(dag.nodes, weights.dtype)
    order = np.argsort(dag.reads.starts, kind="stable")  # runs by the block they lie in
    starts, stops, readers = dag.reads.starts[order], dag.reads.stops[order], dag.reads.rows[order]
    bounds = np.searchsorted(starts, dag.blocks).tolist()
    edges = dag.blocks.tolist()
    for block in range(len(edges) - 2, -1, -1):
        first, last, low = bounds[block], bounds[block + 1], edges[block]
        if first < last:
            reader = readers[first:last]
            follows = tail[reader] + weights[reader]
            _raise_runs(tail[low : edges[block + 1]], starts[first:last] - low, stops[first:last] - low, follows)
    return tail


def settle(dag: Dag, values: NumberArray, nodes: IntArray) -> None:
    """Give each of these (ascending) nodes the largest value of those it reads, in place; 0 where it reads nothing.

    Nodes come after what they read, so that values are handed on along chains of such nodes.
    """
    indptr = dag.reads.indptr
    bounds = np.searchsorted(nodes, dag.blocks)
    for block in np.flatnonzero(np.diff(bounds)).tolist():
        here = nodes[bounds[block] : bounds[block + 1]]
        values[here] = 0
        reading = here[indptr[here + 1] > indptr[here]]
        if len(reading):
            runs = dag.reads.take(reading)
            largest = _range_maxima(values, int(dag.blocks[block]), runs.starts, runs.stops)
            values[reading] = np.maximum.reduceat(largest, runs.indptr[:-1])


def longest_path(dag: Dag, depth: NumberArray | None = None) -> IntArray:
    """Return the nodes on a path of the largest weight, in order, inputs left out.

    Among several such paths, the one whose nodes have the lowest numbers, looked at from its end.

    Parameters
    ----------
    dag : Dag
    depth : (nodes,) array, optional
        What `depths` returns; that of unit weights by default.

    Returns
    -------
    (length,) int64
        Empty where there is nothing but inputs.

    Examples
    --------
    >>> import networkx as nx
    >>> from depgraph.dag.interop import from_networkx
    >>> graph = from_networkx(nx.DiGraph([("x", "a"), ("a", "b"), ("x", "b")]), sources=["x"])
    >>> longest_path(graph.dag).tolist()
    [1, 2]
    """
    if dag.nodes == dag.inputs:
        return np.zeros(0, np.int64)
    depth = depths(dag) if depth is None else depth
    node = dag.inputs + int(np.argmax(depth[dag.inputs :]))
    path = [node]
    while dag.reads.indptr[node + 1] > dag.reads.indptr[node]:
        read = dag.reads.row(node)
        node = int(read[np.argmax(depth[read])])
        if node < dag.inputs:
            break
        path.append(node)
    return np.array(path[::-1], np.int64)


def _by_stretch(ufunc: np.ufunc, values: IntArray, bounds: IntArray) -> IntArray:
    """Return the largest or smallest of the values of each stretch, 0 for one that has none."""
    result = np.zeros(len(bounds) - 1, np.int64)
    some = np.flatnonzero(np.diff(bounds))
    if len(some):
        result[some] = ufunc.reduceat(values, bounds[some])
    return result


def _range_maxima(values: NumberArray, bound: int, starts: IntArray, stops: IntArray) -> NumberArray:
    """Return the maximum of ``values[start:stop]`` for each run; all of them stop at ``bound`` at the latest."""
    # reduceat works on the stretch from each index to the next. From the last run to the first, what lies between one
    # run's stop and the next one's start is never more than one element, so that gaps between runs cost nothing.
    span = bound + 1
    distinct, which = np.unique(starts * span + stops, return_inverse=True)
    ends = np.stack(np.divmod(distinct[::-1], span), 1).ravel()
    maxima: NumberArray = np.maximum.reduceat(values[: int(stops.max()) + 1], ends)[::2]
    return maxima[::-1][which]


def _raise_runs(values: NumberArray, starts: IntArray, stops: IntArray, heights: NumberArray) -> None:
    """Raise ``values[start:stop]`` to at least the height of each run, in place; the values are 0 so far.

    A run is covered by two stretches of the largest power of two within it. From the longest stretches down, each is
    handed to its two halves: a sparse table of range maxima, read backwards and one row at a time.
    """
    lengths = stops - starts
    level = np.frexp(lengths.astype(np.float64))[1] - 1
    for power in range(int(level.max()), -1, -1):
        here = level == power
        np.maximum.at(values, starts[here], heights[here])
        if power:
            np.maximum.at(values, stops[here] - (1 << power), heights[here])
            half = 1 << (power - 1)
            values[half:] = np.maximum(values[half:], values[:-half])
