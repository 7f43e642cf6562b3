"""Models that change something while they run are afterwards as they were, bit for bit."""

import time
from contextlib import nullcontext

import pytest
import torch
from torch import nn

import depgraph
from depgraph.tracing.restoring import kept
from depgraph.tracing.settings import tracing_settings
from depgraph.tracing.writes import Writes
from tests.tracing.nasty import MODELS, Nasty
from tests.tracing.snapshots import difference, snapshot

pytestmark = pytest.mark.filterwarnings("ignore:Sparse ... tensor support is in beta", "ignore:Lazy modules are a new")


def model_of(kind, fail=False):
    torch.manual_seed(0)
    return kind(fail)


def failing(fail):
    return pytest.raises(ValueError, match="after the damage") if fail else nullcontext()


@pytest.mark.parametrize("fail", [False, True], ids=["returns", "raises"])
@pytest.mark.parametrize("gradients", [False, True], ids=["no_grad", "grad"])
@pytest.mark.parametrize("kind", MODELS)
def test_put_back(kind, gradients, fail):
    model, x = model_of(kind, fail), torch.randn(3, 4)
    before = snapshot(model)
    with failing(fail), torch.set_grad_enabled(gradients), kept(model, x) as keeper, Writes(keeper):
        model(x)
    assert difference(before, snapshot(model)) == ([], [])
    assert before == snapshot(model)


@pytest.mark.parametrize("kind", MODELS)
def test_the_snapshot_sees_the_damage(kind):
    model = model_of(kind)
    before = snapshot(model)
    model(torch.randn(3, 4))
    assert before != snapshot(model)


@pytest.mark.parametrize("kind", MODELS)
def test_put_back_again_and_again(kind):
    model, x = model_of(kind), torch.randn(3, 4)
    before = snapshot(model)
    with torch.no_grad(), kept(model) as keeper:
        for _ in range(3):
            with Writes(keeper):
                model(x)
            keeper.put_back()
            assert before == snapshot(model)


@pytest.mark.parametrize("fail", [False, True], ids=["returns", "raises"])
@pytest.mark.parametrize("kind", MODELS)
def test_traced_and_verified(kind, fail):
    """What `depgraph.trace` and `depgraph.verify` leave behind: nothing."""
    model, x = model_of(kind, fail), torch.randn(3, 4)
    before, given = snapshot(model), snapshot(x)
    graph = None
    with pytest.raises(depgraph.TracingError, match="after the damage") if fail else nullcontext():
        graph = depgraph.trace(model, (x,), positions={"x": 0, "output": 0})
    assert difference(before, snapshot(model)) == ([], [])
    assert before == snapshot(model)
    graph = graph or depgraph.trace(nn.Linear(4, 4), (x,))
    with pytest.raises(depgraph.DepgraphError) if fail else nullcontext():
        depgraph.verify(graph, model, (x,), draws=2)
    assert difference(before, snapshot(model)) == ([], [])
    assert before == snapshot(model)
    assert given == snapshot(x)


class Dense(nn.Module):
    """Reads everything, under the name that the others give it."""

    def forward(self, x):
        return x + x.sum()


@pytest.mark.parametrize("fail", [False, True], ids=["returns", "raises"])
@pytest.mark.parametrize("kind", MODELS)
def test_verified(kind, fail):
    """The same of `depgraph.verify` alone."""
    model, x = model_of(kind, fail), torch.randn(3, 4)
    before, given = snapshot(model), snapshot(x)
    graph = depgraph.trace(Dense(), (x,), positions={"x": 0, "output": 0})
    with pytest.raises(depgraph.TracingError, match="after the damage") if fail else nullcontext():
        verdict = depgraph.verify(graph, model, (x,), draws=2)
        assert verdict.sound, verdict
    assert difference(before, snapshot(model)) == ([], [])
    assert before == snapshot(model)
    assert given == snapshot(x)


def test_tensors_that_are_reached():
    hidden, shared = torch.zeros(2), nn.Parameter(torch.ones(3))
    model = nn.Sequential(nn.Linear(2, 2))
    model.extra, model.function = [shared, {"again": shared}], lambda: hidden
    model[0].bias.grad = torch.ones(2)
    with kept(model) as keeper:
        found = {id(tensor) for tensor in keeper.tensors}
        assert len(keeper.tensors) == len(found)
        assert found == {id(t) for t in (*model.parameters(), hidden, shared, model[0].bias.grad)}


def test_memory_that_is_not_reached():
    outside = torch.zeros(3)
    with kept(nn.Linear(2, 2)) as keeper, Writes(keeper):
        outside.add_(1)
        torch.zeros(3).add_(1)
    assert outside.tolist() == [0, 0, 0]


def test_copies_of_memories_that_are_gone_are_dropped():
    with kept() as keeper, Writes(keeper):
        for _ in range(1000):
            torch.zeros(10).add_(1)
    assert len(keeper._copies) < 200


def test_meta_tensors():
    model = nn.BatchNorm1d(4).to("meta")
    with kept(model) as keeper, Writes(keeper), torch.no_grad():
        before = [id(t) for t in keeper.tensors]
        model.weight.data = torch.empty(7, device="meta")
        model._parameters["bias"] = nn.Parameter(torch.zeros(4))
        model.running_mean.add_(1)
    assert model.weight.shape == (4,)
    assert model.bias.is_meta
    assert {id(t) for t in (*model.parameters(), *model.buffers())} == set(before)


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_quantised_and_opaque_tensors():
    quantised = torch.quantize_per_tensor(torch.tensor([1.0, 2.0]), 0.1, 0, torch.quint8)
    opaque = torch.ones(3).to_mkldnn()
    with kept(quantised, opaque) as keeper, Writes(keeper):
        quantised.copy_(torch.zeros(2))
        opaque.mul_(2)
    assert quantised.dequantize().tolist() == [1, 2]
    assert opaque.to_dense().tolist() == [1, 1, 1]


def test_an_object_that_refuses_keeps_nothing_else_from_being_put_back():
    model = Nasty()
    model.first, model.text, model.last = [1], bytearray(b"ab"), [2]

    def run():
        with kept(model):
            model.first.clear()
            model.text.append(1)
            model.last.clear()
            return memoryview(model.text)  # as long as this is there, the size cannot change

    with pytest.raises(BufferError):
        run()
    assert (model.first, model.last) == ([1], [2])


def test_cost():
    layer = nn.TransformerEncoderLayer(32, 2, 64, batch_first=True)
    small, large = nn.Linear(2, 2), nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
    times = []
    for model in (small, large):
        best = min(_seconds(model) for _ in range(5))
        times.append(best)
    assert times[0] < 0.002
    assert times[1] < 0.1


def _seconds(model):
    start = time.perf_counter()
    with kept(model):
        pass
    return time.perf_counter() - start


def test_settings_are_left_alone():
    state = torch.get_rng_state()
    with tracing_settings(), kept(Nasty()):
        torch.rand(3)
    assert torch.equal(torch.get_rng_state(), state)
