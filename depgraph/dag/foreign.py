"""What is wrong with a graph that somebody else made."""

from __future__ import annotations

from typing import Any

import networkx as nx

from depgraph.errors import GraphError

_SHOWN = 8
"""Nodes of a cycle that are named."""


def check_networkx(dag: object) -> None:
    """Raise where something is no directed graph of networkx, has no nodes, or has parallel edges.

    Raises
    ------
    GraphError
    """
    if not isinstance(dag, nx.Graph) or not dag.is_directed():
        what = "an undirected graph" if isinstance(dag, nx.Graph) else f"a {type(dag).__name__}"
        raise GraphError(
            f"from_networkx() needs a directed graph of networkx: an edge u → v says that v reads u; got {what}."
        )
    if not len(dag):
        raise GraphError("The graph has no nodes: there is nothing to measure.")
    if dag.is_multigraph():
        for u, readers in dag.adjacency():
            for v, edges in readers.items():
                if len(edges) > 1:
                    raise GraphError(
                        f"The graph has {len(edges)} edges from {u!r} to {v!r}; a node reads another one once. "
                        "Leave out what is there twice, as networkx.DiGraph(graph) does."
                    )


def cycle_in(dag: nx.DiGraph[Any]) -> str:
    """Return what to say of a graph that has a cycle."""
    for node in nx.nodes_with_selfloops(dag):
        return f"The node {node!r} reads itself. A dependency graph has no such edge."
    nodes = [repr(edge[0]) for edge in nx.find_cycle(dag)]
    if len(nodes) > _SHOWN:
        half = _SHOWN // 2
        nodes = [*nodes[:half], f"… {len(nodes) - _SHOWN:,} more …", *nodes[-half:]]
    return f"The graph has a cycle: {' → '.join([*nodes, nodes[0]])}. A dependency graph has none."
