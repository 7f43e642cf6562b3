"""Programs that were exported before."""

import io
import warnings

import pytest
import torch
from torch import nn
from torch.export import Dim, export

from depgraph.errors import TracingError
from depgraph.tracing.capture import capture

X = torch.arange(24.0).reshape(2, 3, 4) / 10


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Linear(4, 4)  # a name that a wrapper might use
        self.embed = nn.Embedding(5, 4)
        self.embed.weight = nn.Parameter(torch.randn(4, 4))
        self.model.weight = self.embed.weight
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, batch, *rest, flag=True, scale=None, **more):
        self.seen += 1
        x = self.model(batch["x"]) if flag else batch["x"]
        return {"y": x * scale + self.seen, "pair": (rest[0], 3, None, x)}


def exported(model, args, kwargs=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return export(model, args, kwargs, strict=False, **options)


def saved_and_loaded(program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = io.BytesIO()
        torch.export.save(program, file)
        file.seek(0)
        return torch.export.load(file)


@pytest.fixture
def nested():
    kwargs = {"flag": True, "scale": torch.tensor(2.0), "other": torch.ones(1)}
    return exported(Model().eval(), ({"x": X, "unused": [torch.ones(1)]}, torch.ones(2)), kwargs)


@pytest.mark.parametrize("through_a_file", [False, True])
def test_names_and_values_are_those_of_the_model(nested, through_a_file):
    program = capture(saved_and_loaded(nested) if through_a_file else nested)
    assert [leaf.name for leaf in program.inputs] == ["batch.x", "batch.unused.0", "rest_0", "scale", "other"]
    assert [leaf.aliases for leaf in program.inputs] == [(0,), (1,), (2,), (3,), (4,)]
    assert [leaf.name for leaf in program.outputs] == ["output.y", "output.pair.0", "output.pair.3"]
    kinds = {source.name: (source.kind, source.mutated) for source in program.sources.values()}
    assert kinds["model.weight"] == ("parameter", False)
    assert kinds["seen"] == ("buffer", True)
    assert program.tied == {"embed.weight": "model.weight"}
    assert list(program.updates) == ["seen"]
    assert program.mode == "eval"
    linear = program.graph.find_nodes(op="call_function", target=torch.ops.aten.linear.default)
    assert [program.where(node)[0] for node in linear] == ["model"]
    assert all("test_loaded.py:" in program.where(node)[1] for node in linear)
    assert torch.equal(program.inputs[0].value, X)


def test_other_inputs(nested):
    kwargs = {"other": torch.ones(1), "scale": torch.tensor(3.0), "flag": True}
    program = capture(nested, ({"x": X + 1, "unused": [torch.ones(1)]}, torch.ones(2)), kwargs)
    assert torch.equal(program.inputs[0].value, X + 1)
    assert float(program.inputs[3].value) == 3


class Open(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x, flag=True):
        self.seen += x.sum((0, 1))
        y = self.linear(x).reshape(-1, 4)
        return y.view(x.shape[0], x.shape[1], 4) + self.seen, y


@pytest.mark.parametrize("through_a_file", [False, True])
def test_open_sizes_are_settled_by_the_inputs(through_a_file):
    sizes = {"x": {0: Dim.AUTO, 1: Dim.AUTO}, "flag": None}
    program = exported(Open().eval(), (X, True), dynamic_shapes=sizes)
    program = saved_and_loaded(program) if through_a_file else program
    assert [tuple(leaf.value.shape) for leaf in capture(program).outputs] == [(2, 3, 4), (6, 4)]
    found = capture(program, (torch.ones(5, 2, 4), True))
    assert [tuple(leaf.value.shape) for leaf in found.outputs] == [(5, 2, 4), (10, 4)]
    assert list(found.updates) == ["seen"]
    linear = found.graph.find_nodes(op="call_function", target=torch.ops.aten.linear.default)
    assert [found.where(node)[0] for node in linear] == ["linear"]
    assert {s.name for s in found.sources.values()} == {"linear.weight", "linear.bias", "seen", "x"}


def test_sizes_that_depend_on_values():
    class Rows(nn.Module):
        def forward(self, x):
            return x[x[:, 0] > 0]

    program = capture(exported(Rows().eval(), (torch.tensor([[1.0, 2.0], [-1.0, 3.0]]),)))
    assert tuple(program.outputs[0].value.shape) == (1, 2)
    assert program.mode == "eval"
    assert "returns as much as input x says; (1, 2) for the example inputs" in program.warnings[0]


def test_the_mode_is_read_off_the_operations():
    assert capture(exported(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).train(), (X,))).mode == "train"
    assert capture(exported(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).eval(), (X,))).mode == "eval"


def test_regions_are_dissolved_and_the_program_stays_as_it_is():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return self.linear(x)

    program = exported(Mixed().eval(), (X,))
    before = str(program.graph)
    found = capture(program)
    linear = found.graph.find_nodes(op="call_function", target=torch.ops.aten.linear.default)
    assert [found.where(node)[0] for node in linear] == ["linear"]
    assert str(program.graph) == before
    assert program.module()(X).dtype == torch.bfloat16


def test_inputs_that_the_program_does_not_take(nested):
    with pytest.raises(TracingError, match="takes arguments like "):
        capture(nested, (X,))
    program = exported(nn.Linear(4, 4).eval(), (X,))
    with pytest.raises(
        TracingError, match=r"takes input of \(2, 3, 4\) torch\.float32; got \(2, 2, 4\) torch\.float32"
    ):
        capture(program, (X[:, :2],))
    with pytest.raises(TracingError, match=r"got \(2, 3, 4\) torch\.float64"):
        capture(program, (X.double(),))
    program._example_inputs = None
    with pytest.raises(TracingError, match="comes without example inputs"):
        capture(program)
