"""Tensors that cannot be followed: one sentence that names them, or the line that makes them."""

import re
import warnings

import pytest
import torch
from torch import nn

import depgraph
from depgraph.errors import TracingError
from depgraph.tracing.capture import capture
from tests.tracing.conftest import evaluate

X = torch.randn(2, 6, 4)
EYE = torch.eye(6)
PAD = "Nested tensors are not supported: pad them to one length, and pass the lengths."

pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse ... tensor support is in beta"),
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors"),
    pytest.mark.filterwarnings("ignore:.*quantize_per_tensor"),
]


class Apply(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Holding(nn.Module):
    """Holds a tensor in one of the ways a module can."""

    def __init__(self, way, tensor):
        super().__init__()
        if way == "buffer":
            self.register_buffer("held", tensor)
        elif way == "parameter":
            self.held = nn.Parameter(tensor)
        else:
            self.held = [tensor] if way == "list" else tensor

    def forward(self, x):
        held = self.held[0] if isinstance(self.held, list) else self.held
        return held @ x[0] if held.ndim == 2 else (held.dequantize() if held.is_quantized else held * 2, x)


def message(model, *args):
    with pytest.raises(TracingError) as caught:
        capture(model, args)
    text = str(caught.value)
    assert "\n" not in text
    return text


def nested(layout):
    return torch.nested.nested_tensor([torch.randn(3, 4), torch.randn(2, 4)], layout=layout)


LAYOUTS = {"jagged": torch.jagged, "strided": torch.strided}


@pytest.mark.parametrize("name", LAYOUTS)
def test_nested_inputs(name):
    assert message(Apply(lambda x: x * 2), nested(LAYOUTS[name])) == (
        f"The input x of Apply is a nested tensor (layout {name}). {PAD}"
    )


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("way", ["buffer", "parameter", "attribute", "list"])
def test_nested_state(name, way):
    model = nn.Sequential(Holding(way, nested(LAYOUTS[name])))
    held = {"list": "attribute 0.held.0"}.get(way, f"{way} 0.held")
    assert message(model, X) == f"The {held} of Sequential is a nested tensor (layout {name}). {PAD}"


def ragged(x):
    return torch.nested.as_nested_tensor([x[0], x[1, :3]], layout=torch.jagged)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.nested.to_padded_tensor(ragged(x) * 2, 0.0),
        lambda x: ragged(x),
        lambda x: torch.nested.nested_tensor_from_jagged(x.reshape(12, 4), torch.tensor([0, 6, 9, 12])).values() * 2,
        lambda x: torch.nested.nested_tensor([x[0], x[1, :2]]).to_padded_tensor(0.0),
    ],
)
def test_nested_tensors_made_on_the_way(function):
    text = message(Apply(function), X)
    assert re.fullmatch(
        rf"\S*test_unsupported.py:\d+: Apply makes a nested tensor \(layout (jagged|strided)\). {PAD}", text
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.sparse.mm(EYE.to_sparse(), x[0]),
        lambda x: torch.eye(6).to_sparse_csr() @ x[0],
        lambda x: torch.eye(6).to_sparse_csc() @ x[0],
        lambda x: x[0].to_sparse_csr() @ torch.ones(4, 3),
        lambda x: (x[0] * (x[0] > 0)).to_sparse().to_dense().cumsum(0),
        lambda x: torch.sparse_coo_tensor(torch.tensor([[0, 2, 4]]), x[0, :3], (6, 4)).to_dense(),
    ],
)
def test_sparse_tensors_made_on_the_way_are_followed(faithful, function):
    model = Apply(function)
    faithful(model, (X,))
    assert depgraph.verify(depgraph.trace(model, (X,), positions={"x": 1}), model, (X,)).sound


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
@pytest.mark.parametrize("way", ["buffer", "attribute", "list"])
def test_sparse_state_is_followed(layout, way):
    model = Holding(way, (torch.eye(6) + torch.eye(6).roll(1, 0)).to_sparse(layout=layout))
    program = capture(model, (X,))
    (result,), _ = evaluate(program)
    torch.testing.assert_close(result, model(X))
    kind, name = {"list": ("constant", "held.0"), "attribute": ("constant", "held")}.get(way, (way, "held"))
    assert ("input", "x") in [(s.kind, s.name) for s in program.sources.values()]
    assert (kind, name) in [(s.kind, s.name) for s in program.sources.values()]
    assert depgraph.verify(depgraph.trace(model, (X,), positions={"x": 1}), model, (X,)).sound


def test_quantised_tensors():
    tensor = torch.quantize_per_tensor(X, 0.1, 0, torch.qint8)
    advice = "a quantised tensor. It cannot be followed: use its dequantize()."
    assert message(Apply(lambda x: x.dequantize()), tensor) == f"The input x of Apply is {advice}"
    assert message(Holding("buffer", tensor), X) == f"The buffer held of Holding is {advice}"


def test_packed_weights():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.ReLU(), nn.Linear(4, 4)), dtype=torch.qint8)
    assert message(model, X) == (
        "1 (Linear) holds packed quantised weights, which cannot be followed: analyse the float model that was "
        "quantised."
    )
