"""What a rewritten graph costs is what the model costs: as many rows as there are, and no operation that it lacks."""

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import depgraph
from depgraph.tracing.rows.widening import Widened
from depgraph.unrolling import trace
from tests.tracing.rows.idioms import FORMS, example, model

# The order matters to nothing there: what only it is made of is computed for nothing, and left out.
UNSORTED = {"sorted", "sorted_back"}
# What picks rows, finds out where they are or puts them in order: known places are data moved, and cost nothing.
MOVING = {"where", "nonzero", "index", "index_select", "sort", "argsort", "histc", "cumsum", "index_put"}


def traced(form):
    torch.manual_seed(1)
    tested = model(form, ["linear", "relu"])
    x = example(tested)
    return tested, x, depgraph.trace(tested, (x,), positions={0: 0, "output": 0})


def costs_by_line(graph, weight):
    """Return what each operator costs on each line."""
    costs, found = graph.costs(weight), {}
    for operation in graph.operations:
        key = operation.name, operation.module, operation.source
        found[key] = found.get(key, 0) + int(costs[operation.start : operation.stop].sum())
    return {key: cost for key, cost in found.items() if cost}


@pytest.mark.parametrize("form", sorted(FORMS.keys() - UNSORTED))
def test_flops_are_those_that_pytorch_counts(form):
    tested, x, graph = traced(form)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        tested(x)
    assert graph.costs("flops").sum() == counter.get_total_flops() > 0


@pytest.mark.parametrize("form", sorted(FORMS))
@pytest.mark.parametrize("weight", ["flops", "bytes"])
def test_each_operation_costs_what_it_did(form, weight, monkeypatch):
    _, _, graph = traced(form)
    now = costs_by_line(graph, weight)
    monkeypatch.setattr(trace, "widened", lambda graph, results, told: Widened(graph, list(results), 0))
    _, _, graph = traced(form)
    before = costs_by_line(graph, weight)
    assert now.keys() <= before.keys()
    gone = before.keys() - now.keys()
    if form not in UNSORTED:
        assert {name for name, _, _ in gone} <= (MOVING | {"sum", "gt"} if form == "hit" else MOVING)
    for key, cost in now.items():  # on one line several calls of an operator may stand, one of which moves data
        assert cost == before[key] or (key[0] in MOVING and cost < before[key]) or form in UNSORTED


@pytest.mark.parametrize("form", ["added", "hit", "grouped", "sorted"])
def test_other_weights(form):
    _, _, graph = traced(form)
    for weight in ("seconds", "scalars", "contractions"):
        found = depgraph.parallelism(graph, weight)
        assert 0 < found.span <= found.work
    assert np.isfinite(graph.costs("seconds")).all()


@pytest.mark.parametrize("form", sorted(FORMS))
def test_operations_go_by_the_names_of_the_model(form, monkeypatch):
    _, _, graph = traced(form)
    monkeypatch.setattr(trace, "widened", lambda graph, results, told: Widened(graph, list(results), 0))
    _, _, before = traced(form)
    assert {(o.name, o.module, o.source) for o in graph.operations} <= {
        (o.name, o.module, o.source) for o in before.operations
    }


@pytest.mark.parametrize("hits", [1, 2, 3])
def test_an_expert_that_no_row_is_sent_to_costs_nothing(hits):
    tested, x, _ = traced("hit")
    with torch.no_grad():
        tested.router.bias[:hits] += 1000
    if hits == 1:  # two are chosen for each
        tested.router.bias.data[1] += 500
    graph = depgraph.trace(tested, (x,), positions={0: 0, "output": 0})
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        tested(x)
    assert graph.costs("flops").sum() == counter.get_total_flops()
