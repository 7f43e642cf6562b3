"""An infinity scaled by what is certain to be positive stays what it is."""

import pytest
import torch
import torch.nn.functional as F

import depgraph
from depgraph.rules.signs import positive
from depgraph.rules.values import FIRST, KNOWN, Value, generic, known

R = torch.randn
INF = float("inf")
ANY = generic((2,), torch.float32)
SURE = Value(torch.tensor([KNOWN, FIRST]), torch.tensor([1.0, 0.0]), torch.float32, positive=True)
ONES, SIGNS = known(torch.ones(2)), known(torch.tensor([1.0, -1.0]))


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "expected"),
    [
        ("exp", (ANY,), {}, True),
        ("neg", (SURE,), {}, False),
        ("pow", (ANY, 2), {}, True),
        ("pow", (ANY, 3), {}, False),
        ("pow", (SURE, 3), {}, True),
        ("pow", (2.0, SURE), {}, True),
        ("pow", (-2.0, SURE), {}, False),
        ("add", (SURE, ONES), {}, True),
        ("add", (SURE, 1e-6), {}, True),
        ("add", (SURE, -1e-6), {}, False),
        ("add", (SURE, ANY), {}, False),
        ("add", (SURE, SIGNS), {}, False),
        ("add", (SURE, SURE), {"alpha": -1}, False),
        ("sub", (SURE, SURE), {}, False),
        ("mul", (SURE, -2), {}, False),
        ("div", (ONES, SURE), {}, True),
        ("maximum", (ANY, ONES), {}, True),
        ("minimum", (ANY, ONES), {}, False),
        ("clamp", (ANY, 0.1), {}, True),
        ("clamp", (ANY, 0.1, -1.0), {}, False),
        ("clamp", (SURE,), {"max": -1.0}, False),
        ("clamp_min", (ANY, 0), {}, False),
        ("cat", ([SURE, ONES], 0), {}, True),
        ("cat", ([SURE, SIGNS], 0), {}, False),
        ("sum", (SURE, [0]), {}, True),
        ("expand", (SURE, [2, -1]), {}, True),
    ],
)
def test_what_is_positive(name, args, kwargs, expected):
    assert positive(name, args, kwargs) == expected


class Scaled(torch.nn.Module):
    """Attention that scales its scores once they are masked."""

    def __init__(self, scale):
        super().__init__()
        self.scale = scale
        self.p = torch.nn.Parameter(torch.tensor(0.3))

    def forward(self, x):
        scores = (x @ x.mT).masked_fill(torch.ones(4, 4).triu(1).bool(), -INF)
        return self.scale(scores, self.p, x).softmax(-1) @ x


KEEP_THE_SIGN = {
    "exponential": lambda s, p, x: s * p.exp(),
    "the other way": lambda s, p, x: (p.clamp(max=4.6).exp() + 1e-6) * s,
    "softplus": lambda s, p, x: s / F.softplus(p),
    "bounded below": lambda s, p, x: s / p.clamp(min=0.01),
    "raised": lambda s, p, x: s / torch.maximum(p, torch.tensor(0.01)),
    "root of squares": lambda s, p, x: s / (p.square() + p**2).sqrt().reshape(1, 1, 1),
    "own size": lambda s, p, x: s / x.norm(dim=-1, keepdim=True),
}
MAY_TURN_IT = {
    "parameter": lambda s, p, x: s / p,
    "difference": lambda s, p, x: s * (p.exp() - 1.5),
    "negative factor": lambda s, p, x: s * (p.exp() * -2.0),
    "other side": lambda s, p, x: s * p.exp().clamp(max=-1.0),
    "data": lambda s, p, x: s * x.sum(-1, keepdim=True),
}


@pytest.mark.parametrize("scale", KEEP_THE_SIGN)
def test_an_infinity_scaled_by_something_positive_masks(scale):
    graph = depgraph.trace(Scaled(KEEP_THE_SIGN[scale]), (R(1, 4, 8),), positions={0: 1, "output": 1})
    assert ((depgraph.path_lengths(graph) >= 0) == torch.ones(4, 4).triu().bool().numpy()).all()


@pytest.mark.parametrize("scale", MAY_TURN_IT)
def test_an_infinity_scaled_by_anything_else_may_not(scale):
    graph = depgraph.trace(Scaled(MAY_TURN_IT[scale]), (R(1, 4, 8),), positions={0: 1, "output": 1})
    assert (depgraph.path_lengths(graph) >= 0).all()
