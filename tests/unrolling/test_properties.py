"""Random programs read what their derivatives say, no less, and without kinks no more."""

import numpy as np
import torch
from hypothesis import HealthCheck, given, settings

import depgraph
from tests.jacobian import folded, jacobian, reads
from tests.unrolling.programs import programs

# Drawing a program runs it, and tracing one takes a fraction of a second.
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def followed(program, axes):
    program.double()
    x = torch.randn(program.shape, dtype=torch.float64)
    rank = program(x).ndim
    graph = depgraph.trace(program, (x,), positions={"x": axes, "output": tuple(range(rank))})
    assert graph.warnings == []
    return graph


def derivatives(program, axes, draws):
    return folded(jacobian(program, (torch.randn(program.shape),), draws=draws)["0"], program.shape, axes, None)


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=SLOW)
@given(programs())
def test_programs_without_kinks_read_what_has_a_derivative(case):
    program, axes = case
    graph = followed(program, axes)
    reads(graph, "x", "output", derivatives(program, axes, draws=3))


@settings(max_examples=32, deadline=None, derandomize=True, suppress_health_check=SLOW)
@given(programs(kinks=True))
def test_programs_with_kinks_read_whatever_has_a_derivative(case):
    program, axes = case
    graph = followed(program, axes)
    reads(graph, "x", "output", derivatives(program, axes, draws=8), exact=False)


@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=SLOW)
@given(programs(longest=5))
def test_every_step_is_read_in_order(case):
    """Longest and shortest paths agree with the graph's own edges."""
    program, axes = case
    graph = followed(program, axes)
    dag = graph.to_networkx()
    assert all(u < v for u, v in dag.edges)
    span = np.zeros(graph.dag.nodes, int)
    for v in sorted(dag):
        if v >= graph.dag.inputs:
            span[v] = 1 + max((span[u] for u in dag.predecessors(v)), default=0)
            assert dag.in_degree(v) > 0
    assert depgraph.critical_path(graph).length == span.max(initial=0)
