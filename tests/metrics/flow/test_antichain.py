from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

import depgraph
from depgraph.dag.graph import DependencyGraph
from depgraph.dag.levels import depths
from depgraph.metrics.flow.antichain import large_antichain
from tests.metrics.antichains import executed_part, is_antichain
from tests.metrics.strategies import graphs


@given(graphs())
def test_larger_than_levels_operations_and_what_nothing_reads(graph: DependencyGraph) -> None:
    dag, depth, position = graph.dag, depths(graph.dag), executed_part(graph)
    found = large_antichain(dag, depth)
    assert (np.diff(found) > 0).all()
    assert is_antichain(position, found.tolist())
    assert len(found) >= max(np.bincount(depth[dag.inputs :], minlength=1))
    assert len(found) >= max((o.stop - o.start for o in graph.operations), default=0)
    assert len(found) >= sum(not degree for _, degree in position.out_degree)
    assert set(found.tolist()) <= set(position)


@pytest.mark.parametrize("count", [3, 20])
def test_what_is_independent_of_a_level_joins_it(count: int) -> None:
    # A wide step in the middle of one chain, and a chain of its own beside it.
    dag = nx.DiGraph([("a", ("wide", i)) for i in range(count)] + [(("wide", i), "b") for i in range(count)])
    nx.add_path(dag, ["beside", "of", "it"])
    graph = depgraph.from_networkx(dag)
    assert len(large_antichain(graph.dag, depths(graph.dag))) == count + 1
