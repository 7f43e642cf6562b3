"""Maximum flow through a graph whose edges are kept as runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order

from depgraph.dag.dag import Dag
from depgraph.dag.runs import BoolArray, IntArray, expand
from depgraph.errors import GraphError
from depgraph.metrics.flow.contraction import Supply
from depgraph.metrics.flow.maximum import largest_flow

#: Runs up to this length become an edge for each of their nodes.
_SHORT = 2


@dataclass(frozen=True)
class Arcs:
    """Edges of unlimited capacity between nodes of a graph and auxiliary vertices, numbered after the nodes."""

    vertices: int
    tail: IntArray
    head: IntArray

    @property
    def size(self) -> int:
        """Vertices and edges."""
        return self.vertices + len(self.tail)


def run_arcs(dag: Dag) -> Arcs:
    """Return arcs from what is read to what reads it, near-linear in the number of runs.

    Long runs are taken apart into the stretches of a binary tree over the nodes, at most two on each of its levels;
    each stretch gathers from its two halves. Equal runs are taken apart once.
    """
    starts, stops, rows = dag.reads.starts, dag.reads.stops, dag.reads.rows
    long = stops - starts > _SHORT
    tails = [expand(starts[~long], stops[~long])]
    heads = [np.repeat(rows[~long], (stops - starts)[~long])]
    if not long.any():
        return Arcs(dag.nodes, tails[0], heads[0])
    leaf = 1 << max(dag.nodes - 1, 1).bit_length()
    keys, which = np.unique(starts[long] * (dag.nodes + 1) + stops[long], return_inverse=True)
    left, right, run = keys // (dag.nodes + 1) + leaf, keys % (dag.nodes + 1) + leaf, np.arange(len(keys))
    used = np.zeros(2 * leaf, bool)
    piece, piece_run = [], []
    while len(run):
        for ends, step in ((left, 0), (right, 1)):
            odd = ends % 2 == 1
            piece.append(ends[odd] - step)
            piece_run.append(run[odd])
        left, right = (left + 1) // 2, right // 2
        live = left < right
        left, right, run = left[live], right[live], run[live]
    pieces, piece_runs = np.concatenate(piece), np.concatenate(piece_run)
    used[pieces] = True
    level = 1
    while level < leaf:
        halves = used[2 * level : 4 * level].reshape(level, 2)
        halves |= used[level : 2 * level, None]
        level *= 2
    inner = np.flatnonzero(used[:leaf])
    vertex = np.zeros(2 * leaf, np.int64)
    vertex[leaf:] = np.arange(leaf)
    vertex[inner] = dag.nodes + np.arange(len(inner))
    run_vertex = dag.nodes + len(inner) + np.arange(len(keys))
    tails += [vertex[2 * inner], vertex[2 * inner + 1], vertex[pieces], run_vertex[which]]
    heads += [vertex[inner], vertex[inner], run_vertex[piece_runs], rows[long]]
    return Arcs(dag.nodes + len(inner) + len(keys), np.concatenate(tails), np.concatenate(heads))


def flow_through(supply: Supply, arcs: Arcs | None = None) -> tuple[int, BoolArray]:
    """Return the largest flow, and a cut of that size.

    Parameters
    ----------
    supply : Supply
        With at least one node. What is fed and drained is counted on top of ``passed``.
    arcs : Arcs, optional
        What `run_arcs` returns for this graph, if it is there already.

    Returns
    -------
    flow : int
    cut : (nodes,) bool array
        Where nodes let any amount through: those that can still be reached from where something is fed, the near side
        of the cut. Else the nodes between what can be reached and what cannot, whose capacities add up to the flow.

    Raises
    ------
    GraphError
        Where the capacities are too large.
    """
    dag, nodes = supply.dag, supply.dag.nodes
    arcs = arcs or run_arcs(dag)
    limited = supply.capacity is not None
    # Vertices: the nodes as they give, auxiliary ones, the nodes as they take (if they have a capacity), two ends.
    entrance = arcs.vertices + np.arange(nodes) if limited else np.arange(nodes)
    source = arcs.vertices + (nodes if limited else 0)
    sink = source + 1
    fed, drained = np.flatnonzero(supply.fed), np.flatnonzero(supply.drained)
    into = np.where(arcs.head < nodes, entrance[np.minimum(arcs.head, nodes - 1)], arcs.head)
    tails = [arcs.tail, np.full(len(fed), source), drained]
    heads = [into, entrance[fed], np.full(len(drained), sink)]
    if supply.capacity is None:
        bound = int(min(supply.fed.sum(), supply.drained.sum()))
        sizes = [np.full(len(into), bound + 1), supply.fed[fed], supply.drained[drained]]
    else:  # it alone limits what flows, so that a cut goes through nodes
        capacity, bound = _in_units(supply.capacity, fed, drained)
        tails.append(entrance)
        heads.append(np.arange(nodes))
        sizes = [*(np.full(len(part), bound + 1) for part in tails[:-1]), capacity]
    edges = np.concatenate(sizes), (np.concatenate(tails), np.concatenate(heads))
    limits = csr_array(coo_array(edges, shape=(sink + 1, sink + 1)))
    flow, left = largest_flow(limits, source, sink, bound)
    reached = np.zeros(sink + 1, np.bool_)
    reached[breadth_first_order(left, source, return_predecessors=False)] = True
    if supply.capacity is None:
        return flow, reached[:nodes]
    cut: BoolArray = reached[entrance] & ~reached[:nodes]
    return int(supply.capacity[cut].sum()), cut


def _in_units(capacity: IntArray, fed: IntArray, drained: IntArray) -> tuple[IntArray, int]:
    """Return the capacities in their largest common unit, and a bound on what flows.

    Nodes that let nothing through count as well, for less than a unit all together: of the smallest cuts that leaves
    those that go through the fewest of them. What is wider than the bound may as well be infinitely wide.
    """
    empty = capacity == 0
    units = capacity // max(int(np.gcd.reduce(capacity)), 1)
    share = int(empty.sum()) + 1
    bound = min(_total(units[fed]), _total(units[drained]))
    if share * (bound + 1) >= 2**61:
        raise GraphError("The weights add up to 2⁶¹ or more, too much to add exactly; return smaller numbers.")
    units = np.where(empty, 1, np.minimum(units, bound + 1) * share)
    bound = min(_total(units[fed]), _total(units[drained]))
    return np.minimum(units, bound + 1), bound


def _total(numbers: IntArray) -> int:
    """Return a sum that may exceed 64 bits."""
    return int(np.sum(numbers, dtype=object))
