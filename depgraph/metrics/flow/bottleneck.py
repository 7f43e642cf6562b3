"""The narrowest place that everything has to squeeze through."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from depgraph.dag.graph import DependencyGraph, Node, Terminal, check_graph
from depgraph.dag.reach import ancestors
from depgraph.dag.runs import IntArray, offsets, stack
from depgraph.errors import PositionError
from depgraph.metrics.flow.capacities import capacities
from depgraph.metrics.flow.contraction import Supply, contract
from depgraph.metrics.flow.network import flow_through
from depgraph.metrics.reach import descendants
from depgraph.metrics.select import Selections, select_several
from depgraph.metrics.weights import Weight

#: Inputs or outputs, and the numbers of their positions.
Ends = list[tuple[Terminal, IntArray]]


class Cut(NamedTuple):
    """A smallest set of nodes that every path from some positions to some others goes through.

    Attributes
    ----------
    size : int
        The number of the nodes, or their summed weight. 0 where there is no path.
    nodes : list of Node
        One such set. Input positions have the op ``"input"``, output positions that gather several nodes ``"output"``.
    """

    size: int
    nodes: list[Node]


def bottleneck(
    graph: DependencyGraph, source: Selections = None, target: Selections = None, weight: Weight = "ops"
) -> Cut:
    """Return the fewest nodes through which everything from some input positions to some output positions must pass.

    The positions themselves count as well: nothing is wider than the smaller of the two sets. By Menger's theorem [1]_
    the size is also the largest number of paths from the one set to the other that have no node in common. With a
    weight it is the least summed weight of such nodes, and the largest flow [2]_ if nodes let through what they weigh:
    how many numbers everything must pass through, where the weight is how many each node carries.

    Parameters
    ----------
    graph : DependencyGraph
    source : optional
        A key of ``graph.inputs``, or (key, positions) for some positions only, or a list of those for several inputs
        together. The first tracked input by default.
    target : optional
        The same of ``graph.outputs``. The first output by default.
    weight : {"ops", "scalars"} or callable, optional
        ``"ops"``: 1 a node. ``"scalars"``: the numbers in its bundle. A callable takes a `Node`, an input or not, and
        returns a whole number of at least 0. With ``"ops"`` an output position that gathers several nodes counts as
        one more node; otherwise only the nodes it gathers count.

    Returns
    -------
    Cut
        Among the smallest sets, one with the fewest nodes of weight 0.

    Raises
    ------
    PositionError
        Where a name or a position does not exist.
    GraphError
        Where the graph has no inputs or no outputs, or a weight is unknown or no whole number.

    References
    ----------
    .. [1] K. Menger, "Zur allgemeinen Kurventheorie", Fundamenta Mathematicae 10, 1927.
    .. [2] L. R. Ford and D. R. Fulkerson, "Maximal flow through a network", Canadian Journal of Mathematics 8, 1956.

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

    If that vector has 512 numbers, and a word 100, two words are the narrower place:

    >>> cut = depgraph.bottleneck(graph, weight=lambda node: 100 if node.op == "input" else 512)
    >>> cut.size, [node.id for node in cut.nodes]
    (200, ['x0', 'x1'])
    """
    check_graph(graph)
    starts, ends = select_several(graph.inputs, source), select_several(graph.outputs, target)
    return _cut(graph, starts, ends, weight)


def state(
    graph: DependencyGraph, t: int, source: Selections = None, target: Selections = None, weight: Weight = "ops"
) -> Cut:
    """Return the bottleneck between the input positions before t and the output positions from t on.

    Its size is how many vectors carry the past: 1 a layer in a recurrent network, whatever t; min(t, n − t) with causal
    attention, whose memory grows with what it has read.

    Parameters
    ----------
    graph : DependencyGraph
    t : int
        How many positions of each input are past; outputs at those positions are too. Positions are counted row-major
        over the tracked axes, as everywhere: with one tracked axis t is an index along it; with the rows and columns
        of an image the first r rows are past where t is r times the width, and a part of the next row where it lies
        between. From 0 to the number of positions of the largest input, or of the largest output if that is smaller.
    source, target : optional
        As for `bottleneck`; of the positions given, those before t and those from t on.
    weight : {"ops", "scalars"} or callable, optional
        As for `bottleneck`.

    Returns
    -------
    Cut

    Raises
    ------
    PositionError
        Where t lies outside, or a name or a position does not exist.
    GraphError
        As for `bottleneck`.

    Examples
    --------
    >>> import networkx as nx
    >>> import depgraph
    >>> rnn = nx.DiGraph([("x0", "h0"), ("x1", "h1"), ("x2", "h2"), ("h0", "h1"), ("h1", "h2")])
    >>> graph = depgraph.from_networkx(rnn, sources=["x0", "x1", "x2"], targets=["h0", "h1", "h2"])
    >>> depgraph.state(graph, 2).size
    1
    """
    check_graph(graph)
    starts, ends = select_several(graph.inputs, source), select_several(graph.outputs, target)
    last = min(max((terminal.count for terminal, _ in side), default=0) for side in (starts, ends))
    if isinstance(t, bool) or not isinstance(t, (int, np.integer)) or not 0 <= t <= last:
        counts = [f"{terminal.name} has {terminal.count} positions" for terminal, _ in starts]
        counts += [f"{terminal.name} has {terminal.count}" for terminal, _ in ends]
        raise PositionError(f"t goes from 0 to {last}: {', '.join(counts)}; got {t!r}.")
    past = [(terminal, numbers[numbers < t]) for terminal, numbers in starts]
    future = [(terminal, numbers[numbers >= t]) for terminal, numbers in ends]
    return _cut(graph, past, future, weight)


def _cut(graph: DependencyGraph, starts: Ends, ends: Ends, weight: Weight) -> Cut:
    carried = capacities(graph, weight)
    sources = stack([terminal.nodes.take(numbers) for terminal, numbers in starts]).starts
    rows = stack([terminal.nodes.take(numbers) for terminal, numbers in ends])
    dag = graph.dag.followed_by(rows)
    sinks = np.arange(graph.dag.nodes, dag.nodes)
    between = descendants(dag, sources) & ancestors(dag, sinks, sinks + 1)
    fed, drained = np.zeros((2, dag.nodes), np.int64)
    fed[sources], drained[sinks] = 1, 1
    beyond = 1 if weight == "ops" else max(2 * int(carried.sum()), 1)  # more than all nodes, or a vertex like them
    capacity = np.append(carried, np.full(len(rows), beyond))
    supply = contract(Supply(dag, np.arange(dag.nodes), fed, drained, capacity=capacity).only(between))
    if not supply.dag.nodes:
        return Cut(0, [])
    size, cut = flow_through(supply)
    return Cut(size, [_node(graph, ends, number) for number in supply.origin[cut].tolist()])


def _node(graph: DependencyGraph, ends: Ends, number: int) -> Node:
    if number < graph.dag.nodes:
        return graph.node(number)
    row, first = number - graph.dag.nodes, offsets(np.array([len(numbers) for _, numbers in ends]))
    end = int(np.searchsorted(first, row, side="right")) - 1
    terminal, position = ends[end][0], int(ends[end][1][row - first[end]])
    where = np.unravel_index(position, terminal.grid) if terminal.grid else ()
    return Node((terminal.name, position), "output", tuple(int(p) for p in where), terminal.name, "")
