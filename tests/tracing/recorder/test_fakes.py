"""Without data, the same is recorded as with it, as long as no values are needed that nobody knows."""

import pytest
import torch
from torch import nn

from depgraph.errors import DepgraphError
from depgraph.tracing.capture import capture
from depgraph.tracing.recorder import fakes

X = torch.randn(3, 4)


class Tied(nn.Module):
    """Parameters and buffers that show parts of one memory, one of them in another order."""

    def __init__(self):
        super().__init__()
        table = torch.randn(4, 4)
        self.whole, self.turned, self.corner = table, table.t(), table[1:3, ::2]
        self.weight = nn.Parameter(table)

    def forward(self, x):
        self.corner += 1
        return x @ self.weight + self.turned[0] + self.whole.diagonal()


class Cached(nn.Module):
    """Views of a buffer that operators of all kinds make are written to."""

    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(6))

    def forward(self, x):
        first, second, third = self.cache.chunk(3)
        first.add_(x[0, 0])
        self.cache.view(3, 2)[1].mul_(x[1, 1])
        self.cache.unfold(0, 2, 2).select(0, 2).copy_(x[2, :2])
        return second * third, self.cache


class Bits(nn.Module):
    """One memory, read as numbers of two types."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.randn(4))
        self.register_buffer("bits", self.table.view(torch.int32))

    def forward(self, x):
        return x * self.bits + self.table


class Masked(nn.Module):
    """A mask whose values decide what is read, and a number that does."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.tensor([1.0, 0.0, 1.0]))
        self.register_buffer("count", torch.tensor(2))

    def forward(self, x):
        return x[self.mask > 0][: self.count.item()]


class Grad(nn.Module):
    def forward(self, x, y):
        with torch.enable_grad():
            z = x + y
            (g,) = torch.autograd.grad((z * y).sum(), x)
        return g, y.requires_grad


def form(program):
    return [
        (str(node.target), node.args, tuple(getattr(node.meta["val"], "shape", ())))
        for node in program.graph.nodes
        if node.op == "call_function"
    ]


def twice(x):
    return x, x


CASES = {
    "linear": (nn.Linear(4, 2), (X,)),
    "transformer": (nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval(), (X,)),
    "lstm": (nn.LSTM(4, 3), (X,)),
    "tied": (Tied(), (X,)),
    "cached": (Cached(), (X,)),
    "bits": (Bits(), (X,)),
    "masked": (Masked(), (X,)),
    "the same twice": (Grad(), twice(X.clone().requires_grad_())),
    "one memory, two tensors": (Grad(), (X.clone().requires_grad_(), X)),
    "batch norm": (nn.BatchNorm1d(4), (X,)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_same_graph_with_and_without_data(name):
    model, args = CASES[name]
    with_data, without = capture(model, args), capture(model, args, fake=True)
    assert [str(x) for x in form(with_data)] == [str(x) for x in form(without)]
    assert with_data.outputs[0].name == without.outputs[0].name


def test_a_tensor_and_its_detached_self_are_two():
    """What is asked of one of them, here a gradient, is not asked of the other, though both lie in one memory."""
    x = X.clone().requires_grad_()
    seen = []

    class Asked(nn.Module):
        def forward(self, x, y):
            seen.append((x.requires_grad, y.requires_grad))
            return x + y

    capture(Asked(), (x, x.detach()), fake=True)
    assert seen[-1] == (True, False)


def test_values_that_are_not_known_are_asked_for(monkeypatch):
    monkeypatch.setattr(fakes, "LARGEST", 2)
    with pytest.raises(DepgraphError):
        capture(Masked(), (X,), fake=True)
