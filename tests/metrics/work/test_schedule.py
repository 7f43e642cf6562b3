from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from math import ceil

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import depgraph
from depgraph.dag.graph import DependencyGraph
from depgraph.errors import GraphError
from depgraph.metrics.work import queue, simulation
from depgraph.metrics.work import readiness as readiness_module
from depgraph.metrics.work.schedule import Schedule, schedule
from tests.metrics.strategies import as_networkx, graphs
from tests.metrics.synthetic import eager_attention, recurrent, transformer
from tests.metrics.work.naive import best_makespan, list_schedule

WORKERS = st.integers(1, 9)
COSTS = {
    "ones": st.just(1),
    "zeros and ones": st.integers(0, 1),
    "integers": st.integers(0, 5),
    "floats": st.floats(0, 3, allow_subnormal=False),
    "far apart": st.sampled_from([0, 5e-324, 1e-200, 1e-17, 0.1, 1, 1e17]),
}


def executed_part(graph: DependencyGraph) -> nx.DiGraph:
    return nx.DiGraph(as_networkx(graph).subgraph(range(graph.dag.inputs, graph.dag.nodes)))


def drawn_costs(graph: DependencyGraph, data: st.DataObject) -> dict[int, int | float]:
    """Return what each node costs: the same for all nodes of an operation, or each its own."""
    each = COSTS[data.draw(st.sampled_from(sorted(COSTS)))]
    by_operation = data.draw(st.booleans())
    cost = {}
    for operation in graph.operations:
        shared = data.draw(each)
        for v in range(operation.start, operation.stop):
            cost[v] = shared if by_operation else data.draw(each)
    return cost


def assert_valid(graph: DependencyGraph, found: Schedule, cost: dict[int, int | float]) -> None:
    """Check that nothing starts before what it reads, and no worker runs two nodes at once or idles without need."""
    dag, starts, worker = executed_part(graph), found.starts.tolist(), found.worker.tolist()
    finishes = {v: starts[v] + cost[v] for v in dag}
    assert starts[: graph.dag.inputs] == [0] * graph.dag.inputs
    ready = {v: max((finishes[u] for u in dag.predecessors(v)), default=0) for v in dag}
    assert all(starts[v] >= ready[v] for v in dag)
    assert found.makespan == max(finishes.values(), default=0)
    working = sorted(v for v in dag if cost[v])
    assert [v for v in range(graph.dag.nodes) if worker[v] >= 0] == working
    assert {worker[v] for v in working} <= set(range(found.workers))
    for number in set(worker):
        mine = sorted((starts[v], finishes[v]) for v in working if worker[v] == number)
        assert all(finish <= start for (_, finish), (start, _) in pairwise(mine))
    for v in dag:
        if not cost[v]:
            assert starts[v] == ready[v]
        elif starts[v] > ready[v]:  # then all workers are busy until it starts
            moments = [ready[v], *(f for f in finishes.values() if ready[v] <= f < starts[v])]
            for moment in moments:
                assert sum(starts[u] <= moment < finishes[u] for u in working) == found.workers


@pytest.fixture(params=["one by one", "whole arrays"])
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run small graphs the way that large ones go, too."""
    if request.param == "whole arrays":
        for module in (queue, simulation, readiness_module):
            monkeypatch.setattr(module, "FEW", 0)


@given(graphs(), WORKERS, st.data())
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("few", [0, 2, 24])
def test_the_same_as_one_event_at_a_time(few: int, graph: DependencyGraph, workers: int, data: st.DataObject) -> None:
    cost = drawn_costs(graph, data)
    with pytest.MonkeyPatch.context() as patch:
        for module in (queue, simulation, readiness_module):
            patch.setattr(module, "FEW", few)
        found = schedule(graph, workers, lambda node: cost[node.id])
    expected = list_schedule(executed_part(graph), cost, workers)
    assert found.starts[graph.dag.inputs :].tolist() == [expected[v] for v in sorted(expected)]
    assert_valid(graph, found, cost)
