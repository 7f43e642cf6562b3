from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from depgraph.dag.graph import DependencyGraph
from depgraph.metrics.flow import matching
from depgraph.metrics.flow.matching import direct_chains
from depgraph.metrics.flow.thinning import Candidates
from tests.metrics.antichains import executed_part
from tests.metrics.strategies import graphs
from tests.metrics.synthetic import eager_attention


def everything(graph: DependencyGraph) -> Candidates:
    return Candidates(graph.dag, np.arange(graph.dag.nodes), np.arange(graph.dag.nodes) >= graph.dag.inputs)


@given(graphs())
def test_as_many_as_networkx_finds(graph: DependencyGraph) -> None:
    dag, pairs = executed_part(graph), nx.Graph()
    left = [("gives", v) for v in dag]
    pairs.add_nodes_from(left)
    pairs.add_edges_from((("gives", u), ("takes", v)) for u, v in dag.edges)
    matched = len(nx.bipartite.hopcroft_karp_matching(pairs, left)) // 2
    assert direct_chains(everything(graph)) == len(dag) - matched


def test_long_runs_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    # Linear × 3, scores, scaled, softmax, mixed, linear, add: of these, a softmax reads a whole row of scores.
    candidates = everything(eager_attention(1, 5))
    monkeypatch.setattr(matching, "_SHORT", 4)
    fewer = direct_chains(candidates)
    monkeypatch.undo()
    assert direct_chains(candidates) == fewer - 5
