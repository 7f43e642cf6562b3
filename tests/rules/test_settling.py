"""What comes out the same whatever an unknown is, because something very low or high was added to it."""

import pytest
import torch
import torch.nn.functional as F

import depgraph
from tests.jacobian import Apply, changes, check

R = torch.randn
# Rows with all, some, none and one element left.
MASK = torch.tensor([[1, 1, 1], [0, 1, 1], [0, 0, 0], [1, 0, 0]]).bool()
LOW = torch.where(MASK, 0.0, -1e9).double()

FUNCTIONS = {
    "relu": F.relu,
    "relu6": F.relu6,
    "softplus": F.softplus,
    "elu": F.elu,
    "selu": F.selu,
    "celu": F.celu,
    "gelu": F.gelu,
    "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "mish": F.mish,
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
    "hardtanh": F.hardtanh,
    "clamp": lambda x: x.clamp(min=-3.0),
    "clamp both": lambda x: x.clamp(-3.0, 5.0),
    "maximum": lambda x: torch.maximum(x, torch.tensor(-2.0).double()),
    "threshold": lambda x: F.threshold(x, -5.0, 2.0),
    "tanh": torch.tanh,
    "erf": torch.erf,
    "erfc": torch.erfc,
    "sigmoid": torch.sigmoid,
    "exp": torch.exp,
    "expm1": torch.expm1,
    "sign": torch.sign,
    "compared": lambda x: torch.where(x > 0, x.sin(), 4.0),
    "compared with another": lambda x: (x >= torch.arange(3).double()) * x.sin(),
    "by hand": lambda x: 1 / (1 + torch.exp(-x)),
}
DISTANCES = (-1e9, -1e4, torch.finfo(torch.float32).min)


@pytest.mark.parametrize("low", DISTANCES)
def test_what_is_far_below_makes_no_difference_to_what_saturates(low):
    hidden = torch.tensor([0.0, low, 0.0]).double()
    graph = depgraph.trace(
        Apply(lambda x: [f(x + hidden) for f in FUNCTIONS.values()]),
        (R(2, 3).double(),),
        positions={0: 1} | {f"output.{k}": 1 for k in range(len(FUNCTIONS))},
    )
    for number, name in enumerate(FUNCTIONS):
        found = depgraph.path_lengths(graph, target=f"output.{number}") >= 0
        assert found.tolist() == [[True, False, False], [False, False, False], [False, False, True]], name


def test_what_saturates_above():
    high = torch.tensor([0.0, 1e9, 0.0]).double()
    graph = depgraph.trace(
        Apply(lambda x: [f(x + high) for f in (torch.sigmoid, F.relu6, torch.sign, F.hardtanh, F.softplus, F.gelu)]),
        (R(2, 3).double(),),
        positions={0: 1} | {f"output.{k}": 1 for k in range(6)},
    )
    found = [bool(depgraph.path_lengths(graph, target=f"output.{k}")[1, 1] >= 0) for k in range(6)]
    assert found == [False, False, False, False, True, True]


def test_what_does_not_saturate_is_read():
    check(
        lambda x: {
            "leaky": F.leaky_relu(x + LOW),
            "bounds as far": (x + LOW).clamp(min=-2e9),
            "of any size": F.relu((x + LOW) * x.sin()),
            "around the bound": torch.maximum(x + LOW, torch.tensor(-1e9).double()),
            "large data": F.relu(x * 1e5 - 1e4),
        },
        R(4, 3),
        draws=12,
    )


def test_what_is_lower_than_data_may_be_is_read():
    check(
        lambda x: {"relu": F.relu(x - 200), "sign": torch.sign(x - 4000), "clamp": x.clamp(min=500.0)},
        R(4),
        oracle=changes,
        draws=40,
        draw=lambda t: torch.randn_like(t) * 4000,
    )


def test_scores_that_were_cut_off_are_causal():
    later = torch.ones(4, 4).triu(1).double() * -1e9

    def attend(x):
        return F.relu(x @ x.mT + later) @ x, F.gelu(x @ x.mT + later) @ x

    graph = depgraph.trace(Apply(attend), (R(1, 4, 8).double(),), positions={0: 1, "output.0": 1, "output.1": 1})
    for name in graph.outputs:
        assert ((depgraph.path_lengths(graph, target=name) >= 0) == torch.ones(4, 4).triu().bool().numpy()).all()
