from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from depgraph.dag.graph import DependencyGraph
from depgraph.metrics.flow.cover import halved
from tests.metrics.antichains import is_antichain, numbered
from tests.metrics.strategies import graphs


@given(graphs(blocks=3, width=4), st.data())
@settings(max_examples=100)
def test_the_heaviest_antichain(graph: DependencyGraph, data: st.DataObject) -> None:
    # Nodes that must be on several chains, and nodes that need not be on any.
    dag = graph.dag
    amounts = st.lists(st.integers(0, 3), min_size=dag.nodes, max_size=dag.nodes)
    amount = np.array(data.draw(amounts), np.int64)
    amount[: dag.inputs] = 0
    halves = halved(dag, amount)
    chains, members = halves.least()
    heaviest = max(amount[antichain].sum() for antichain in nx.antichains(numbered(graph)) if antichain)
    found = np.flatnonzero(amount)[members]
    assert chains == amount[found].sum() == heaviest
    assert is_antichain(numbered(graph), found.tolist())
    assert heaviest <= halves.chains <= amount.sum()
