"""Seconds, measured under clocks of our own: once, the shortest of some runs, and nothing that is no time."""

import pytest
import torch
from torch import nn

import depgraph
from depgraph.errors import GraphError
from tests.unrolling.test_costs import Module, X, costs_of


@pytest.fixture
def graph():
    return depgraph.trace(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)).eval(), (X,), positions={0: 1})


def test_measured_once_shared_out_over_nodes(graph):
    steps = iter([0.0, 0.5, 3.0, 3.25, 5.0, 5.5, 7.0, 8.0, 9.0, 11.0] * 3)
    graph.find_costs.clock = lambda: next(steps)
    seconds = graph.costs("seconds")
    assert seconds.tolist() == [0] * 6 + [0.25 / 6] * 18
    assert next(steps, None) is None
    assert graph.costs("seconds").tolist() == seconds.tolist()
    assert depgraph.critical_path(graph, "seconds").length == 0.125


@pytest.mark.parametrize("step", [-1.0, float("nan"), float("inf")])
def test_what_is_no_time(graph, step):
    times = iter([0.0, step] * 100)
    graph.find_costs.clock = lambda: next(times)
    with pytest.raises(GraphError, match=f"was measured to take {step} seconds; a time is a finite number"):
        depgraph.parallelism(graph, "seconds")


def test_a_short_call_is_measured_more_often(graph):
    now = [0]

    def clock():
        now[0] += 1
        return now[0] * 1e-5

    graph.find_costs.clock = clock
    assert graph.costs("seconds")[-1] == pytest.approx(1e-5 / 6)
    assert now[0] == 3 * 2 * 100


def test_recurrent_layers_by_what_they_compute():
    graph = depgraph.trace(nn.LSTM(8, 3, num_layers=2, batch_first=True).eval(), (X,))
    graph.find_costs.clock = iter(range(100)).__next__
    (_, first), (_, second) = costs_of(graph, "seconds")
    assert first + second == pytest.approx(1)
    assert first / second == pytest.approx((8 + 3) / (3 + 3))


def test_random_numbers_go_on():
    graph = depgraph.trace(nn.Sequential(nn.Linear(8, 8), nn.Dropout()).train(), (X,), positions={0: 1})
    before = torch.get_rng_state()
    assert graph.costs("seconds").sum() > 0
    assert torch.equal(torch.get_rng_state(), before)


def test_buffers_that_are_written_to_stay():
    model = nn.BatchNorm1d(6).train()
    before = model.running_mean.clone()
    assert depgraph.trace(model, (X,)).costs("seconds").sum() > 0
    assert torch.equal(model.running_mean, before)
    assert model.num_batches_tracked == 0


def test_nothing_can_be_timed_without_data():
    with torch.device("meta"):
        model, x = nn.Linear(4, 4), torch.zeros(3, 4)
    graph = depgraph.trace(model, (x,))
    with pytest.raises(GraphError, match=r"on the meta device, where nothing can be timed.*'flops' or 'bytes'"):
        depgraph.critical_path(graph, "seconds")
    assert graph.costs("flops").sum() == 2 * 3 * 4 * 4


def test_what_does_not_run():
    model = Module(lambda self, x: x.relu())
    graph = depgraph.trace(model, (X,), positions={0: 1})
    (node,) = [n for n in graph.find_costs.program.graph.nodes if n.op == "call_function"]
    node.args = ("x",)
    with pytest.raises(GraphError, match=r"test_timing.py:\d+: aten.relu.default cannot be timed: "):
        graph.costs("seconds")
