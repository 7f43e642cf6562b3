"""Names of inputs and outputs."""

import dataclasses
from collections import namedtuple

import pytest
import torch
from torch import nn

from depgraph.errors import TracingError
from depgraph.tracing.capture import capture
from depgraph.tracing.names import input_leaves, output_leaves
from depgraph.tracing.structure import Found

X = torch.ones(2, 3)
Pair = namedtuple("Pair", "left right")


@dataclasses.dataclass
class Batch:
    ids: torch.Tensor
    count: int
    extra: dict


@dataclasses.dataclass(frozen=True)
class Result:
    logits: torch.Tensor
    rest: object = None


class Bag:
    def __init__(self, tensor):
        self.tensor = tensor
        self._hidden = tensor * 2
        self.label = "bag"


def names(leaves):
    return [leaf.name for leaf in leaves]


def test_inputs_in_every_kind_of_container(faithful):
    class Model(nn.Module):
        def forward(self, batch, pair, flag, *rest, bag=None, **named):
            total = batch.ids + batch.extra["u.v"] + pair.left + pair.right[0]
            return total + rest[1] + bag.tensor + bag._hidden + named["z"][0] * (3 if flag else 4)

    batch, pair = Batch(X, 3, {"u.v": X + 1}), Pair(X * 2, [X * 3])
    program = faithful(Model(), (batch, pair, False, 7, X * 4), {"bag": Bag(X * 5), "z": [X * 6, None]})
    assert names(program.inputs) == [
        "batch.ids",
        "batch.extra.u.v",
        "pair.left",
        "pair.right.0",
        "rest.1",
        "bag.tensor",
        "bag._hidden",
        "z.0",
    ]
    assert [leaf.aliases for leaf in program.inputs] == [(k,) for k in range(8)]
    assert program.inputs[0].value is X
    assert batch.ids is X
    assert {s.name for s in program.sources.values() if s.kind == "input"} == set(names(program.inputs))


def test_outputs_in_every_kind_of_container(faithful):
    class Model(nn.Module):
        def forward(self, x):
            return Result(x + 1, {"pair": Pair(x + 2, Bag(x + 3)), 3: x + 4, "none": None, "text": "a"})

    program = faithful(Model(), (X,))
    assert names(program.outputs) == [
        "output.logits",
        "output.rest.pair.left",
        "output.rest.pair.right.tensor",
        "output.rest.3",
    ]
    assert [leaf.aliases for leaf in program.outputs] == [(f"output.{k}",) for k in range(4)]


def test_outputs_of_nested_tuples(faithful):
    program = faithful(nn.LSTM(3, 4), (X,))
    assert names(program.outputs) == ["output.0", "output.1", "output.2"]
    assert [leaf.aliases for leaf in program.outputs] == [(), ("output.1.0",), ("output.1.1",)]


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ([()], [("output", ("output.0",))]),
        ([(0,)], [("output", ("output.0",))]),
        ([("logits",)], [("output.logits", ("output.0", "output"))]),
        ([(0,), (1,)], [("output.0", ()), ("output.1", ())]),
        # output.1 is the tensor of number 1, not the one at index 1
        ([(0, 0), (0, 1), (1,)], [("output.0", ("output.0.0",)), ("output.1", ("output.0.1",)), ("output.2", ())]),
        ([("a",), ("b", 0)], [("output.a", ("output.0",)), ("output.b.0", ("output.1",))]),
        ([("a", "b"), ("a.b",)], [("output.a.b", ("output.0",)), ("output.a.b#1", ("output.1",))]),
    ],
)
def test_names_of_outputs(paths, expected):
    leaves = output_leaves([Found(path, X) for path in paths])
    assert [(leaf.name, leaf.aliases) for leaf in leaves] == expected


def test_no_key_stands_for_two_tensors():
    paths = [(), (0,), (1,), (0, 0), (1, 0), ("0",), ("output",), (0, "a"), ("0.a",), (2, "a")]
    leaves = output_leaves([Found(path, X) for path in paths])
    keys = [key for leaf in leaves for key in (leaf.name, *leaf.aliases)]
    assert len(keys) == len(set(keys))
    leaves = input_leaves([Found(path, X) for path in [("x",), ("x", 0), ("x.0",), ("x", "0")]])
    assert names(leaves) == ["x", "x.0", "x.0#2", "x.0#3"]


def test_star_arguments(faithful):
    class Model(nn.Module):
        def forward(self, *args, **kwargs):
            return args[0] + args[1] + kwargs["bias"]

    program = faithful(Model(), (X, X), {"bias": X})
    assert names(program.inputs) == ["args.0", "args.1", "bias"]


def test_arguments_that_forward_does_not_take():
    class Model(nn.Module):
        def forward(self, x, mask):
            return x + mask

    with pytest.raises(TracingError, match=r"Model\.forward takes \(x, mask\); it was given 1 positional argument\."):
        capture(Model(), (X,))
    with pytest.raises(TracingError, match=r"it was given 1 positional argument and masks=\."):
        capture(Model(), (X,), {"masks": X})


def test_keyword_arguments_out_of_order(faithful):
    class Model(nn.Module):
        def forward(self, x, scale=1.0, shift=None):
            return x * scale + shift

    program = faithful(Model(), (), {"shift": X, "scale": 2.0, "x": X * 3})
    assert names(program.inputs) == ["shift", "x"]


def test_outputs_of_a_distribution(faithful):
    class Model(nn.Module):
        def forward(self, x):
            return torch.distributions.Normal(x, x.exp(), validate_args=False)

    assert names(faithful(Model(), (X,)).outputs) == ["output.loc", "output.scale"]
