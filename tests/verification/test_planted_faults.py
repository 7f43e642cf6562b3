"""Faults planted in the recorder: measuring the running model finds each of them."""

import operator

import pytest
import torch
from torch import nn

import depgraph
from depgraph.tracing.recorder import higher_order, memories, recorder, writing
from depgraph.tracing.recorder.geometry import INVERSES
from depgraph.tracing.recorder.memories import Memories
from depgraph.tracing.recorder.nodes import Nodes

aten = torch.ops.aten
N = 4


class Model(nn.Module):
    def __init__(self, run):
        super().__init__()
        self.run = run
        self.register_buffer("held", torch.zeros(N, 2))
        self.top = self.held[:2]
        self.cell = {"now": torch.zeros(N, 2)}
        self.inner = nn.Identity()
        self.inner.register_forward_hook(lambda module, args, out: out + self.cell["now"])

    def forward(self, x):
        return self.run(self, x)


def written(model, x):
    y = torch.zeros_like(x)
    y[1:] = x[:-1] * 2
    return y


def seen_through_a_view(model, x):
    y = x * 1
    part = y[:2]
    before = part.sum()
    y.mul_(x.flip(0))
    return part * before


def carried_to_the_base(model, x):
    y = torch.zeros_like(x)
    y[1].add_(x[2])
    return y


def by_an_attribute(model, x):
    model.held.copy_(x)
    return model.top.flip(0) * 1


def by_a_hook(model, x):
    model.cell["now"] = x.flip(0)
    return model.inner(torch.ones_like(x))


def shifted_in_place(model, x):
    y = x * 1
    return y.sub_(x.roll(1, 0))


def two_results(model, x):
    forth, back = torch.cond(torch.tensor(True), lambda z: (z * 2, z.flip(0) * 2), lambda z: (z * 3, z.flip(0)), (x,))
    return forth * 2 + back.sum() * 0


def assigned_data(model, x):
    y = torch.zeros_like(x)
    z = y + 1
    y.data = x.flip(0)
    return y * z


def put_out(model, x):
    y = torch.zeros_like(x)
    torch.mul(x, x.flip(0), out=y)
    return y


def a_condition(model, x):
    other = x.flip(0)
    return torch.cond(torch.tensor(True), lambda z: z + other, lambda z: z - other, (x * 1,))


def lost_write(patch):
    patch.setattr(Memories, "write", lambda self, memory, geometry, node: None)


def stale_view(patch):
    value = Memories.value

    def stale(self, memory, geometry):
        view = memory.views.get(geometry)
        return view.node if view is not None and view.node is not None else value(self, memory, geometry)

    patch.setattr(Memories, "value", stale)


def base_left_alone(patch):
    patch.setitem(INVERSES, aten.select.int, lambda parent, new, *where: (aten.alias.default, (parent,)))


def attribute_of_its_own(patch):
    read = Memories.read

    def apart(self, tensor):
        if self.find(tensor) is not None and tensor.shape == (2, 2) and tensor.storage_offset() == 0:
            return self._constant(torch.zeros(2, 2))
        return read(self, tensor)

    patch.setattr(Memories, "read", apart)


def nothing_subtracted(patch):
    functional = writing.functional
    patch.setattr(writing, "functional", lambda op: aten.mul.Tensor if op is aten.sub_.Tensor else functional(op))
    settled = Nodes.call

    def call(self, target, args, kwargs, value):
        if target is aten.mul.Tensor and args[0].target is aten.mul.Tensor:
            return settled(self, aten.mul.Tensor, (args[0], 2), kwargs, value)
        return settled(self, target, args, kwargs, value)

    patch.setattr(Nodes, "call", call)


def results_swapped(patch):
    call = Nodes.call

    def swapped(self, target, args, kwargs, value):
        if target is operator.getitem:
            args = (args[0], 1 - args[1])
            value = args[0].meta["val"][args[1]]
        return call(self, target, args, kwargs, value)

    patch.setattr(Nodes, "call", swapped)


def tensors_told_apart_by_object(patch):
    for module in (memories, recorder):
        patch.setattr(module, "memory_of", lambda tensor: (id(tensor), tensor))


def out_ignored(patch):
    write = Memories.write

    def ignored(self, memory, geometry, node):
        if node.target is not aten.mul.Tensor:
            write(self, memory, geometry, node)

    patch.setattr(Memories, "write", ignored)


def closure_lost(patch):
    def lost(bodies):
        for body in bodies:
            for inner in body.lifted.values():
                graph = body.recorder.graph
                with graph.inserting_before(inner):
                    zeros = graph.call_function(aten.zeros.default, (list(inner.meta["val"].shape),))
                zeros.meta = dict(inner.meta)
                inner.replace_all_uses_with(zeros)
                graph.erase_node(inner)
            body.lifted.clear()
        return []

    patch.setattr(higher_order, "_lifted", lost)


FAULTS = {
    "a write is lost": (written, lost_write),
    "a view is stale": (seen_through_a_view, stale_view),
    "a write to a view does not reach its base": (carried_to_the_base, base_left_alone),
    "an attribute that is a view counts as a tensor of its own": (by_an_attribute, attribute_of_its_own),
    "an operation in place is another one": (shifted_in_place, nothing_subtracted),
    "two results are swapped": (two_results, results_swapped),
    "tensors are told apart by their objects": (assigned_data, tensors_told_apart_by_object),
    "what is put out= is ignored": (put_out, out_ignored),
    "what a body closes over is lost": (a_condition, closure_lost),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name, monkeypatch):
    run, plant = FAULTS[name]
    torch.manual_seed(0)
    x = torch.randn(N, 2)

    def verdict():
        graph = depgraph.trace(Model(run), (x,), positions={"x": 0, "output": 0})
        return depgraph.verify(graph, Model(run), (x,))

    assert verdict().sound
    with monkeypatch.context() as patch:
        plant(patch)
        graph = depgraph.trace(Model(run), (x,), positions={"x": 0, "output": 0})
    assert not depgraph.verify(graph, Model(run), (x,)).sound


def test_a_dropped_hook_is_found(monkeypatch):
    x = torch.randn(N, 2)
    model = Model(by_a_hook)
    assert depgraph.verify(depgraph.trace(model, (x,), positions={"x": 0, "output": 0}), model, (x,)).sound
    hooks = dict(model.inner._forward_hooks)
    model.inner._forward_hooks.clear()
    graph = depgraph.trace(model, (x,), positions={"x": 0, "output": 0})
    model.inner._forward_hooks.update(hooks)
    assert not depgraph.verify(graph, model, (x,)).sound
