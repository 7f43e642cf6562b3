"""`depgraph.verify`: faults are found, and what is no fault is not taken for one."""

import random

import numpy as np
import pytest
import torch
from torch import nn

import depgraph
from tests.verification.models import (
    Apply,
    Attention,
    Branching,
    Counting,
    EndsAtItsOwnLargest,
    Gated,
    MadeUp,
    Queries,
    Single,
    Unsteady,
)

X = {"x": 1, "output": 1}
BOTH = "float64 and float32"


def verified(model, *args, positions=X, known=None, **options):
    graph = depgraph.trace(model, args, positions=positions, known=known)
    return depgraph.verify(graph, model, args, **options)


@pytest.mark.parametrize(
    ("model", "args", "positions"),
    [
        (nn.LSTM(2, 3, 2, bidirectional=True), (torch.randn(4, 1, 2),), {"input": 0, "output.0": 0}),
        (nn.GRU(2, 3, batch_first=True), (torch.randn(2, 4, 2), torch.randn(1, 2, 3)), {"input": (0, 1), "hx": 1}),
        (nn.Conv1d(2, 2, 3, dilation=2), (torch.randn(2, 2, 9),), {"input": (0, 2), "output": (2, 0)}),
        (nn.Conv2d(1, 1, 3, padding=1), (torch.randn(1, 1, 4, 5),), {"input": (3, 2), "output": (2, 3)}),
        (nn.TransformerEncoderLayer(8, 2, 8, batch_first=True).eval(), (torch.randn(2, 5, 8),), {"src": (0, 1)}),
        (nn.TransformerEncoderLayer(8, 2, 8, batch_first=True), (torch.randn(2, 5, 8),), {"src": (0, 1)}),
        (nn.Embedding(5, 3), (torch.tensor([[0, 4, 2]]),), {"input": 1}),
        (nn.BatchNorm1d(3), (torch.randn(4, 3),), {"input": (0, 1), "output": (0, 1)}),
    ],
    ids=["lstm", "gru", "conv1d", "conv2d", "encoder", "encoder in training", "embedding", "batch norm in training"],
)
def test_exact(model, args, positions):
    verdict = verified(model, *args, positions=positions)
    assert verdict.exact, verdict
    assert verdict.sound
    assert (list(verdict.missed), list(verdict.extra), verdict.notes, verdict.dtype) == ([], [], [], BOTH)


def test_counts():
    verdict = verified(nn.LSTM(2, 3), torch.randn(5, 1, 2), positions={"input": 0, "output.0": 0})
    assert (verdict.compared, verdict.pairs) == (5 * (5 + 1 + 1), 15 + 5 + 5)
    assert str(verdict) == "Exact: of 35 pairs, the 25 with a path are those that measuring shows."


def test_a_dependence_that_the_graph_lacks():
    args = (torch.randn(1, 4, 4),)
    graph = depgraph.trace(Attention(causal=True), args, positions=X)
    verdict = depgraph.verify(graph, Attention(causal=False), args)
    assert not verdict.sound
    assert not verdict.exact
    assert [(p.source_position, p.target_position) for p in verdict.missed] == [
        ((i,), (j,)) for i in range(4) for j in range(i)
    ]
    assert verdict.missed[0] == ("x", (1,), "output", (0,))
    assert not verdict.extra
    assert str(verdict) == (
        "Not sound: 6 of 16 pairs depend on each other without a path in the graph. The first is x[1] → output[0]."
    )


def test_a_path_that_nothing_shows():
    args = (torch.randn(1, 4, 4),)
    graph = depgraph.trace(Attention(causal=False), args, positions=X)
    verdict = depgraph.verify(graph, Attention(causal=True), args)
    assert verdict.sound
    assert not verdict.exact
    assert len(verdict.extra) == 6
    assert str(verdict) == (
        "Sound: measuring shows no dependence that the graph lacks. Of 16 pairs with a path, 6 did not show in "
        "4 draws. The first is x[1] → output[0]."
    )


@pytest.mark.parametrize("place", range(5))
def test_one_missing_read_is_found(place):
    """A graph of a model that reads one element less."""

    def shorter(x):
        return torch.cat([x[:, :place], torch.zeros_like(x[:, :1]), x[:, place + 1 :]], 1).sum(1, keepdim=True)

    args = (torch.randn(1, 5, 2),)
    graph = depgraph.trace(Apply(shorter), args, positions=X)
    verdict = depgraph.verify(graph, Apply(lambda x: x.sum(1, keepdim=True)), args)
    assert list(verdict.missed) == [("x", (place,), "output", (0,))]


def test_parameters_are_drawn_anew():
    model = Gated()
    verdict = verified(model, torch.randn(1, 4, 2))
    assert verdict.exact
    assert verdict.pairs == 8
    assert model.gate.item() == 0


def test_values_that_only_derivatives_or_only_steps_show():
    assert verified(Apply(lambda x: x.detach().cumsum(1)), torch.randn(1, 4, 2)).exact
    assert verified(Apply(lambda x: x.round().cumsum(1)), torch.randn(1, 4, 2)).exact
    assert verified(Apply(lambda x: 1e-9 * x.cumsum(1)), torch.randn(1, 4, 2)).exact


def test_a_made_up_derivative_is_no_dependence():
    graph = depgraph.trace(MadeUp(), (torch.randn(1, 4, 2),), positions=X)
    verdict = depgraph.verify(graph, MadeUp(), (torch.randn(1, 4, 2),))
    assert verdict.exact
    assert verdict.pairs == 4


def test_rounding_is_no_dependence():
    """A convolution by Fourier transform is causal but for rounding, and reads everything all the same."""

    def convolved(x):
        kernel = torch.fft.rfft(torch.tensor([1.0, 0.5, 0.25], dtype=x.dtype), 16)
        return torch.fft.irfft(torch.fft.rfft(x, 16, dim=1) * kernel[:, None], 16, dim=1)[:, :8]

    verdict = verified(Apply(convolved), torch.randn(1, 8, 1))
    assert verdict.sound
    assert verdict.pairs == 64
    assert len(verdict.extra) == 64 - 8 - 7 - 6


def test_no_number_is_like_another():
    def undefined(x):
        return torch.cat([x[:, :1] - torch.inf + torch.inf, x[:, 1:]], 1)

    verdict = verified(Apply(undefined), torch.randn(1, 3, 2))
    assert verdict.exact
    assert (verdict.compared, verdict.pairs) == (6, 2)
    assert verdict.notes == [
        "output: 2 of 6 elements are NaN on the example inputs, and what they depend on may not show"
    ]


def test_outputs_that_are_no_numbers_show_nothing():
    model, args = Apply(lambda x: (-x.cumsum(1).abs() - 1).sqrt()), (torch.randn(1, 4, 2),)
    less = depgraph.trace(Apply(lambda x: x * 1), args, positions=X)
    for graph in (depgraph.trace(model, args, positions=X), less):
        verdict = depgraph.verify(graph, model, args)
        assert (verdict.compared, verdict.pairs, len(verdict.extra)) == (0, 0, 0)
        assert not verdict.sound
        assert not verdict.exact
        assert str(verdict) == (
            "Nothing could be compared, so nothing is said of the graph: output: 8 of 8 elements are NaN on the "
            "example inputs, and what they depend on may not show."
        )


def test_a_position_that_is_no_number_in_part_is_compared():
    model, args = Apply(lambda x: torch.cat([x.cumsum(1), x * torch.nan], 2)), (torch.randn(1, 3, 2),)
    verdict = verified(model, *args)
    assert verdict.exact
    assert verdict.compared == 9
    assert verdict.notes[0].startswith("output: 6 of 12 elements are NaN")
    graph = depgraph.trace(Apply(lambda x: torch.cat([x, x], 2) * 1), args, positions=X)
    assert len(depgraph.verify(graph, model, args).missed) == 3


def test_a_precision_in_which_the_outputs_are_numbers():
    model, args = EndsAtItsOwnLargest(), (torch.randn(1, 4, 2),)
    assert model.double()(args[0].double()).isnan().all()
    verdict = verified(model, *args)
    assert verdict.exact
    assert (verdict.pairs, verdict.dtype) == (10, "float32")
    assert verdict.notes == [
        "in float64 more of what the model returns is infinite or NaN, so it ran in float32: weak dependences may not "
        "show"
    ]
    graph = depgraph.trace(Apply(lambda x: x * 1), args, positions=X)
    assert len(depgraph.verify(graph, model, args).missed) == 6


def test_infinite_outputs_are_no_reason_for_another_precision():
    verdict = verified(Apply(lambda x: torch.cat([x, torch.full_like(x, -torch.inf)], 2)), torch.randn(1, 3, 2))
    assert verdict.exact
    assert (verdict.dtype, verdict.notes) == (BOTH, [])


def test_known_inputs_keep_their_values():
    class Masked(nn.Module):
        def forward(self, x, mask):
            return x * mask

    mask = torch.tensor([1.0, 0.0, 1.0])[None, :, None]
    verdict = verified(Masked(), torch.randn(1, 3, 2), mask, known=["mask"])
    assert verdict.exact
    assert (verdict.compared, verdict.pairs) == (9, 2)
    verdict = verified(Masked(), torch.randn(1, 3, 2), mask, positions={**X, "mask": 1})
    assert verdict.exact
    assert (verdict.compared, verdict.pairs) == (18, 6)


def test_booleans_and_whole_numbers():
    class Chosen(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(3, 2)  # no index but 0, 1 and 2 will do

        def forward(self, ids, flags):
            return torch.where(flags[..., None], self.table(ids), self.table(ids.flip(1)))

    args = (torch.tensor([[0, 1, 2, 1]]), torch.tensor([[True, False, True, True]]))
    verdict = verified(Chosen(), *args, positions={"ids": 1, "flags": 1, "output": 1}, draws=8)
    assert verdict.exact
    assert (verdict.pairs, verdict.notes) == (8 + 4, [])


def test_the_branch_that_was_analysed():
    for sign, pairs in ((1, 10), (-1, 4)):
        verdict = verified(Branching(), sign * torch.rand(1, 4, 2))
        assert verdict.exact, verdict
        assert verdict.pairs == pairs


def test_runs_that_go_another_way_are_left_out():
    verdict = verified(Branching(), torch.tensor([1.0, 1.0, -1.9]).reshape(1, 3, 1))
    assert verdict.sound
    assert any("went another way" in note for note in verdict.notes)


def test_where_every_other_value_leads_elsewhere_nothing_is_compared():
    model, args = Apply(lambda x: torch.tensor(x.tolist()).cumsum(1)), (torch.rand(1, 3, 1),)
    verdict = verified(model, *args)
    assert (verdict.compared, verdict.sound, verdict.exact) == (0, False, False)
    assert str(verdict).startswith("Nothing could be compared, so nothing is said of the graph: x: at 3 position(s)")
    assert "x: at 3 position(s) the model takes no other values, so they were left out" in verdict.notes


def test_what_differs_by_itself_is_left_out():
    model = Unsteady()
    verdict = verified(model, torch.randn(1, 3, 2))
    assert verdict.exact
    assert verdict.compared == 9
    assert verdict.notes == ["output: 1 positions differ from run to run by themselves, so they were left out"]


def test_other_random_numbers_are_no_dependence():
    model = nn.RReLU().train()
    verdict = verified(model, torch.randn(1, 6, 1), positions={"input": 1, "output": 1}, draws=8)
    assert verdict.exact, verdict
    assert verdict.pairs == 6


def test_a_random_number_generator_of_the_models_own():
    generator = torch.Generator().manual_seed(0)
    model = Apply(lambda x: torch.cat([x.cumsum(1), torch.rand(1, 1, 2, generator=generator)], 1))
    verdict = verified(model, torch.randn(1, 3, 2))
    assert verdict.exact
    assert (verdict.compared, verdict.pairs, verdict.notes) == (12, 6, [])  # it starts from where it was each time


def test_single_precision_where_it_has_to_be():
    verdict = verified(Single(), torch.randn(1, 4, 2))
    assert verdict.exact
    assert verdict.dtype == "float32"
    assert verdict.notes == ["the model does not run in float64, so it ran in float32: weak dependences may not show"]


def test_parameters_as_inputs():
    positions = {"x": 1, "queries": 0, "output": 1}
    verdict = verified(Queries(), torch.randn(2, 4, 4), positions=positions)
    assert verdict.exact
    assert (verdict.compared, verdict.pairs) == (4 * 3 + 3 * 3, 4 * 3 + 3)
    graph = depgraph.trace(Queries(), (torch.randn(2, 4, 4),), positions=positions)
    with pytest.raises(depgraph.GraphError, match="input queries of shape"):
        depgraph.verify(graph, Attention(causal=True), (torch.randn(2, 4, 4),))


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
@pytest.mark.filterwarnings("ignore:Sparse ... tensor support is in beta")
def test_sparse_tensors(layout):
    class Product(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("matrix", torch.eye(4).roll(1, 1).to_sparse(layout=layout))

        def forward(self, a, x):
            return torch.sparse.mm(a, self.matrix @ x)

    args = torch.eye(4).to_sparse(layout=layout), torch.randn(4, 3)
    verdict = verified(Product(), *args, positions={"a": (0, 1), "x": 0, "output": 0})
    assert verdict.exact
    assert (verdict.compared, verdict.pairs, verdict.notes) == (20 * 4, 16 + 16, [])


def test_sparse_outputs():
    assert verified(Apply(lambda x: x[0].to_sparse()), torch.randn(1, 4, 2), positions={"x": 1, "output": 0}).exact


def test_nested_arguments_are_refused():
    graph = depgraph.trace(Apply(lambda x: x * 2), (torch.randn(2, 3, 4),), positions=X)
    nested = torch.nested.nested_tensor([torch.randn(3, 4), torch.randn(2, 4)], layout=torch.jagged)
    with pytest.raises(depgraph.TracingError, match="The input x of Apply is a nested tensor"):
        depgraph.verify(graph, Apply(lambda x: x * 2), (nested,))


def test_exported_programs():
    args = (torch.randn(2, 5, 8),)
    program = torch.export.export(nn.TransformerEncoderLayer(8, 2, 8, batch_first=True).eval(), args)
    graph = depgraph.trace(program, args, positions={"src": (0, 1), "output": (0, 1)})
    verdict = depgraph.verify(graph, program, args)
    assert verdict.exact
    assert verdict.pairs == 50
    assert depgraph.verify(graph, program).exact


def test_several_inputs_and_outputs():
    class Net(nn.Module):
        def forward(self, batch, *, scale):
            return {"sum": batch["a"].sum(1), "both": (batch["a"] * scale, batch["b"][0])}

    kwargs = {"batch": {"a": torch.randn(1, 3, 2), "b": [torch.randn(2)]}, "scale": torch.randn(2)}
    graph = depgraph.trace(Net(), (), kwargs, positions={"batch.a": 1})
    verdict = depgraph.verify(graph, Net(), (), kwargs)
    assert verdict.exact
    assert verdict.pairs == 3 + 3 + 3 + 1
    assert verdict.compared == 5 * (1 + 3 + 1)


def test_arguments_that_the_model_adds_to():
    class Remembering(nn.Module):
        def forward(self, x, memory):
            memory["seen"].append(x)
            return torch.stack(memory["seen"]).sum(0)

    memory = {"seen": []}
    graph = depgraph.trace(Remembering(), (torch.randn(1, 3, 2), memory), positions=X)
    verdict = depgraph.verify(graph, Remembering(), (torch.randn(1, 3, 2), memory))
    assert verdict.exact
    assert (verdict.pairs, verdict.notes) == (3, [])
    assert memory["seen"] == []


def test_the_model_stays_as_it_is():
    model = nn.Sequential(Counting(), nn.BatchNorm1d(4), nn.Dropout(0.5)).train()
    x = torch.randn(2, 4, 3)
    graph = depgraph.trace(model, (x,), positions={"input": 1})
    before = {name: value.clone() for name, value in model.state_dict().items()}
    copy, random = x.clone(), torch.get_rng_state()
    verdict = depgraph.verify(graph, model, (x,))
    assert verdict.exact, verdict
    after = model.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert torch.equal(x, copy)
    assert torch.equal(torch.get_rng_state(), random)
    assert all(module.training for module in model.modules())
    assert torch.get_default_dtype() == torch.float32
    assert all(parameter.dtype == torch.float32 for parameter in model.parameters())


def test_the_mode_is_that_of_the_graph():
    class Mixes(nn.Module):
        def forward(self, x):
            return x.cumsum(1) if self.training else x.clone()

    args = (torch.randn(1, 4, 2),)
    graph = depgraph.trace(Mixes().train(), args, positions=X)
    model = Mixes().eval()
    assert depgraph.verify(graph, model, args).exact
    assert not model.training


def test_a_random_choice_where_there_are_many():
    verdict = verified(Apply(lambda x: x.cumsum(1)), torch.randn(1, 50, 1), limit=7)
    assert verdict.exact
    assert verdict.compared == 7 * 50
    again = verified(Apply(lambda x: x.cumsum(1)), torch.randn(1, 50, 1), limit=7)
    assert again.pairs == verdict.pairs


def test_progress():
    seen = []
    verified(Attention(causal=False), torch.randn(1, 4, 4), progress=lambda done, total: seen.append((done, total)))
    done, totals = np.array(seen).T
    assert (np.diff(done) == 1).all()
    assert set(totals) == {4 * (4 + 4) + 4}
    assert done[-1] <= totals[0]


def test_a_model_without_values():
    model = Attention(causal=True).to("meta")
    x = torch.randn(1, 4, 4)
    verdict = depgraph.verify(depgraph.trace(model, (x,), positions=X), model, (x,))
    assert verdict.exact
    assert verdict.pairs == 10
    assert all(parameter.is_meta for parameter in model.parameters())


def test_an_empty_input():
    verdict = verified(Apply(lambda x: x + 1), torch.randn(1, 0, 2))
    assert (verdict.compared, verdict.sound, verdict.missed[:], verdict.extra[:]) == (0, False, [], [])
    assert verdict.notes == [
        "no input can be changed: the model has none, or they are empty or held at their example values",
        "the outputs hold no elements",
    ]


@pytest.mark.parametrize(
    ("model", "args", "error", "message"),
    [
        (Attention(causal=True), (torch.randn(1, 3, 4),), depgraph.GraphError, r"x \(1, 4, 4\), the model is given x"),
        (nn.Linear(4, 4), (torch.randn(1, 4, 4),), depgraph.GraphError, "the model is given input"),
        (Apply(lambda x: x[:, :2]), (torch.randn(1, 4, 4),), depgraph.GraphError, "outputs of shapes"),
        (Attention(causal=True), (torch.empty(1, 4, 4, device="meta"),), depgraph.TracingError, "on the meta device"),
        (Apply(lambda x: x[:, 7]), (torch.randn(1, 4, 4),), depgraph.TracingError, "fails on its example inputs"),
        ("model", (), depgraph.TracingError, "A model is a torch.nn.Module; got str"),
    ],
)
def test_refused(model, args, error, message):
    graph = depgraph.trace(Attention(causal=True), (torch.randn(1, 4, 4),), positions=X)
    with pytest.raises(error, match=message):
        depgraph.verify(graph, model, args)


@pytest.mark.parametrize("option", ["draws", "limit"])
def test_numbers_refused(option):
    with pytest.raises(depgraph.GraphError, match=f"needs {option} of at least 1; got 0"):
        verified(Gated(), torch.randn(1, 2, 2), **{option: 0})


class Chance(nn.Module):
    """A model in which chance decides what is read."""

    def __init__(self, draw):
        super().__init__()
        self.draw = draw

    def forward(self, x):
        for step in (1, 2):
            if self.draw() < 0.5:
                x = x.roll(step, 1)
        return x


@pytest.mark.parametrize(
    "draw",
    [lambda: torch.rand(()), random.random, lambda: np.random.rand()],  # noqa: NPY002, ids=["torch", "random", "numpy"]
)
def test_chance_decides_as_in_the_graph(draw):
    for _ in range(3):
        verdict = verified(Chance(draw), torch.randn(1, 5, 2))
        assert verdict.exact
        assert verdict.compared == 25
