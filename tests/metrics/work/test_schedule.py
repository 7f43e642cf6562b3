from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import depgraph
from depgraph.dag.graph import DependencyGraph
from depgraph.errors import GraphError
from depgraph.metrics.work import queue, readiness, simulation
from depgraph.metrics.work.schedule import Schedule, schedule
from tests.metrics.families import (
    CHOLESKY_COST,
    boolean_lattice,
    butterfly,
    cholesky,
    chunked,
    grid,
    kogge_stone,
    reduction_tree,
    sequential,
)
from tests.metrics.strategies import as_networkx, graphs
from tests.metrics.synthetic import eager_attention, nothing, recurrent, transformer
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


@given(graphs(), WORKERS, st.data())
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("few", [0, 2, 24])  # small graphs, the way large ones go, too
def test_the_same_as_one_event_at_a_time(few: int, graph: DependencyGraph, workers: int, data: st.DataObject) -> None:
    cost = drawn_costs(graph, data)
    with pytest.MonkeyPatch.context() as patch:
        for module in (queue, simulation, readiness):
            patch.setattr(module, "FEW", few)
        found = schedule(graph, workers, lambda node: cost[node.id])
    expected = list_schedule(executed_part(graph), cost, workers)
    assert found.starts[graph.dag.inputs :].tolist() == [expected[v] for v in sorted(expected)]
    assert_valid(graph, found, cost)


@pytest.mark.parametrize("workers", [1, 2, 7, 8, 30, 33, 100])
@pytest.mark.parametrize(
    "graph",
    [transformer(2, 33), transformer(2, 32, "full"), recurrent(3, 20, both_ways=True), eager_attention(2, 9)],
    ids=["causal", "full", "recurrent", "eager"],
)
@pytest.mark.parametrize("costs", [[1], [0, 1], [7, 2, 11, 2, 3], [0.1, 0.7, 0.3]], ids=str)
def test_models_the_same_as_one_event_at_a_time(graph: DependencyGraph, costs: list[Any], workers: int) -> None:
    cost = {v: costs[i % len(costs)] for i, o in enumerate(graph.operations) for v in range(o.start, o.stop)}
    found = schedule(graph, workers, lambda node: cost[node.id])
    expected = list_schedule(executed_part(graph), cost, workers)
    assert found.starts[graph.dag.inputs :].tolist() == [expected[v] for v in sorted(expected)]


@given(graphs(blocks=2, width=3), st.integers(1, 3), st.data())
@settings(max_examples=60, deadline=None)
def test_no_more_than_twice_the_best_schedule(graph: DependencyGraph, workers: int, data: st.DataObject) -> None:
    cost = {v: data.draw(st.integers(0, 3)) for v in range(graph.dag.inputs, graph.dag.nodes)}
    found = schedule(graph, workers, lambda node: cost[node.id])
    best = best_makespan(executed_part(graph), cost, workers)
    assert found.bounds.lower <= best <= found.makespan <= (2 - Fraction(1, workers)) * best
    assert found.makespan <= (found.work - found.span) / Fraction(workers) + found.span
    assert found.guarantee == 2 - 1 / workers


def test_greedy_is_not_best() -> None:
    # All three first nodes have a remaining path of 3. The best schedule takes the one that something follows first.
    dag = nx.DiGraph()
    dag.add_nodes_from([0, 1, 2, 3])
    dag.add_edge(2, 3)
    cost = {0: 3, 1: 3, 2: 2, 3: 1}
    found = schedule(depgraph.from_networkx(dag), 2, lambda node: cost[node.id])
    assert (found.makespan, best_makespan(dag, cost, 2), found.bounds.lower) == (6, 5, 5)


FAMILIES = {
    "grid": (grid(6, 9), []),
    "butterfly": (butterfly(32), []),
    "reduction tree": (reduction_tree(37), []),
    "boolean lattice": (boolean_lattice(6), []),
    "cholesky": (cholesky(8), []),
    "sequential scan": (sequential(64), [("x", t) for t in range(64)]),
    "kogge-stone": (kogge_stone(64), [("x", t) for t in range(64)]),
    "chunked scan": (chunked(64, 8), [("x", t) for t in range(64)]),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("weighted", [False, True])
def test_published_bounds(family: str, weighted: bool) -> None:
    dag, sources = FAMILIES[family]
    graph = depgraph.from_networkx(dag, sources)
    weight = (lambda node: CHOLESKY_COST.get(node.op, 1 + len(node.op) % 3)) if weighted else "ops"
    measured = depgraph.parallelism(graph, weight)
    for workers in (1, 2, 3, 5, 8, measured.width, measured.width + 1):
        found = schedule(graph, workers, weight)
        work, span = Fraction(measured.work), measured.span
        assert (found.work, found.span) == (work, span)
        assert found.bounds.lower == max(-(-work // workers), span)
        assert found.bounds.upper == float((work - span) / workers + span)
        assert found.bounds.lower <= found.makespan <= (work - span) / workers + span
        assert found.speedup == measured.work / found.makespan
        assert found.utilisation == found.speedup / workers
        if workers == 1:
            assert found.makespan == work
        if workers >= measured.width and not weighted:
            assert found.makespan == span


def test_tiled_cholesky() -> None:
    graph = depgraph.from_networkx(cholesky(8))
    weight = lambda node: CHOLESKY_COST[node.op]  # noqa: E731
    assert [schedule(graph, p).makespan for p in (1, 28)] == [120, 22]
    assert [schedule(graph, p, weight).makespan for p in (1, 120)] == [512, 62]


def test_curve() -> None:
    graph = depgraph.from_networkx(grid(4, 7))
    found = schedule(graph, workers=11)
    assert "curve" not in vars(found)
    assert [point.workers for point in found.curve] == [1, 2, 4, 8, 11]
    assert [tuple(point)[1:] for point in found.curve] == [
        (one.makespan, one.speedup, one.utilisation) for one in (schedule(graph, p) for p in (1, 2, 4, 8, 11))
    ]
    assert schedule(graph, 1).curve == found.curve[:1]
    assert schedule(graph, 8).curve == found.curve[:4]


def test_more_workers_than_anything_can_use() -> None:
    graph = transformer(2, 20)
    found = schedule(graph, workers=2**31 - 1)
    assert found.makespan == found.span == 35
    assert [point.makespan for point in found.curve[-26:]] == [35] * 26
    assert found.worker.max() + 1 == 40  # the two branches of the GELU
    assert found.utilisation == pytest.approx(740 / 35 / (2**31 - 1))


def test_more_workers_may_take_longer() -> None:
    # One of Graham's anomalies: the third worker takes a long node that delays a more urgent one.
    dag = nx.DiGraph()
    dag.add_nodes_from(range(10))
    dag.add_edges_from([(0, 3), (0, 5), (5, 6), (1, 7), (2, 7), (4, 7), (1, 8), (5, 8), (0, 9), (6, 9), (8, 9)])
    cost = [4, 1, 2, 5, 2, 1, 2, 6, 5, 9]
    found = schedule(depgraph.from_networkx(dag), 4, lambda node: cost[node.id])
    assert [schedule(depgraph.from_networkx(dag), p, lambda node: cost[node.id]).makespan for p in (2, 3)] == [19, 20]
    assert [point.makespan for point in found.curve] == [37, 19, 19]


def test_nothing_to_do() -> None:
    for graph in (nothing(), depgraph.from_networkx(nx.empty_graph(3, nx.DiGraph), [0, 1, 2])):
        found = schedule(graph, 4)
        assert (found.makespan, found.speedup, found.utilisation, found.bounds) == (0, 0.0, 0.0, (0, 0.0))
        assert [point.makespan for point in found.curve] == [0, 0, 0]
        assert found.starts.tolist() == [0] * graph.dag.nodes
        assert found.worker.tolist() == [-1] * graph.dag.nodes


def test_nothing_but_nodes_of_no_weight() -> None:
    graph = depgraph.from_networkx(grid(3, 3))
    for zero in (0, 0.0):
        found = schedule(graph, 2, lambda node, zero=zero: zero)
        assert (found.makespan, found.speedup) == (0, 0.0)
        assert type(found.makespan) is type(zero)
        assert found.worker.tolist() == [-1] * 9
        assert not found.starts.any()


def test_nodes_of_no_weight_run_when_they_are_ready() -> None:
    dag = nx.DiGraph([("a", "free"), ("b", "free"), ("free", "freer"), ("freer", "c")])
    cost = {"a": 2, "b": 5, "free": 0, "freer": 0, "c": 1}
    graph = depgraph.from_networkx(dag)
    found = schedule(graph, 1, lambda node: cost[node.id])
    when = {graph.node(v).id: found.starts[v].item() for v in range(5)}
    assert when == {"b": 0, "a": 5, "free": 7, "freer": 7, "c": 7}
    assert {graph.node(v).id for v in range(5) if found.worker[v] < 0} == {"free", "freer"}


def test_times_are_of_the_type_of_the_weights() -> None:
    graph = recurrent(1, 3)
    whole, broken = schedule(graph), schedule(graph, weight=lambda node: 0.25)
    assert (type(whole.makespan), whole.starts.dtype, type(whole.bounds.lower)) == (int, np.int64, int)
    assert (broken.makespan, broken.starts.dtype, broken.bounds) == (0.75, np.float64, (0.75, 0.75))
    assert (whole.weight, broken.weight) == ("ops", "<lambda>")


@pytest.mark.parametrize("workers", [0, -1, True, np.True_, 2.0, 2.5, float("nan"), "8", None, [8], 2**31, 10**30])
def test_workers_that_are_none(workers: Any) -> None:
    with pytest.raises(GraphError) as caught:
        schedule(recurrent(1, 2), workers)
    assert str(caught.value) == f"workers is a whole number from 1 to 2,147,483,647; got {workers!r}."


def test_any_whole_number_of_workers() -> None:
    assert schedule(recurrent(1, 2), np.int8(3)).workers == 3  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ("grams", "There is no weight 'grams'."),
        (lambda node: float("nan"), "is nan; a weight is a finite number of at least 0."),
        (lambda node: -1, "is -1; a weight is a finite number of at least 0."),
        (lambda node: 1e308, "The weights add up to more than a float can hold; take smaller numbers."),
    ],
)
def test_weights_that_are_none(weight: Any, message: str) -> None:
    with pytest.raises(GraphError, match=message.replace(".", r"\.")):
        schedule(recurrent(2, 2), 2, weight)


def test_no_graph() -> None:
    with pytest.raises(GraphError, match="got a DiGraph"):
        schedule(nx.DiGraph())  # type: ignore[arg-type]
