"""Operators that take whole subgraphs: conditions, loops, scans and wrappers."""

import numpy as np
import torch
from torch import nn
from torch._higher_order_ops import associative_scan, scan
from torch._higher_order_ops import map as map_along
from torch.utils.checkpoint import checkpoint

import depgraph
from tests.jacobian import Apply

R = torch.randn
N = 6


def traced(function, *args, positions=None):
    args = args or (R(N, 2),)
    return depgraph.trace(Apply(function), args, positions=positions or {0: 0, "output": 0})


def reached(graph, **options):
    return depgraph.path_lengths(graph, **options) >= 0


def eye(n=N):
    return np.eye(n, dtype=bool)


def test_a_condition_that_is_known():
    class Switch(nn.Module):
        def __init__(self, on):
            super().__init__()
            self.register_buffer("on", torch.tensor(on))

        def forward(self, x):
            return torch.cond(self.on, lambda x: x * 2, lambda x: x.flip(0).sin().cos(), (x,))

    for on, pattern, length in [(True, eye(), 1), (False, eye()[::-1], 2)]:
        graph = depgraph.trace(Switch(on), (R(N, 2),), positions={"x": 0, "output": 0})
        assert np.array_equal(reached(graph), pattern)
        assert depgraph.critical_path(graph).length == length


def test_a_condition_by_shape():
    graph = traced(lambda x: torch.cond(torch.tensor(x.shape[0] > 4), lambda x: x * 2, lambda x: x.flip(0) * 1.0, (x,)))
    assert np.array_equal(reached(graph), eye())


def test_a_condition_that_is_not_known():
    graph = traced(
        lambda x, c: torch.cond(c > 0, lambda x: x * 2, lambda x: x.flip(0) * 1.0, (x,)),
        *(R(N, 2), torch.tensor(1)),
        positions={0: 0, 1: (), "output": 0},
    )
    assert np.array_equal(reached(graph), eye() | eye()[::-1])
    assert reached(graph, source=1).all()
    assert graph.warnings == []


def test_a_condition_on_what_is_tracked():
    graph = traced(lambda x: torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x * 3, (x,)))
    assert reached(graph).all()


def test_a_loop_that_counts():
    def rolled(x):
        return torch.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a.roll(1, 0) + 1), (torch.tensor(0), x))[1]

    graph = traced(rolled)
    assert np.array_equal(reached(graph), np.roll(eye(), 3, 1))
    assert depgraph.critical_path(graph).length == 3
    assert graph.warnings == []


def test_a_loop_that_ends_by_values():
    def halved(x):
        return torch.while_loop(lambda a: a.sum() > 1, lambda a: (a / 2,), (x,))[0]

    graph = traced(halved)
    assert reached(graph).all()
    (warning,) = graph.warnings
    assert "while_loop ends by values that are not known" in warning
    assert "test_higher_order.py:" in warning


def test_a_scan():
    def decayed(x):
        return scan(lambda h, x: (h * 0.5 + x, (h * x).clone()), torch.zeros(2), x)

    graph = depgraph.trace(Apply(decayed), (R(N, 2),), positions={0: 0, "output.0": (), "output.1": 0})
    expected = np.triu(np.ones((N, N), bool))
    expected[0, 0] = False  # times the state before it, which is a known zero
    assert np.array_equal(reached(graph, target="output.1"), expected)
    assert reached(graph, target="output.0").all()
    # A product and a sum for every step but the first, which has nothing to decay.
    assert depgraph.critical_path(graph).length == 1 + 2 * (N - 1)


def test_an_associative_scan():
    graph = traced(lambda x: associative_scan(lambda a, b: a + b, x, dim=0, combine_mode="generic"))
    assert np.array_equal(reached(graph), np.triu(np.ones((N, N), bool)))
    assert depgraph.critical_path(graph).length < N - 1


def test_a_function_mapped_along_an_axis():
    graph = traced(lambda x: map_along(lambda row, first: row.cumsum(0) * first, x, x[0] + 1.0))
    expected = eye()
    expected[0] = True
    assert np.array_equal(reached(graph), expected)


def test_checkpoints():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            return checkpoint(self.layer, x, use_reentrant=False).sin()

    graph = depgraph.trace(Model(), (R(N, 2),), positions={"x": 0, "output": 0})
    assert np.array_equal(reached(graph), eye())
    assert [operation.name for operation in graph.operations] == ["linear", "sin"]
    assert graph.unused_parameters == []


def test_regions_of_another_mode():
    def regions(x):
        with torch.no_grad():
            y = x.cumsum(0)
        with torch.autocast("cpu"):
            return (y @ torch.ones(2, 2)).float()

    graph = traced(regions)
    assert np.array_equal(reached(graph), np.triu(np.ones((N, N), bool)))
    assert [operation.name for operation in graph.operations] == ["cumsum", "matmul"]
    assert graph.warnings == []


def test_vmap_and_grad_are_gone_before():
    graph = traced(torch.func.vmap(lambda row: row.softmax(0) * row.sum()))
    assert np.array_equal(reached(graph), eye())
    graph = traced(torch.func.grad(lambda x: (x[1:] * x[:-1]).sum()))
    near = abs(np.arange(N)[:, None] - np.arange(N)) == 1
    assert np.array_equal(reached(graph), near)
