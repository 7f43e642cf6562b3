"""Operators that take functions: their bodies are recorded, and what these close over is an argument."""

import pytest
import torch
from torch import nn
from torch._higher_order_ops.map import map as hop_map
from torch._higher_order_ops.scan import scan
from torch.nn.attention.flex_attention import flex_attention

import depgraph
from depgraph.tracing.capture import capture

N = 4
X, Y = (torch.randn(N, generator=torch.Generator().manual_seed(seed)) for seed in range(2))


def conditional(x, y):
    return torch.cond(torch.tensor(True), lambda z: z + y.flip(0), lambda z: z - y, (x,))


def in_a_condition(x, y):
    def inner(z):
        return torch.cond(torch.tensor(False), lambda a: a, lambda a: a * y, (z,))

    return torch.cond(torch.tensor(True), inner, lambda z: z + 1, (x,))


def looped(x, y):
    def step(k, z):
        return k + 1, z + y.roll(1, 0)

    return torch.while_loop(lambda k, z: k < 2, step, (torch.tensor(0), x))[1]


def scanned(x, y):
    return scan(lambda carry, row: (carry + row * y[0], carry * row), x[0].clone(), x, dim=0)[1]


def summed(x, y):
    return scan(lambda carry, row: (carry + row, carry + row), y[0].clone(), x, dim=0)[1]


def mapped(x, y):
    return hop_map(lambda row: row * y[1], x)


def attended(x, y):
    q, k = x.reshape(1, 1, N, 1), y.reshape(1, 1, N, 1)
    return flex_attention(q, k, k, score_mod=lambda score, b, h, i, j: torch.where(j <= i, score + y[0], -float("inf")))


ALL, LOWER = torch.ones(N, N, dtype=torch.bool), torch.ones(N, N, dtype=torch.bool).tril()
ROW = torch.zeros(N, N, dtype=torch.bool)
ROW[:, 0] = True
EYE = torch.eye(N, dtype=torch.bool)

#: The model, and which output (row) reads which element of x and of y (column).
MODELS = {
    "cond": (conditional, EYE, EYE.flip(0)),
    "cond in cond": (in_a_condition, EYE, EYE),
    "while_loop": (looped, EYE, EYE.roll(1, 0)),
    "scan": (scanned, LOWER | ROW, torch.tensor([[k > 0, False, False, False] for k in range(N)])),
    "a sum by scan": (summed, LOWER, ROW),
    "map": (mapped, EYE, ROW.roll(1, 1)),
    "flex_attention": (attended, EYE & ~ROW, LOWER),
}


class Runs(nn.Module):
    def __init__(self, run):
        super().__init__()
        self.run = run

    def forward(self, x, y):
        return self.run(x, y)


@pytest.mark.parametrize("name", MODELS)
def test_bodies_and_what_they_close_over(name):
    run, by_x, by_y = MODELS[name]
    axis = 2 if name == "flex_attention" else 0
    graph = depgraph.trace(Runs(run), (X, Y), positions={"x": 0, "y": 0, "output": axis})
    found = [torch.tensor(depgraph.dependence_matrix(graph, source=s, target="output").toarray()).T for s in "xy"]
    for answer, truth in zip(found, (by_x, by_y), strict=True):
        assert not (truth & ~answer).any()
    if name != "flex_attention":
        assert torch.equal(found[0], by_x)
        assert torch.equal(found[1], by_y)


def test_bodies_have_no_constants_of_their_own():
    """A tensor that a body closes over is not frozen in it: the same body would be wrong for other inputs."""
    program = capture(Runs(conditional), (X, Y))
    (node,) = [n for n in program.graph.nodes if str(n.target) == "cond"]
    names = {program.sources[n.name].name for n in node.all_input_nodes if n.op == "placeholder"}
    assert {"x"} <= names
    for module in program.module.modules():
        assert not list(module.buffers(recurse=False)) or module is program.module
