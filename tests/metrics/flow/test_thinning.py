from __future__ import annotations

from itertools import combinations

import networkx as nx
import pytest
from hypothesis import given

from depgraph.dag.graph import DependencyGraph
from depgraph.metrics.flow.thinning import thinned
from tests.metrics.antichains import executed_part, expected_width, numbered
from tests.metrics.strategies import graphs
from tests.metrics.synthetic import eager_attention, recurrent, transformer


@given(graphs())
def test_candidates_depend_on_each_other_as_before_and_suffice(graph: DependencyGraph) -> None:
    found = thinned(graph.dag)
    left = nx.DiGraph()
    left.add_nodes_from(range(found.dag.nodes))
    left.add_edges_from(zip(*(part.tolist() for part in found.dag.edge_arrays()), strict=True))
    before = nx.transitive_closure_dag(numbered(graph))
    after = nx.transitive_closure_dag(left)
    members = found.counted.nonzero()[0].tolist()
    assert all(graph.dag.inputs <= found.origin[v] < graph.dag.nodes for v in members)
    for u, v in combinations(members, 2):
        assert after.has_edge(u, v) == before.has_edge(found.origin[u], found.origin[v])
    origins = found.origin[members].tolist()
    assert len(set(origins)) == len(origins)
    assert expected_width(nx.DiGraph(before.subgraph(origins))) == expected_width(executed_part(graph))


@pytest.mark.parametrize(
    ("graph", "members"),
    [
        (recurrent(1, 40), 1),
        (recurrent(1, 40, both_ways=True), 2),
        # Scores, queries, keys and values: the rest follows what has a single reader.
        (eager_attention(1, 6), 36 + 3 * 6),
    ],
)
def test_little_is_left(graph: DependencyGraph, members: int) -> None:
    assert thinned(graph.dag).counted.sum() == members


def test_chains_of_operations_shrink() -> None:
    graph = transformer(4, 16)
    assert thinned(graph.dag).dag.nodes < graph.dag.nodes / 2
