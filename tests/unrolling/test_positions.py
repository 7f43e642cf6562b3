"""Which tensors and axes are meant, and what is chosen where the user names none."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils import _pytree as pytree

import depgraph
from depgraph.errors import PositionError
from depgraph.tracing.capture import capture
from depgraph.unrolling.positions import plan
from depgraph.unrolling.trace import unroll
from tests.jacobian import Apply

R = torch.randn


class Model(nn.Module):
    """Inputs in containers, a mask, a table, a scale, and outputs in containers."""

    def __init__(self):
        super().__init__()
        self.queries = nn.Parameter(R(3, 2))
        self.tied = self.queries
        self.register_buffer("scale", torch.ones(2))
        self.body = nn.ModuleDict({"project": nn.Linear(2, 2)})

    def forward(self, x, batch, mask, *rest, bias=0.0):
        y = self.body["project"](x) * self.scale + batch["feats"][1]
        scores = (self.queries @ y.transpose(-2, -1)).masked_fill(mask, float("-inf"))
        return {"logits": y + rest[0] + bias, "parts": [scores.softmax(-1) @ y, self.tied * 2]}


ARGS = (
    R(1, 4, 2),
    {"feats": [R(2), R(1, 4, 2)], "number": 3},
    torch.tensor([False, False, True, False]),
    R(1, 4, 2),
)
NAMES = ["x", "batch.feats.0", "batch.feats.1", "mask", "rest.0", "bias"]


@pytest.fixture(scope="module")
def program():
    return capture(Model(), ARGS, {"bias": R(1, 4, 2)})


def graph_of(program, positions=None, known=None):
    return unroll(program, plan(program, positions, known))


def test_all_tensors_have_names(program):
    graph = graph_of(program, {"x": 1})
    assert list(graph.inputs) == NAMES
    assert list(graph.outputs) == ["output.logits", "output.parts.0", "output.parts.1"]


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("x", "x"),
        (0, "x"),
        ("batch.feats.1", "batch.feats.1"),
        (2, "batch.feats.1"),
        ("rest.0", "rest.0"),
        (4, "rest.0"),
        ("bias", "bias"),
        (5, "bias"),
    ],
)
def test_keys_of_inputs(program, key, name):
    graph = graph_of(program, {key: 1})
    assert graph.inputs[key] is graph.inputs[name]
    assert {n for n, terminal in graph.inputs.items() if terminal.positions} == {name}
    assert (graph.inputs[key].positions, graph.inputs[key].count, graph.inputs[key].shape) == ((1,), 4, (1, 4, 2))
    reached = depgraph.path_lengths(graph, key, "output.logits") >= 0
    assert reached.tolist() == torch.eye(4).bool().tolist()


@pytest.mark.parametrize(("key", "count"), [("queries", 3), ("tied", 3), ("scale", 2), ("body.project.weight", 2)])
def test_keys_of_parameters_and_buffers(program, key, count):
    graph = graph_of(program, {key: 0})
    terminal = next(t for t in graph.inputs.values() if t.positions)
    assert terminal.name == {"tied": "queries"}.get(key, key)
    assert terminal.count == count
    # What is tracked by name is the one thing tracked: nothing is chosen besides.
    assert not any("inferred" in text for text in graph.warnings)


def test_learned_queries_are_told_apart(program):
    graph = graph_of(program, {"queries": 0, "x": 1})
    assert graph.outputs["output.parts.0"].positions == (1,)
    lengths = depgraph.path_lengths(graph, "queries", "output.parts.0")
    assert (lengths.diagonal() > 0).all()
    assert (lengths < 0).sum() == 6
    untold = graph_of(program, {"x": 1})
    assert untold.outputs["output.parts.0"].positions == ()


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("output.logits", "output.logits"),
        ("output.0", "output.logits"),
        ("output.parts.0", "output.parts.0"),
        ("output.1", "output.parts.0"),
        ("output.2", "output.parts.1"),
    ],
)
def test_keys_of_outputs(program, key, name):
    graph = graph_of(program, {"x": 1, key: -1})
    assert graph.outputs[key] is graph.outputs[name]
    assert graph.outputs[name].positions == (len(graph.outputs[name].shape) - 1,)
    assert graph.outputs[name].count == 2


def test_the_only_output():
    program = capture(nn.Linear(2, 3), (R(1, 4, 2),))
    for key in ("output", "output.0"):
        graph = graph_of(program, {key: (1, 2)})
        assert list(graph.outputs) == ["output"]
        assert graph.outputs[key].positions == (1, 2)
        assert graph.outputs[key].count == 12
    with pytest.raises(PositionError, match=r"There is no output 'output.1'. The outputs are: output\."):
        graph.outputs["output.1"]


def test_dataclasses_and_keyword_arguments():
    @dataclass
    class Result:
        first: torch.Tensor
        second: torch.Tensor

    pytree.register_dataclass(Result)
    model = Apply(lambda x: Result(x * 2, x + 1))
    graph = depgraph.trace(model, (R(1, 3, 2),), positions={0: 1, "output.second": 2})
    assert list(graph.outputs) == ["output.first", "output.second"]
    assert graph.outputs["output.second"].positions == (2,)


def test_several_axes_in_the_order_in_which_they_are_named(program):
    rows = graph_of(program, {"x": (1, 2)}).inputs["x"]
    columns = graph_of(program, {"x": (2, 1)}).inputs["x"]
    assert (rows.positions, rows.grid, rows.count) == ((1, 2), (4, 2), 8)
    assert (columns.positions, columns.grid, columns.count) == ((2, 1), (2, 4), 8)
    model = capture(Apply(lambda x: x * 1.5), (R(2, 3),))
    graph = graph_of(model, {0: (1, 0), "output": (0, 1)})
    lengths = depgraph.path_lengths(graph).reshape(3, 2, 2, 3)
    assert all(lengths[b, a, a, b] == 1 for a in range(2) for b in range(3))
    assert (lengths >= 0).sum() == 6


def test_negative_axes(program):
    assert graph_of(program, {"x": -2}).inputs["x"].positions == (1,)
    assert graph_of(program, {"x": [-2, 0]}).inputs["x"].positions == (1, 0)


def test_no_axes(program):
    graph = graph_of(program, {"x": ()})
    assert (graph.inputs["x"].positions, graph.inputs["x"].count) == ((), 1)


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        (
            {"y": 1},
            r"positions names 'y', which is neither an input, an output nor a parameter. Inputs: x, batch.feats.0, "
            r"batch.feats.1, mask, rest.0, bias; outputs: output.logits, output.parts.0, output.parts.1; parameters "
            r"and buffers by their dotted names \(such as .*queries",
        ),
        ({9: 1}, r"positions names 9, which is neither"),
        ({"batch.feats": 1}, r"positions names 'batch.feats', which is neither"),
        ({"output.3": 1}, r"positions names 'output.3', which is neither"),
        ({"x": 3}, r"x of shape \(1, 4, 2\) has axes 0 to 2; there is no axis 3\."),
        ({"x": (1, -4)}, r"there is no axis -4\."),
        ({"x": True}, r"there is no axis True\."),
        ({"x": "1"}, r"there is no axis '1'\."),
        ({"x": 1.0}, r"there is no axis 1\.0\."),
        ({"x": None}, r"there is no axis None\."),
        ({"x": (1, 1)}, r"positions names an axis of x twice: \(1, 1\)\."),
        ({"x": (1, -2)}, r"positions names an axis of x twice: \(1, -2\)\."),
        ({"x": 1, 0: 2}, r"positions names x twice, the second time as 0"),
        ({"queries": 0, "tied": 1}, r"positions names queries twice, the second time as 'tied'"),
        ({"output.logits": 0, "output.0": 1}, r"positions names output.logits twice"),
        ({"queries": 2}, r"queries of shape \(3, 2\) has axes 0 to 1; there is no axis 2\."),
    ],
)
def test_names_and_axes_that_do_not_exist(program, positions, message):
    with pytest.raises(PositionError, match=message):
        plan(program, positions, None)


def test_an_axis_of_a_number():
    program = capture(Apply(lambda x: x * 2), (torch.tensor(1.0),))
    with pytest.raises(PositionError, match=r"args.0 of shape \(\) has no axes; there is no axis 0\."):
        plan(program, {0: 0}, None)


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (["z"], r"known names 'z', which is not an input. The inputs are: x, batch.feats.0, batch.feats.1, mask, rest"),
        (["queries"], r"known names 'queries', which is not an input"),
        (["x"], r"x cannot be both tracked and known: leave it out of positions or out of known\."),
        ([0], r"x cannot be both tracked and known"),
    ],
)
def test_known_inputs_that_cannot_be(program, known, message):
    with pytest.raises(PositionError, match=message):
        plan(program, {"x": 1}, known)


def test_known_inputs(program):
    additive = Apply(lambda x, m: (x + m).softmax(-1))
    mask = torch.tensor([[0.0, float("-inf"), 0.0], [0.0, 0.0, 0.0]])
    held = capture(additive, (R(2, 3), mask))
    for known in (["args.1"], [1], "args.1", 1, (1,)):
        graph = graph_of(held, {0: 1, "output": 0}, known)
        # The second row reads the column that is masked in the first.
        assert depgraph.path_lengths(graph).tolist() == [[2, 2], [-1, 2], [2, 2]]
        assert (graph.unused_inputs, graph.warnings) == ([], [])
    told = graph_of(held, {0: (0, 1), "output": (0, 1)}, known=[1])
    assert (depgraph.path_lengths(told).reshape(2, 3, 2, 3)[0, :, 0] >= 0).tolist() == [
        [True, False, True],
        [False] * 3,
        [True, False, True],
    ]
    unknown = graph_of(held, {0: (0, 1), "output": (0, 1)})
    assert (depgraph.path_lengths(unknown).reshape(2, 3, 2, 3)[0, :, 0] >= 0).all()


def test_flags_nobody_tracks_are_known(program):
    graph = graph_of(program, {"queries": 0})
    assert graph.warnings == ["mask: boolean and not tracked, so held at its example value"]
    lengths = depgraph.path_lengths(graph_of(program, {"x": 1}), "x", "output.parts.0")
    assert (lengths[[0, 1, 3]] > 0).all()
    assert (lengths[2] == -1).all()
    tracked = graph_of(program, {"x": 1, "mask": 0})
    assert tracked.warnings == []
    assert (depgraph.path_lengths(tracked, "x", "output.parts.0") > 0).all()
    assert (depgraph.path_lengths(tracked, "mask", "output.parts.0") > 0).all()
    assert graph_of(program, {"x": 1}, known=["mask"]).warnings == []


def test_inputs_without_values():
    with torch.device("meta"):
        program = capture(nn.Linear(2, 2), (R(1, 3, 2),))
    assert graph_of(program).inputs["input"].positions == (1,)
    with pytest.raises(PositionError, match="input is on the meta device and has no value to be held at"):
        plan(program, {"output": 1}, ["input"])


def embedded(ids):
    return F.embedding(ids, torch.ones(5, 2))


KERNEL = torch.ones(2, 2, 2, 2)
INTEGERS = torch.zeros(2, 3, dtype=torch.long)
INFERRED = {
    "1-d convolution": (nn.Conv1d(2, 2, 2), R(1, 2, 4), (2,)),
    "1-d convolution of one example": (nn.Conv1d(2, 2, 2), R(2, 4), (1,)),
    "2-d convolution": (nn.Conv2d(2, 2, 2), R(1, 2, 4, 5), (2, 3)),
    "3-d convolution": (nn.Conv3d(1, 1, 1), R(1, 1, 2, 2, 2), (2, 3, 4)),
    "transposed convolution": (nn.ConvTranspose2d(2, 2, 2), R(1, 2, 4, 5), (2, 3)),
    "padded convolution": (Apply(lambda x: F.conv1d(F.pad(x, (2, 0)), torch.ones(2, 2, 3))), R(1, 2, 4), (2,)),
    "padding mode": (nn.Conv1d(2, 2, 3, padding="same"), R(1, 2, 4), (2,)),
    "images with channels last": (Apply(lambda x: F.conv2d(x.permute(0, 3, 1, 2), KERNEL)), R(1, 4, 5, 2), (1, 2)),
    "sequences with channels last": (Apply(lambda x: F.conv1d(x.mT, KERNEL[0])), R(1, 4, 2), (1,)),
    "one image": (Apply(lambda x: F.conv2d(x.unsqueeze(0), KERNEL)), R(2, 4, 5), (1, 2)),
    "mean pooling": (nn.AvgPool1d(2), R(1, 2, 4), (2,)),
    "maximum pooling": (nn.MaxPool2d(2), R(1, 2, 4, 4), (2, 3)),
    "adaptive pooling": (nn.AdaptiveAvgPool2d(2), R(1, 2, 4, 4), (2, 3)),
    "embedding": (Apply(embedded), INTEGERS, (1,)),
    "embedding without a batch": (Apply(embedded), INTEGERS[0], (0,)),
    "embedding of more axes": (Apply(embedded), INTEGERS[None], (1, 2)),
    "embedding of a cast": (Apply(lambda i: embedded(i.long())), INTEGERS.int(), (1,)),
    "lstm, batch first": (nn.LSTM(2, 2, batch_first=True), R(3, 4, 2), (1,)),
    "lstm, time first": (nn.LSTM(2, 2), R(3, 4, 2), (0,)),
    "lstm without a batch": (nn.LSTM(2, 2, batch_first=True), R(4, 2), (0,)),
    "gru, time first": (nn.GRU(2, 2), R(3, 4, 2), (0,)),
    "rnn, batch first": (nn.RNN(2, 2, batch_first=True), R(3, 4, 2), (1,)),
    "relu rnn, time first": (nn.RNN(2, 2, nonlinearity="relu"), R(3, 4, 2), (0,)),
    "integers": (Apply(lambda i: i * 2), INTEGERS, (1,)),
    "one axis of integers": (Apply(lambda i: i * 2), INTEGERS[0], ()),
    "floats of three axes": (nn.Linear(2, 2), R(3, 4, 2), (1,)),
    "floats of four axes": (nn.Linear(2, 2), R(3, 4, 5, 2), (1,)),
    "floats of two axes": (nn.Linear(2, 2), R(4, 2), ()),
    "a number": (Apply(lambda x: x * 2), torch.tensor(1.0), ()),
    "complex numbers": (Apply(lambda x: x.real * 2), torch.zeros(2, 3, 2, dtype=torch.complex64), (1,)),
    "what is not used": (Apply(lambda x: torch.ones(2)), R(3, 4, 2), (1,)),
}


@pytest.mark.parametrize("case", INFERRED)
def test_inference(case):
    model, value, axes = INFERRED[case]
    program = capture(model, (value,))
    found = plan(program, None, None)
    name = program.inputs[0].name
    assert found.tracked == ({name: axes} if axes else {})
    word = f"axes {', '.join(map(str, axes))}" if len(axes) > 1 else f"axis {''.join(map(str, axes))}"
    assert found.notes == ([f"{name}: tracked along {word} (inferred)"] if axes else [])


def test_inference_for_each_of_several_inputs():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.rnn = nn.Embedding(4, 2), nn.GRU(2, 2)

        def forward(self, ids, image, sequence):
            return self.embed(ids), F.avg_pool2d(image, 2), self.rnn(sequence)

    program = capture(Model(), (INTEGERS, R(1, 1, 4, 4), R(5, 1, 2)))
    assert plan(program, None, None).tracked == {"ids": (1,), "image": (2, 3), "sequence": (0,)}


def test_states_and_kernels_are_no_sequences():
    program = capture(Apply(lambda x, w: F.conv1d(x, w)), (R(1, 2, 5), R(2, 2, 3)))
    assert plan(program, None, None).tracked == {"args.0": (2,), "args.1": (1,)}
    program = capture(nn.GRU(2, 2), (R(5, 3, 2), R(1, 3, 2)))
    assert plan(program, None, None).tracked == {"input": (0,)}
    program = capture(nn.LSTM(2, 2, batch_first=True), (R(3, 5, 2), (R(1, 3, 2), R(1, 3, 2))))
    assert plan(program, None, None).tracked == {"input": (1,)}


def test_what_was_chosen_is_said():
    graph = depgraph.trace(nn.Conv2d(1, 1, 1), (R(1, 1, 2, 3),))
    assert graph.warnings == ["input: tracked along axes 2, 3 (inferred)"]
    assert graph.inputs["input"].positions == graph.outputs["output"].positions == (2, 3)


def test_nothing_is_inferred_where_something_is_named():
    program = capture(Apply(lambda x, y: x + y), (R(1, 3, 2), R(1, 3, 2)))
    found = plan(program, {0: 1}, None)
    assert found.tracked == {"args.0": (1,)}
    # Naming an output alone leaves the inputs to be chosen.
    assert plan(program, {"output": 2}, None).tracked == {"args.0": (1,), "args.1": (1,)}


def test_known_inputs_are_not_tracked():
    program = capture(Apply(lambda x, y: x + y), (R(1, 3, 2), R(1, 3, 2)))
    assert plan(program, None, ["args.1"]).tracked == {"args.0": (1,)}


OUTPUTS = {
    "moved": (lambda x: x.transpose(1, 2) * 2, {0: 1}, (2,)),
    "flattened": (lambda x: x.reshape(-1, 2) * 2, {0: 1}, (0,)),
    "time first": (lambda x: x.transpose(0, 1) * 2, {0: 1}, (0,)),
    "gathered": (lambda x: x.mean(1), {0: 1}, ()),
    "the one of the input's size": (lambda x: x[:, :, None] + x[:, None, :3], {0: 1}, (1,)),
    "both of the input's size": (lambda x: x[:, :, None] + x[:, None, :], {0: 1}, (1, 2)),
    "neither of the input's size": (lambda x: x[:, 1:, None] + x[:, None, 2:], {0: 1}, (1, 2)),
    "all that are tracked": (lambda x: x * 2, {0: (1, 2)}, (1, 2)),
    "shorter": (lambda x: x[:, ::2] * 2, {0: 1}, (1,)),
    "constant": (lambda x: x * 0, {0: 1}, ()),
}


@pytest.mark.parametrize("case", OUTPUTS)
def test_axes_of_outputs(case):
    function, positions, axes = OUTPUTS[case]
    graph = depgraph.trace(Apply(function), (R(1, 5, 2),), positions=positions)
    assert graph.outputs["output"].positions == axes


def test_an_output_gathers_what_is_not_told_apart():
    graph = depgraph.trace(nn.LSTM(2, 2, bidirectional=True), (R(4, 1, 2),), positions={"input": 0, "output.1": ()})
    terminal = graph.outputs["output.1"]  # the last states of both directions
    assert terminal.count == 1
    assert len(terminal.nodes.row(0)) == 2
    assert depgraph.path_lengths(graph, "input", "output.1")[:, 0].tolist() == [1, 2, 2, 1]


def test_two_outputs_of_one_model():
    graph = depgraph.trace(Apply(lambda x: (x * 2, x.sum(1))), (R(1, 3, 2),))
    assert [t.positions for t in graph.outputs.values()] == [(1,), ()]
    assert depgraph.path_lengths(graph, target="output.1").tolist() == [[1]] * 3


@pytest.mark.parametrize("positions", [None, {"input": 0}], ids=["inferred", "named"])
def test_an_empty_sequence(positions):
    with pytest.raises(depgraph.TracingError, match=r"\(0, 1, 3\)"):
        depgraph.trace(torch.nn.GRU(3, 4).eval(), (torch.randn(0, 1, 3),), positions=positions)


def test_an_axis_given_as_a_word():
    with pytest.raises(depgraph.PositionError, match="there is no axis 'time'"):
        depgraph.trace(torch.nn.GRU(3, 4).eval(), (torch.randn(2, 1, 3),), positions={"input": "time"})


@pytest.mark.parametrize(
    ("positions", "known", "message"),
    [
        ("x", None, r"positions is a dict from names to axes, such as .*; got 'x'\."),
        ([1], None, r"positions is a dict from names to axes, such as .*; got \[1\]\."),
        ({"x"}, None, r"positions is a dict from names to axes, such as .*; got \{'x'\}\."),
        ({True: 1}, None, "Inputs and outputs go by names, or numbers from 0 on; got True."),
        ({0: torch.tensor(1)}, None, r"args.0 of shape .* there is no axis tensor\(1\)\."),
        ({0: {1: 2}}, None, r"args.0 of shape .* there is no axis \{1: 2\}\."),
        (None, 1.5, r"known is a list of inputs by their names, such as \['mask'\]; got 1\.5\."),
        (None, torch.ones(2), r"known is a list of inputs .*; got a tensor of shape \(2,\)\."),
        (None, True, "Inputs and outputs go by names, or numbers from 0 on; got True."),
        (None, [["y"]], r"Inputs and outputs go by names, or numbers from 0 on; got \['y'\]\."),
    ],
)
def test_other_forms_are_refused(positions, known, message):
    with pytest.raises(PositionError, match=message):
        depgraph.trace(Apply(lambda x: x * 2), (R(1, 3, 2),), positions=positions, known=known)


def test_forms_that_stand_for_the_same():
    class Masked(nn.Module):
        def forward(self, x, mask):
            return x * mask

    args = R(1, 3, 2), torch.ones(1, 3, 1)
    for known in ("mask", 1, ["mask"], iter(["mask"]), {"mask": None}):
        assert depgraph.trace(Masked(), args, known=known).known_inputs == ["mask"]
    for axes in (1, [1], np.int64(1), np.array([1]), (-2,), range(1, 2)):
        assert depgraph.trace(Masked(), args, positions={np.int64(0): axes}).inputs["x"].positions == (1,)
