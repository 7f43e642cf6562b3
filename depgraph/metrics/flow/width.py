"""The most nodes that could ever run at the same moment: the largest antichain."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from depgraph.dag.dag import Dag
from depgraph.dag.graph import DependencyGraph, Node, check_graph
from depgraph.dag.levels import depths
from depgraph.dag.runs import IntArray
from depgraph.errors import GraphError
from depgraph.metrics.flow.antichain import EXTENSIONS, large_antichain
from depgraph.metrics.flow.columns import columns
from depgraph.metrics.flow.cover import Halves, halved
from depgraph.metrics.flow.matching import direct_chains
from depgraph.metrics.flow.network import Arcs, run_arcs
from depgraph.metrics.flow.thinning import thinned

Effort = Literal["never", "auto", "always"]
_EFFORTS = ("never", "auto", "always")

#: Vertices and arcs of the largest network that "auto" sends a flow through: some 4 GB, about 70 bytes for each.
_LARGEST_NETWORK = 60_000_000
#: SciPy numbers arcs, there and back, with 32 bits.
_MOST_ARCS = 2**30 - 1
#: Who asks for bounds alone gets those that take no time where nodes and runs are more than this.
_QUICK = 2_000_000
#: Blocks are matched position by position if they have at least this many nodes on average.
_COLUMN = 16


@dataclass(frozen=True, eq=False)
class Width:
    """The largest antichain found, and how much larger one could be.

    Attributes
    ----------
    numbers : (size,) int64
        The numbers of its nodes, in order, inputs left out: none of them depends on another, directly or through
        others.
    upper : int
        The number of chains of the smallest cover found: no antichain is larger, since it has at most one node of each.
    """

    numbers: IntArray
    upper: int
    _graph: DependencyGraph = field(repr=False)

    @property
    def size(self) -> int:
        """How many nodes could run at the same moment."""
        return len(self.numbers)

    @property
    def is_exact(self) -> bool:
        """Whether the antichain is known to be a largest one."""
        return self.size == self.upper

    @cached_property
    def nodes(self) -> list[Node]:
        """The nodes of the antichain, in the order of their numbers."""
        return [self._graph.node(number) for number in self.numbers.tolist()]


def width(graph: DependencyGraph, exact: Effort = "auto") -> Width:
    """Return a largest set of nodes none of which depends on another, inputs left out.

    By Dilworth's theorem [1]_ its size is the least number of chains that cover all nodes. First come bounds: an
    antichain of nodes at one depth and what is independent of them, and the chains in which operations follow each
    other position by position. Where these do not meet, nodes that others can stand for are left out, and a maximum
    flow [2]_ finds the least chain cover of the rest: every node gives to one that depends on it, takes from one that
    it depends on, and lets through what passes between others. The minimum cut is the antichain.

    Parameters
    ----------
    graph : DependencyGraph
    exact : {"auto", "never", "always"}, optional
        Whether to send the flow where bounds do not meet: if its network is not too large (some gigabytes), never, or
        whatever it costs.

    Returns
    -------
    Width
        With ``size``, ``is_exact``, ``upper``, ``numbers`` and ``nodes``.

    Raises
    ------
    GraphError
        Where ``exact`` is something else, or the memory does not suffice.

    References
    ----------
    .. [1] R. P. Dilworth, "A decomposition theorem for partially ordered sets", Annals of Mathematics 51, 1950.
    .. [2] D. R. Fulkerson, "Note on Dilworth's decomposition theorem for partially ordered sets", Proceedings of the
       American Mathematical Society 7, 1956.

    Examples
    --------
    A diamond, one side of which is longer than the other:

    >>> import networkx as nx
    >>> import depgraph
    >>> dag = nx.DiGraph([("a", "b"), ("b", "c"), ("c", "e"), ("a", "d"), ("d", "e")])
    >>> found = depgraph.width(depgraph.from_networkx(dag))
    >>> found.size, found.is_exact, sorted(node.id for node in found.nodes)
    (2, True, ['b', 'd'])
    """
    check_graph(graph)
    check_effort(exact)
    return Width(*bounds(graph.dag, depths(graph.dag), exact), graph)


def check_effort(exact: object) -> None:
    """Raise where ``exact`` is not one of its values.

    Raises
    ------
    GraphError
        Naming the value and the choices.
    """
    if exact not in _EFFORTS:
        raise GraphError(f"The exact width can be asked for 'never', 'auto' or 'always'; got {exact!r}.")


def bounds(dag: Dag, depth: IntArray, exact: Effort) -> tuple[IntArray, int]:
    """Return the numbers of the nodes of an antichain, and the number of chains of a cover; see `width`.

    Parameters
    ----------
    dag : Dag
    depth : (nodes,) int64
        The longest chain that ends in each node, in nodes.
    exact : {"auto", "never", "always"}
    """
    quick = exact == "never" and dag.nodes + dag.runs > _QUICK
    found = large_antichain(dag, depth, 0 if quick else EXTENSIONS)
    upper = dag.nodes - dag.inputs
    if upper > len(found) and _COLUMN * (len(dag.blocks) - 1) <= dag.nodes:
        upper = min(upper, columns(dag))
    if upper == len(found) or quick:
        return found, upper
    try:
        return _with_flow(dag, found, upper, exact)
    except MemoryError:
        if exact == "never":
            return found, upper
        raise GraphError(
            f"The memory does not suffice for the exact width of a graph of {dag.nodes:,} nodes and {dag.runs:,} runs; "
            "exact='never' gives bounds."
        ) from None


def _with_flow(dag: Dag, found: IntArray, upper: int, exact: Effort) -> tuple[IntArray, int]:
    """Return what `bounds` does, from an antichain and a number of chains that are not equal."""
    candidates = thinned(dag)
    halves = halved(candidates.dag, candidates.counted.astype(np.int64))
    upper = min(upper, halves.chains)
    if upper == len(found):
        return found, upper
    arcs = _affordable(halves, exact)
    if arcs is None:
        return found, min(upper, direct_chains(candidates))
    size, members = halves.least(arcs)
    return candidates.origin[candidates.counted][members], size


def _affordable(halves: Halves, exact: Effort) -> Arcs | None:
    """Return the arcs that a flow is to be sent through, None where none is."""
    if exact == "never" and halves.supply.dag.nodes:
        return None
    arcs = run_arcs(halves.supply.dag)
    if exact == "auto" and arcs.size > _LARGEST_NETWORK:
        return None
    if arcs.size > _MOST_ARCS:
        raise GraphError(
            f"The flow for the exact width has {arcs.size:,} vertices and arcs, more than SciPy can number; "
            "exact='never' gives bounds."
        )
    return arcs
