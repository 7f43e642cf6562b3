"""Antichains by other means: enumeration, matchings in the transitive closure, and searches from every member."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import networkx as nx

from depgraph.dag.graph import DependencyGraph


def numbered(graph: DependencyGraph) -> nx.DiGraph:
    """Return the graph to networkx, nodes by number."""
    dag = nx.DiGraph()
    dag.add_nodes_from(range(graph.dag.nodes))
    dag.add_edges_from(zip(*(part.tolist() for part in graph.dag.edge_arrays()), strict=True))
    return dag


def executed_part(graph: DependencyGraph) -> nx.DiGraph:
    return nx.DiGraph(numbered(graph).subgraph(range(graph.dag.inputs, graph.dag.nodes)))


def expected_width(dag: nx.DiGraph) -> int:
    """Return the nodes less a maximum matching in the transitive closure: a least number of chains."""
    closure = nx.transitive_closure_dag(dag)
    pairs = nx.Graph()
    left = [("gives", v) for v in closure]
    pairs.add_nodes_from(left)
    pairs.add_edges_from((("gives", u), ("takes", v)) for u, v in closure.edges)
    return len(dag) - len(nx.bipartite.hopcroft_karp_matching(pairs, left)) // 2


def largest_antichain(dag: nx.DiGraph) -> int:
    return max(map(len, nx.antichains(dag)), default=0)


def is_antichain(dag: nx.DiGraph, members: Iterable[Hashable]) -> bool:
    """Return whether the members are distinct nodes and no path leads from one of them to another."""
    listed = list(members)
    waiting, seen = list(listed), set()
    while waiting:
        for reader in dag.successors(waiting.pop()):
            if reader not in seen:
                seen.add(reader)
                waiting.append(reader)
    return len(set(listed)) == len(listed) and seen.isdisjoint(listed)
