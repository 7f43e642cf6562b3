"""Numbers read off tensors are read by whatever takes them."""

import numpy as np
import pytest
import torch
from torch import nn

import depgraph

T = 5
EVERY = np.ones((T, T), bool)


class Model(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def reached(function):
    graph = depgraph.trace(Model(function).eval(), (torch.randn(1, T, 2),), positions={"x": 1, "output": 1})
    assert graph.warnings == []
    return depgraph.path_lengths(graph) >= 0


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * x.mean().item(),
        lambda x: x - x.mean().item(),
        lambda x: x ** x.abs().mean().item(),
        lambda x: x * (2 * x.mean().item() + 1),
        lambda x: torch.clamp(x, max=x.abs().max().item()),
        lambda x: torch.where(x > x.median().item(), x, 0),
        lambda x: torch.add(x, x, alpha=x.mean().item()),
        lambda x: torch.addcmul(x, x, x, value=x.mean().item()),
        lambda x: x + sum(x[0, :, 0].tolist()),
        lambda x: x + torch.full((T, 1), x.sum().item()),
    ],
    ids=["mul", "sub", "pow", "arithmetic", "clamp", "where", "alpha", "value", "tolist", "full"],
)
def test_a_number_is_read(function):
    assert np.array_equal(reached(function), EVERY)


def test_numbers_made_into_a_tensor_stay_apart():
    mirrored = reached(lambda x: torch.tensor(x[0, :, 0].tolist())[None, :, None].flip(1))
    assert np.array_equal(mirrored, np.eye(T, dtype=bool)[::-1])


def test_a_filling_is_read_where_it_is_taken():
    rows = torch.arange(T)[:, None] < 2
    expected = np.eye(T, dtype=bool)
    expected[:, :2] = True
    # Where the filling is not taken, it may be claimed all the same, but nothing may be missed.
    assert reached(lambda x: x.masked_fill(rows, x.min().item()))[expected].all()


def test_a_known_number_is_not_read():
    assert np.array_equal(reached(lambda x: x * torch.ones(3).sum().item()), np.eye(T, dtype=bool))
