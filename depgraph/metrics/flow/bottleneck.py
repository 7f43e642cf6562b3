"""The narrowest place that everything has to squeeze through."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from depgraph.dag.graph import DependencyGraph, Node, Terminal, check_graph
from depgraph.dag.reach import ancestors
from depgraph.dag.runs import IntArray
from depgraph.errors import PositionError
from depgraph.metrics.flow.contraction import Supply, contract
from depgraph.metrics.flow.network import flow_through
from depgraph.metrics.paths.sweep import with_readers
from depgraph.metrics.reach import descendants
from depgraph.metrics.select import Selection, select


class Cut(NamedTuple):
    """A smallest set of nodes that every path from some positions to some others goes through.

    Attributes
    ----------
    size : int
        0 where there is no path.
    nodes : list of Node
        One such set. Input positions have the op ``"input"``, output positions that gather several nodes ``"output"``.
    """

    size: int
    nodes: list[Node]


def bottleneck(graph: DependencyGraph, source: Selection = None, target: Selection = None) -> Cut:
    """Return the fewest nodes through which everything from some input positions to some output positions must pass.

    The positions themselves count as well: nothing is wider than the smaller of the two sets. By Menger's theorem [1]_
    the size is also the largest number of paths from the one set to the other that have no node in common.

    Parameters
    ----------
    graph : DependencyGraph
    source : optional
        A key of ``graph.inputs``, or (key, positions) for some positions only. The first tracked input by default.
    target : optional
        A key of ``graph.outputs``, or (key, positions). The first output by default.

    Returns
    -------
    Cut

    Raises
    ------
    PositionError
        Where a name or a position does not exist.
    GraphError
        Where the graph has no inputs or no outputs.

    References
    ----------
    .. [1] K. Menger, "Zur allgemeinen Kurventheorie", Fundamenta Mathematicae 10, 1927.

    Examples
    --------
    An encoder that hands one vector to a decoder:

    >>> import networkx as nx
    >>> import depgraph
    >>> dag = nx.DiGraph([("x0", "h0"), ("x1", "h1"), ("h0", "h1"), ("h1", "s0"), ("s0", "s1"), ("h1", "s1")])
    >>> graph = depgraph.from_networkx(dag, sources=["x0", "x1"], targets=["s0", "s1"])
    >>> cut = depgraph.bottleneck(graph)
    >>> cut.size, [node.id for node in cut.nodes]
    (1, ['h1'])
    """
    check_graph(graph)
    start, start_positions = select(graph.inputs, source)
    end, end_positions = select(graph.outputs, target)
    return _cut(graph, start, np.unique(start_positions), end, np.unique(end_positions))


def state(graph: DependencyGraph, t: int) -> Cut:
    """Return the bottleneck between the input positions before t and the output positions from t on.

    Its size is how many vectors carry the past: 1 a layer in a recurrent network, whatever t; min(t, n − t) with causal
    attention, whose memory grows with what it has read.

    Parameters
    ----------
    graph : DependencyGraph
    t : int
        From 0 to the number of positions of the first tracked input and of the first output.

    Returns
    -------
    Cut

    Raises
    ------
    PositionError
        Where t lies outside.

    Examples
    --------
    >>> import networkx as nx
    >>> import depgraph
    >>> rnn = nx.DiGraph([("x0", "h0"), ("x1", "h1"), ("x2", "h2"), ("h0", "h1"), ("h1", "h2")])
    >>> graph = depgraph.from_networkx(rnn, sources=["x0", "x1", "x2"], targets=["h0", "h1", "h2"])
    >>> state(graph, 2).size
    1
    """
    check_graph(graph)
    start, end = graph.inputs.default(), graph.outputs.default()
    if not isinstance(t, (int, np.integer)) or not 0 <= t <= min(start.count, end.count):
        raise PositionError(
            f"t goes from 0 to {min(start.count, end.count)}: {start.name} has {start.count} positions, {end.name} has "
            f"{end.count}; got {t!r}."
        )
    return _cut(graph, start, np.arange(t), end, np.arange(t, end.count))


def _cut(
    graph: DependencyGraph, start: Terminal, start_positions: IntArray, end: Terminal, end_positions: IntArray
) -> Cut:
    dag = with_readers(graph.dag, end.nodes.take(end_positions))
    sources = start.nodes.take(start_positions).starts
    sinks = np.arange(graph.dag.nodes, dag.nodes)
    between = descendants(dag, sources) & ancestors(dag, sinks, sinks + 1)
    fed, drained = np.zeros((2, dag.nodes), np.int64)
    fed[sources], drained[sinks] = 1, 1
    supply = Supply(dag, np.arange(dag.nodes), fed, drained).only(between)
    supply = contract(supply, unlimited=False)
    if not supply.dag.nodes:
        return Cut(0, [])
    size, cut = flow_through(supply, capacity=1)
    return Cut(size, [_node(graph, end, end_positions, number) for number in supply.origin[cut].tolist()])


def _node(graph: DependencyGraph, end: Terminal, end_positions: IntArray, number: int) -> Node:
    if number < graph.dag.nodes:
        return graph.node(number)
    position = int(end_positions[number - graph.dag.nodes])
    where = np.unravel_index(position, end.grid) if end.grid else ()
    return Node((end.name, position), "output", tuple(int(p) for p in where), end.name, "")
