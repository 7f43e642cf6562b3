"""What Python computes from the values of tensors reads those tensors, even where exporting refuses."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import depgraph

N = 4


class Model(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def moving_average(x):
    mean, found = 0.0, []
    for t in range(N):
        mean = 0.9 * mean + 0.1 * float(x[:, t].mean())
        found.append(x[:, t] - mean)
    return torch.stack(found, 1)


def written(x):
    y = torch.zeros_like(x)
    y[:, 0] = float(x[:, 3].sum())
    y.mul_(float(x[:, 1].sum()))
    return y + 1


def lengthened(x):
    steps = int(x[:, 0].abs().sum()) + 1
    return x * (1.0 / steps) + (0 if x.sum() < 1e9 else 1)


EXACT = {
    "largest": lambda x: x / float(x.abs().max()),
    "limited": lambda x: x / max(x.abs().max().item(), 1e-5),
    "beyond its limit": lambda x: x * max(x[:, 1].norm().item() - 2.5, 0.001) if x.sum() < 1e9 else x,
    "cut": lambda x: x * min(1.0, 1.0 / (float(x.norm()) + 1e-6)),
    "root": lambda x: x * math.sqrt(abs(float(x[:, 1].sum()))),
    "quantised": lambda x: torch.round(x / (float(x.abs().max()) / 127)) * (float(x.abs().max()) / 127),
    "integer": lambda x: x * int(x[:, 0].sum() * 100),
    "steps": lengthened,
    "rounded": lambda x: x * round(float(x[:, 0].sum()), 2),
    "average": moving_average,
    "one each": lambda x: torch.stack([x[:, t] * float(x[:, : t + 1].mean()) for t in range(N)], 1),
    "in place": written,
    "filled": lambda x: x[:, :1] + torch.full((1, N, 2), float(x[:, 1].max())),
    "clamped": lambda x: x.clamp(max=float(x[:, :2].mean())),
    "masked": lambda x: x.masked_fill(x > 0, float(x[:, 0].min())),
    "one place": lambda x: x.index_fill(1, torch.tensor([2]), float(x[:, 0].sum())),
    "padded": lambda x: F.pad(x, (0, 0, 1, 0), value=float(x[:, 2].max()))[:, :N],
    "power": lambda x: x.abs() ** float(x[:, 0].abs().sum()),
    "slope": lambda x: F.leaky_relu(x, float(x[:, 0].abs().mean())),
    "factor": lambda x: torch.add(x, x.roll(1, 1), alpha=float(x[:, 2].sum())),
    "epsilon": lambda x: F.layer_norm(x, (2,), eps=float(x[:, 0].abs().mean())),
    "not opened": lambda x: F.smooth_l1_loss(x, x.flip(1), reduction="none", beta=float(x[:, 0].abs().mean()) + 0.1),
    "spaced": lambda x: x * torch.linspace(0, float(x[:, 0].abs().sum()), N, dtype=x.dtype)[:, None],
    "literal": lambda x: x * torch.tensor(float(x[:, 1].sum())),
    "an array": lambda x: x + torch.as_tensor(x.numpy().mean()),
    "a table": lambda x: x + torch.from_numpy(np.sin(np.arange(4.0)))[:, None] if x.sum() < 1e9 else x,
}
MORE = {
    "an array, place by place": lambda x: torch.from_numpy(np.cumsum(x.detach().numpy(), 1)),
    "a list": lambda x: x * torch.tensor([float(x[:, t].sum()) for t in range(N)], dtype=x.dtype)[:, None],
}


def compared(function):
    """Return what is said to be read, and what trying shows."""
    torch.manual_seed(0)
    x = torch.randn(1, N, 2, dtype=torch.float64)
    graph = depgraph.trace(Model(function), (x,), positions={"x": 1, "output": 1})
    shown = np.zeros((N, N), bool)
    for _ in range(3):
        x = torch.randn_like(x)
        before = function(x.clone())
        for i in range(N):
            for by in (0.37, -0.5, 50.0):
                moved = x.clone()
                moved[:, i, torch.randint(2, ())] += by
                shown[i] |= (function(moved) != before).any(0).any(-1).numpy()
    return depgraph.path_lengths(graph) >= 0, shown


@pytest.mark.parametrize("name", EXACT)
def test_what_it_reads(name):
    said, shown = compared(EXACT[name])
    assert np.array_equal(said, shown)


@pytest.mark.parametrize("name", MORE)
def test_all_of_it_is_read_at_least(name):
    said, shown = compared(MORE[name])
    assert not (shown & ~said).any()


def test_the_number_is_no_operation_of_its_own():
    x = torch.randn(1, N, 2)
    graph = depgraph.trace(Model(EXACT["largest"]), (x,), positions={"x": 1})
    assert depgraph.parallelism(graph).work == N + 1 + N  # abs, max, divisions
    assert depgraph.path_lengths(graph)[0].tolist() == [1, 3, 3, 3]


def test_a_number_from_an_input_that_is_held():
    class Scaled(nn.Module):
        def forward(self, x, scale):
            return x * float(scale) if x.sum() < 1e9 else x

    given = torch.ones(1, N, 2), torch.tensor(0.0)
    positions = {"x": 1, "output": 1}
    free = depgraph.trace(Scaled(), given, positions=positions)
    assert (np.diag(depgraph.path_lengths(free)) == 1).all()
    held = depgraph.trace(Scaled(), given, positions=positions, known=("scale",))
    assert (depgraph.path_lengths(held) == -1).all()
