"""Models that cannot be followed: one message that says where, what and with which inputs."""

import pytest
import torch
from torch import nn

from depgraph.errors import TracingError
from depgraph.tracing.capture import capture

X = torch.ones(2, 3, 4)


def message(model, *args, **kwargs):
    with pytest.raises(TracingError) as caught:
        capture(model, args, kwargs)
    return str(caught.value)


def test_wrong_shapes_name_the_module_and_the_inputs():
    text = message(nn.Sequential(nn.ReLU(), nn.Linear(5, 4)), X)
    assert text.startswith("torch/nn/modules/linear.py:")
    assert text.partition(": ")[2] == (
        "Sequential fails on its example inputs in 1 (Linear): RuntimeError: mat1 and mat2 shapes cannot be multiplied "
        "(6x4 and 5x4). Inputs: input (2, 3, 4) float32; forward takes (input)."
    )


def test_errors_of_the_model_name_its_line():
    class Inner(nn.Module):
        def forward(self, x, scale):
            raise ValueError(f"no good: {tuple(x.shape)}")

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x, scale=2):
            return self.inner(x, scale)

    text = message(Model(), X)
    line = Inner.forward.__code__.co_firstlineno + 1
    assert text.partition(": ")[0].endswith(f"test_errors.py:{line}")
    assert text.partition(": ")[2] == (
        "Model fails on its example inputs in inner (Inner): ValueError: no good: (2, 3, 4). "
        "Inputs: x (2, 3, 4) float32; forward takes (x, scale=2)."
    )


def test_no_tensor_comes_out():
    class Model(nn.Module):
        def forward(self, x):
            return {"size": x.shape[0], "text": "none"}

    assert message(Model(), X) == "Model returns no tensor, so there is nothing to follow."


def test_models_that_run_but_cannot_be_followed(monkeypatch):
    monkeypatch.setattr("depgraph.tracing.capture.reason", lambda *_: "")

    class Model(nn.Module):
        def forward(self, x):
            return torch.nested.nested_tensor([x[0], x[1, :2]]).to_padded_tensor(0.0)

    text = message(Model(), X)
    assert "Model runs, but cannot be followed: " in text
    assert text.endswith("Inputs: x (2, 3, 4) float32.")
    assert "\n" not in text


class Deciding(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, threshold):
        return self.linear(x) if x.sum() > threshold.sum() else x


def test_models_without_data_that_need_values(monkeypatch):
    with torch.device("meta"):
        model = Deciding()
    program = capture(model, (X, X[0, 0] - 1))
    assert program.warnings[0].endswith("; True for the example inputs, only that branch is analysed")
    line = Deciding.forward.__code__.co_firstlineno + 1
    refused = (
        f"test_errors.py:{line}: Deciding can only be followed with values: something here depends on them, and the "
        "model has none, being on the meta device or run without data. Build a smaller one on the CPU."
    )
    assert message(model, X, torch.zeros(4, device="meta")).endswith(refused)
    monkeypatch.setattr("depgraph.tracing.recorder.fakes.LARGEST", 23)
    assert message(model, X, torch.zeros(4)).endswith(refused)


def test_an_interrupt_is_not_swallowed():
    class Model(nn.Module):
        def forward(self, x):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        capture(Model(), (X,))
