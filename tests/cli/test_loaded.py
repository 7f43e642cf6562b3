"""From a request to a model with inputs that fit it."""

import re

import pytest
import torch
from torch import nn

from depgraph import LoadError
from depgraph_cli.loading import load
from depgraph_cli.loading.diagnosis import why_it_fails
from depgraph_cli.options import Request, input_spec

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x, mask=None, *, scale=1.0):
        return self.linear(x)
"""


def request(target="mymodel.py", positions=None, known=(), inputs=(), n=None, train=False):
    return Request(target, positions, known, tuple(map(input_spec, inputs)), n, train)


@pytest.mark.parametrize(
    ("source", "args", "kwargs"),
    [
        ("example_inputs = torch.ones(2, 3)", [(2, 3)], {}),
        ("example_inputs = (torch.ones(2, 3), torch.ones(2))", [(2, 3), (2,)], {}),
        ("example_inputs = [torch.ones(2, 3)]", [(2, 3)], {}),
        ("example_inputs = {'x': torch.ones(2, 3), 'scale': 2.0}", [], {"x": (2, 3), "scale": 2.0}),
        ("from collections import UserDict\nexample_inputs = UserDict(x=torch.ones(2, 3))", [], {"x": (2, 3)}),
        ("def example_inputs():\n    return torch.ones(2, 3)", [(2, 3)], {}),
        ("def example_inputs(n=7):\n    return torch.ones(n, 3)", [(7, 3)], {}),
        ("def example_inputs(n=7):\n    return dict(x=torch.ones(n, 3))", [], {"x": (7, 3)}),
        ("example_inputs = torch.ones(2, 3)\nexample_kwargs = {'scale': 2.0}", [(2, 3)], {"scale": 2.0}),
        ("example_kwargs = {'x': torch.ones(2, 3)}", [], {"x": (2, 3)}),
    ],
)
def test_every_form_of_example_inputs(write, source, args, kwargs):
    write(NET + source)
    loaded = load(request())
    shape = lambda value: tuple(value.shape) if isinstance(value, torch.Tensor) else value  # noqa: E731
    assert [shape(a) for a in loaded.args] == args
    assert {name: shape(a) for name, a in loaded.kwargs.items()} == kwargs
    assert loaded.name == "mymodel.py"


def test_n_is_passed_on(write):
    write(NET + "def example_inputs(n):\n    return torch.ones(n, 3)")
    assert load(request(n=5)).args[0].shape == (5, 3)


def test_inputs_are_drawn_the_same_every_time(write):
    write(NET + "example_inputs = torch.randn(2, 3)")
    first, second = load(request()), load(request())
    assert torch.equal(first.args[0], second.args[0])
    assert torch.equal(first.module.linear.weight, second.module.linear.weight)


@pytest.mark.parametrize(("train", "mode"), [(False, False), (True, True)])
def test_mode(write, train, mode):
    write(NET + "model = Net()\nmodel.train(" + str(not train) + ")\nexample_inputs = torch.ones(2, 3)")
    loaded = load(request(train=train))
    assert [module.training for module in loaded.module.modules()] == [mode, mode]


def test_positions_of_the_command_line_come_before_the_file_s(write):
    write(NET + "example_inputs = torch.ones(2, 3)\npositions = {'x': 0, 'mask': 1}")
    assert load(request()).positions == {"x": 0, "mask": 1}
    assert load(request(positions={"x": (1,)})).positions == {"x": (1,)}


def test_a_compiled_model_is_unwrapped(write):
    write(NET + "model = torch.compile(Net())\nexample_inputs = torch.ones(2, 3)")
    assert type(load(request()).module).__name__ == "Net"


class TestInputOption:
    def test_stands_in_for_example_inputs(self, write):
        write(NET + "def example_inputs(n):\n    raise ValueError('not called')")
        loaded = load(request(inputs=["x=2,3", "mask=4:bool"]))
        assert (loaded.args, list(loaded.kwargs)) == ((), ["x", "mask"])
        x, mask = loaded.kwargs.values()
        assert (x.shape, x.dtype, mask.shape, mask.dtype) == ((2, 3), torch.float32, (4,), torch.bool)

    def test_takes_the_model_s_dtype_and_device(self, write):
        write(NET + "model = Net().to('meta', torch.float64)")
        x = load(request(inputs=["x=2,3"])).kwargs["x"]
        assert (x.dtype, x.device.type) == (torch.float64, "meta")

    @pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "torch.int64"])
    def test_integers_are_in_any_vocabulary(self, write, dtype):
        write("class Net(nn.Embedding):\n    def __init__(self):\n        super().__init__(2, 3)")
        ids = load(request(inputs=[f"input=50,50:{dtype}"])).kwargs["input"]
        assert ids.unique().tolist() == [0, 1]
        assert ids.dtype is getattr(torch, dtype.removeprefix("torch."))

    def test_any_name_goes_where_forward_takes_any(self, write):
        write("class Net(nn.Module):\n    def forward(self, **batch):\n        return batch")
        assert list(load(request(inputs=["ids=2,3"])).kwargs) == ["ids"]


class TestExportedProgram:
    @pytest.fixture
    def program(self, write, tmp_path):
        write("")
        made = torch.export.export(nn.Linear(3, 3), (torch.ones(2, 3),))
        torch.export.save(made, tmp_path / "net.pt2")
        return "net.pt2"

    def test_brings_its_inputs(self, program):
        loaded = load(request(program))
        assert torch.equal(loaded.args[0], torch.ones(2, 3))
        assert loaded.module(*loaded.args).shape == (2, 3)

    def test_takes_others(self, program):
        assert [value.shape for value in load(request(program, inputs=["input=2,3"])).args] == [(2, 3)]

    def test_keeps_keyword_arguments_apart(self, write):
        write(
            """
            class Net(nn.Module):
                def forward(self, x, scale=None, *, shift):
                    return x * scale + shift

            model = torch.export.export(Net(), (torch.ones(2),), {"shift": torch.ones(2), "scale": torch.ones(2)})
            """
        )
        loaded = load(request(inputs=["shift=2", "scale=2", "x=2"]))
        assert (len(loaded.args), set(loaded.kwargs)) == (1, {"scale", "shift"})
        assert loaded.kind == "exported program"

    def test_has_its_mode(self, program):
        with pytest.raises(LoadError, match=r"--train needs a model file: net.* is an exported program"):
            load(request(program, train=True))

    def test_in_a_model_file(self, write):
        write("model = torch.export.export(nn.Linear(3, 3), (torch.ones(2, 3),))")
        assert load(request()).args[0].shape == (2, 3)

    def test_has_its_sizes(self, program):
        with pytest.raises(LoadError, match="--n 5 needs a model file"):
            load(request(program, n=5))

    def test_what_is_none_is_refused(self, write, tmp_path):
        write("")
        (tmp_path / "net.pt2").write_bytes(b"no archive")
        with pytest.raises(LoadError, match=r"net.pt2 cannot be read as an exported program"):
            load(request("net.pt2"))


@pytest.mark.parametrize(
    ("source", "changes", "message"),
    [
        ("", {}, "no example inputs. Define `example_inputs` (a tensor, a tuple, a dict of keyword arguments, or"),
        ("", {}, "for the arguments of Net.forward(x, mask=None, *, scale=1.0), as in --input x=1,64,512."),
        ("example_inputs = 7", {}, "`example_inputs` in mymodel.py is a int, not a tensor, a tuple"),
        ("example_inputs = {1: torch.ones(2, 3)}", {}, "is a dict of keyword arguments, but has the key 1."),
        ("example_inputs = torch.ones(2, 3)\nexample_kwargs = 7", {}, "`example_kwargs` in mymodel.py is a int"),
        ("def example_inputs(n): return n", {}, "needs a size: give --n, or give its argument a default."),
        ("def example_inputs(n=1): return 1 / 0", {}, "`example_inputs()` in mymodel.py fails: ZeroDivisionError"),
        (
            "def example_inputs(n=1): return 1 / 0",
            {"n": 3},
            "`example_inputs(3)` in mymodel.py fails: ZeroDivisionError",
        ),
        ("def example_inputs(): pass", {"n": 3}, "--n 3 needs `example_inputs` in mymodel.py to be a function of n"),
        ("example_inputs = torch.ones(2, 3)", {"n": 3}, "--n 3 needs `example_inputs` to be a function of n"),
        ("", {"n": 3}, "--n 3 is passed on to `example_inputs`, a function of n; mymodel.py has none."),
        ("example_inputs = torch.ones(2, 3)\npositions = 1", {}, "`positions` in mymodel.py is a int, not a dict"),
        ("", {"inputs": ["y=1"]}, "forward of Net has no argument 'y'. Its arguments are: x, mask, scale."),
        (
            "",
            {"inputs": ["mask=1"]},
            "--input does not fit Net.forward(x, mask=None, *, scale=1.0): missing a required",
        ),
        (
            "example_inputs = (torch.ones(2, 3), None, 2)",
            {},
            "`example_inputs` does not fit Net.forward(x, mask=None, *, scale=1.0): too many positional arguments. "
            "Given: float32 (2, 3), None, 2.",
        ),
        ("example_inputs = {'y': torch.ones(2, 3)}", {}, "missing a required argument: 'x'. Given: y=float32 (2, 3)."),
    ],
)
def test_said_what_is_wrong(write, source, changes, message):
    write(NET + source)
    with pytest.raises(LoadError, match=re.escape(message)):
        load(request(**changes))


class TestWhyItFails:
    def test_it_runs(self, write):
        write(NET + "example_inputs = torch.ones(2, 3)")
        assert why_it_fails(load(request())) == ""

    def test_the_part_that_refuses_and_the_argument_it_refuses(self, write):
        write(NET + "example_inputs = torch.ones(2, 4)")
        assert re.fullmatch(
            r"Net.forward\(x, mask=None, \*, scale=1.0\) fails on these inputs: x = float32 \(2, 4\). "
            r"`linear`, Linear\(in_features=3, out_features=3, bias=True\), was given the argument x, float32 \(2, 4\)"
            r", and raised RuntimeError: mat1 and mat2 shapes cannot be multiplied \(2x4 and 3x3\) "
            r"\(mymodel.py:\d+, `return self.linear\(x\)`\).",
            why_it_fails(load(request())),
        )

    def test_a_part_deep_inside_given_something_computed(self, write):
        write(
            "model = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.ReLU(), nn.Linear(5, 5)))\n"
            "example_inputs = torch.ones(2, 3)"
        )
        reason = why_it_fails(load(request()))
        assert "`1.1`, Linear(in_features=5, out_features=5, bias=True), was given float32 (2, 4) and raised" in reason

    def test_the_model_itself(self, write):
        write(
            "class Net(nn.Module):\n    def forward(self, x, y):\n        return x + y\n"
            + "example_inputs = torch.ones(2), torch.ones(3)"
        )
        reason = why_it_fails(load(request()))
        assert reason.startswith(
            "Net.forward(x, y) fails on these inputs: x = float32 (2), y = float32 (3). RuntimeError"
        )

    def test_nothing_stays_hooked(self, write):
        from torch.nn.modules import module as hooks

        write(NET + "example_inputs = torch.ones(2, 4)")
        why_it_fails(load(request()))
        assert not hooks._global_forward_pre_hooks
        assert not hooks._global_forward_hooks
