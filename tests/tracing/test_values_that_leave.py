"""Values that leave tensors: what the model does with them on the example inputs, and what is said of it."""

import ctypes
import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import depgraph
from depgraph.tracing.capture import capture

X = torch.arange(24.0).reshape(2, 3, 4) / 10 + 0.1


def targets(program):
    names = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    return [name for name in names if "getitem" not in name]


def said(program):
    """Return the warnings without the places, after checking that each has one in this file."""
    places = [warning.partition(": ")[0] for warning in program.warnings]
    assert all(place.rpartition(":")[0].endswith("test_values_that_leave.py") for place in places)
    return [warning.partition(": ")[2] for warning in program.warnings]


def reached(program, result):
    """Return the names of what a result is computed from, but for unnamed constants."""
    found = {result}
    for node in reversed(program.graph.nodes):
        if node in found:
            found.update(node.all_input_nodes)
    return {program.sources[node.name].name for node in found if node.op == "placeholder"} - {""}


def line_of(cls, text):
    import inspect

    lines, start = inspect.getsourcelines(cls)
    return start + next(k for k, line in enumerate(lines) if text in line)


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        if torch.isfinite(x).all() and x.sum() > 0:
            return self.linear(x).cos()
        return x.sin().flip(1)


def test_the_branch_taken_is_analysed(faithful):
    program = faithful(Branch(), (X,))
    assert targets(program) == ["aten.linear.default", "aten.cos.default"]
    condition = (
        '"if torch.isfinite(x).all() and x.sum() > 0" depends on input x; True for the example inputs, '
        "only that branch is analysed"
    )
    assert said(program) == [condition]
    assert program.warnings[0].endswith(f":{line_of(Branch, 'if torch')}: {condition}")
    found = [program.where(node) for node in program.graph.nodes if node.op == "call_function"]
    assert [module for module, _ in found] == ["linear", ""]
    assert {int(line.rpartition(":")[2]) for _, line in found} == {line_of(Branch, "cos()")}
    other = faithful(Branch(), (-X,))
    assert targets(other) == ["aten.sin.default", "aten.flip.default"]


def test_numbers_are_named(faithful):
    class Model(nn.Module):
        def forward(self, x, lengths):
            n = int(lengths.max().item())
            return x[:, :n].cumsum(1) if n % 2 else x

    program = faithful(Model(), (X, torch.tensor([2, 3])))
    assert said(program) == [
        '"n = int(lengths.max().item())" makes a number of input lengths; 3 for the example inputs, '
        "what Python makes of it is as there"
    ]


def test_numbers_that_python_does_not_ask_for(faithful):
    class Model(nn.Module):
        def forward(self, x, n):
            for i in range(n):
                x = x + i
            return x[:, :n]

    program = faithful(Model(), (X, torch.tensor(2)))
    assert said(program) == [
        f'"{code}" makes a number of input n; 2 for the example inputs, what Python makes of it is as there'
        for code in ("for i in range(n)", "return x[:, :n]")
    ]


def test_checks_and_prints_decide_nothing(faithful, capsys):
    class Model(nn.Module):
        def forward(self, x):
            assert x.sum() > 0
            print(f"the sum is {x.sum():.1f}, {x.sum()}")
            return x + 1

    program = faithful(Model(), (X,))
    assert program.warnings == []
    assert "the sum is 30.0" in capsys.readouterr().err


def test_decisions_made_by_known_values_need_no_warning(faithful):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerDecoderLayer(4, 2, 8, 0.0, batch_first=True)
            self.decoder = nn.TransformerDecoder(layer, 1)
            self.register_buffer("mask", torch.full((3, 3), float("-inf")).triu(1))
            self.register_buffer("kept", torch.tensor([True, False, True]))

        def forward(self, x):
            return self.decoder(x, x, tgt_mask=self.mask)[:, self.kept]

    program = faithful(Model().eval(), (X,))
    assert program.warnings == []
    assert targets(program).count("aten.scaled_dot_product_attention.default") == 2


def test_decisions_made_by_parameters_or_a_mask_that_is_an_input(faithful):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Parameter(torch.tensor(1.0))
            self.transformer = nn.Transformer(4, 2, 1, 1, 8, 0.0, batch_first=True)

        def forward(self, x, mask):
            if self.gate > 0:
                x = x + 1
            return self.transformer(x, x, tgt_mask=mask)

    program = faithful(Model().eval(), (X, nn.Transformer.generate_square_subsequent_mask(3)))
    assert said(program) == [
        '"if self.gate > 0" depends on parameter gate; True for the example inputs, only that branch is analysed',
        '"return self.transformer(x, x, tgt_mask=mask)" depends on input mask; True for the example inputs, '
        "only that branch is analysed",
    ]


def test_sizes_that_depend_on_values(faithful):
    class Model(nn.Module):
        def forward(self, x, mask):
            rows, columns = torch.where(mask)
            return x[mask], torch.nonzero(mask), x.masked_select(mask[..., None]), rows, columns

    program = faithful(Model(), (X, torch.tensor([[True, False, True], [True, True, False]])))
    assert [tuple(leaf.value.shape) for leaf in program.outputs] == [(4, 4), (4, 2), (16,), (4,), (4,)]
    assert targets(program) == [
        "aten.where.default",
        "aten.index.Tensor",
        "aten.nonzero.default",
        "aten.unsqueeze.default",
        "aten.masked_select.default",
    ]
    sizes = '"{}" returns as much as input mask says; {} for the example inputs, only that size is analysed'
    line = "return x[mask], torch.nonzero(mask), x.masked_select(mask[..., None]), …"
    assert said(program) == [
        sizes.format("rows, columns = torch.where(mask)", "[(4,), (4,)]"),
        sizes.format(line, "(4, 4)"),
        sizes.format(line, "(4, 2)"),
        sizes.format(line, "(16,)"),
    ]


def test_more_sizes_that_depend_on_values(faithful):
    class Model(nn.Module):
        def forward(self, x, n):
            split = torch.split(x[0], n.tolist())
            return torch.repeat_interleave(x[1], n, dim=0), torch.unique(n), F.one_hot(n), *split

    program = faithful(Model(), (X, torch.tensor([2, 0, 1])))
    assert "aten.repeat_interleave.self_Tensor" in targets(program)
    line = "return torch.repeat_interleave(x[1], n, dim=0), torch.unique(n), F.one_…"
    size = f'"{line}" returns as much as input n says; {{}} for the example inputs, only that size is analysed'
    assert said(program) == [
        '"split = torch.split(x[0], n.tolist())" makes a number of input n; 2, 0 and 1 for the example inputs, '
        "what Python makes of it is as there",
        *map(size.format, ["(3, 4)", "[(3,), (0,), (0,)]", "(3, 3)"]),
    ]


@pytest.mark.parametrize(
    ("code", "shown"),
    [("torch.tensor_split(x, n, 1)[1]", "[1, 2]"), ("n.nonzero(as_tuple=True)[0]", "(2,)")],
)
def test_sizes_that_operators_find_out_inside(code, shown):
    class Model(nn.Module):
        def forward(self, x, n):
            return eval(code)

    (warning,) = capture(Model(), (X, torch.tensor([1, 2]))).warnings
    assert warning.endswith(
        f"returns as much as input n says; {shown} for the example inputs, only that size is analysed"
    )


def test_packed_sequences(faithful):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.LSTM(4, 5, batch_first=True)

        def forward(self, x, lengths):
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            return pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0]

    program = faithful(Model(), (X, torch.tensor([2, 3])))
    names = targets(program)
    order = [names.index(f"aten.{n}") for n in ("_pack_padded_sequence.default", "lstm.data")]
    assert order == sorted(order)
    assert names[-2:] == ["aten._pad_packed_sequence.default", "aten.index_select.default"]
    (cell,) = program.graph.find_nodes(op="call_function", target=torch.ops.aten.lstm.data)
    outputs = [cell, *cell.users]
    assert {program.where(node)[0] for node in outputs} == {"rnn"}
    assert all("test_values_that_leave.py:" in program.where(node)[1] for node in outputs)
    assert {s.name for s in program.sources.values() if s.kind == "parameter"} == {
        "rnn.weight_ih_l0",
        "rnn.weight_hh_l0",
        "rnn.bias_ih_l0",
        "rnn.bias_hh_l0",
    }
    assert said(program)
    assert all("input lengths" in warning and "input x" not in warning for warning in said(program))


def test_packed_sequences_as_inputs(faithful):
    packed = pack_padded_sequence(X, torch.tensor([3, 2]), batch_first=True)
    program = faithful(nn.LSTM(4, 3), (packed,))
    assert [leaf.name for leaf in program.inputs] == ["input.data", "input.batch_sizes"]
    assert [leaf.name for leaf in program.outputs][:2] == ["output.0.data", "output.0.batch_sizes"]


def test_containers_that_forward_writes_to():
    class Model(nn.Module):
        def forward(self, x, cache, settings):
            cache.append(x)
            settings["calls"] = settings.get("calls", 0) + 1
            return (x + len(cache) if x.sum() > 0 else x) * settings["calls"]

    cache, settings = [], {}
    program = capture(Model(), (X, cache, settings))
    (product,) = program.graph.find_nodes(op="call_function", target=torch.ops.aten.mul.Tensor)
    (total,) = program.graph.find_nodes(op="call_function", target=torch.ops.aten.add.Tensor)
    assert (total.args[1], product.args[1]) == (1, 1)
    assert (cache, settings) == ([], {})


def test_values_taken_out_of_pytorch(faithful):
    class Model(nn.Module):
        def forward(self, x):
            return x + torch.from_numpy(x.detach().numpy()).sum()

    assert said(faithful(Model(), (X,))) == [
        '"return x + torch.from_numpy(x.detach().numpy()).sum()" takes input x out of PyTorch; '
        "a tensor made of that is taken to read all of it"
    ]


def test_tensors_made_by_other_means():
    class Model(nn.Module):
        def __init__(self, read):
            super().__init__()
            self.read = read

        def forward(self, x):
            data = bytearray(ctypes.string_at(x.untyped_storage().data_ptr(), 96) if self.read else 96)
            return x + torch.frombuffer(data, dtype=torch.float32)[:4] if x.sum() > 0 else x

    program = capture(Model(read=True), (X,))
    assert "depgraph.python.default" in targets(program)
    assert said(program)[-1] == (
        '"return x + torch.frombuffer(data, dtype=torch.float32)[:4] if x.sum() >…" makes a tensor of shape (24,) '
        "by other means than PyTorch's operations; it is taken to read all inputs"
    )
    program = capture(Model(read=False), (X,))
    assert "depgraph.python.default" not in targets(program)
    assert len(said(program)) == 1


def test_a_tensor_of_which_nothing_could_be_found_out():
    class Model(nn.Module):
        def forward(self, x):
            if x[0, 0, 0] == X[0, 0, 0]:  # and no other value
                return x + torch.frombuffer(bytearray(16), dtype=torch.float32)
            return x

    assert said(capture(Model(), (X,)))[-1] == (
        '"return x + torch.frombuffer(bytearray(16), dtype=torch.float32)" makes a tensor of shape (4,) '
        "by other means than PyTorch's operations; it counts as constant"
    )


def test_state_written_on_the_way(faithful):
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("state", torch.zeros(4))
            self.register_buffer("count", torch.tensor(0))

        def forward(self, x):
            if x.sum() > 0:
                self.count += 1
            self.state[0] = x.sum()
            self.state = self.state * 2
            return x * self.state

    program = faithful(nn.Sequential(Inner(), nn.Linear(4, 4)), (X,))
    assert set(program.updates) == {"0.state", "0.count"}
    assert {s.name: s.mutated for s in program.sources.values()} == {
        "1.weight": False,
        "1.bias": False,
        "0.state": True,
        "0.count": True,
        "input": False,
    }


def test_parameters_written_through_data(faithful):
    class Masked(nn.Conv1d):
        def __init__(self):
            super().__init__(3, 3, 3)
            self.register_buffer("mask", torch.ones(3, 3, 3).tril())

        def forward(self, x):
            self.weight.data *= self.mask
            return super().forward(x)

    program = faithful(Masked(), (X,))
    assert list(program.updates) == ["weight"]
    assert targets(program) == ["aten.mul.Tensor", "aten.conv1d.default"]


def test_function_transforms(faithful):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            energy = torch.func.grad(lambda t: (self.linear(t) ** 2).sum())(x)
            return torch.vmap(self.linear)(x), energy, torch.func.jvp(torch.sin, (x,), (x,))

    program = faithful(Model(), (X,))
    assert reached(program, program.results[1]) == {"x", "linear.weight", "linear.bias"}


def test_higher_order_operators_inside():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x, flag):
            if flag.any():
                x = x * 2
            return torch.cond(flag.sum() > 0, lambda x: self.linear(x), lambda x: x.flip(1) * 1.0, (x,))

    program = capture(Model(), (X, torch.ones(3)))
    assert "cond" in targets(program)
    assert len(program.warnings) == 1


def test_models_without_data():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerDecoderLayer(4, 2, 8, batch_first=True)
            self.decoder = nn.TransformerDecoder(layer, 1)

        def forward(self, x):
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
            return self.decoder(x, x, mask)

    with torch.device("meta"):
        model = Model().eval()
    program = capture(model, (X,))
    assert program.warnings == []
    assert all(s.value.is_meta for s in program.sources.values() if s.kind == "parameter")
    assert tuple(program.outputs[0].value.shape) == (2, 3, 4)


@pytest.mark.parametrize("count", [1, 3])
def test_many_values_are_listed_shortly(count):
    class Model(nn.Module):
        def forward(self, x, n):
            for value in n:
                x = x[:, : int(value)]
            return x

    program = capture(Model(), (X, torch.arange(5, 5 - count, -1)))
    listed = {1: "5", 3: "5, 4 and 3"}[count]
    assert said(program) == [
        f'"x = x[:, : int(value)]" makes a number of input n; {listed} for the example inputs. '
        "What is computed from it is followed, what it decides is as there"
    ]


@pytest.mark.parametrize("taken", [torch.Tensor.numpy, np.asarray], ids=["numpy", "asarray"])
def test_memory_written_to_through_an_array(faithful, taken):
    class Behind(nn.Module):
        def forward(self, x):
            y = x.clone()
            array = taken(y)
            np.cumsum(array, axis=1, out=array)
            return y + 1

    program = faithful(Behind(), (X,))
    assert targets(program) == ["aten.clone.default", "depgraph.python.default", "aten.add.Tensor"]
    assert reached(program, program.results[0]) == {"x"}
    lengths = depgraph.path_lengths(depgraph.trace(Behind(), (X,), positions={"x": 1}))
    assert (lengths >= 0).all()


def test_memory_that_is_shared_and_only_read(faithful):
    class Beside(nn.Module):
        def forward(self, x):
            y = x.clone()
            total = float(y.numpy().sum())
            y += 1  # by PyTorch, which is seen
            return y * total

    faithful(Beside(), (X,))


def test_decisions_by_chance():
    class Chance(nn.Module):
        def __init__(self, draw):
            super().__init__()
            self.draw = draw

        def forward(self, x):
            return x.cos() if self.draw() < 2 else x.sin()

    for draw in (random.random, lambda: np.random.rand()):  # noqa: NPY002
        program = capture(Chance(draw), (X,))
        assert program.warnings == [
            "forward draws random numbers by Python's random or by NumPy: analysed with those that were drawn."
        ]
        assert targets(program) == ["aten.cos.default"]
    assert said(capture(Chance(lambda: torch.rand(())), (X,))) == [
        '"return x.cos() if self.draw() < 2 else x.sin()" depends on random numbers; True for the example inputs, '
        "only that branch is analysed"
    ]


def test_transforms_that_an_error_leaves_behind():
    class Nested(nn.Module):
        def forward(self, x):
            return torch.vmap(torch.vmap(lambda row: row.cumsum(0), in_dims=1, out_dims=1))(x)

    capture(Nested(), (X,))
    assert torch._C._functorch.maybe_current_level() is None


def test_numpy_inside_of_an_autograd_function(faithful):
    class Sum(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return torch.from_numpy(x.detach().numpy().cumsum(1))

    class Model(nn.Module):
        def forward(self, x):
            return Sum.apply(x)

    program = faithful(Model(), (X,))
    assert targets(program) == ["depgraph.python.default"]
    assert reached(program, program.results[0]) == {"x"}


def test_what_only_has_the_form_of_an_input_does_not_depend_on_it():
    class Ones(nn.Module):
        def forward(self, x):
            mask = torch.ones_like(x) * torch.full_like(x, 2.0)
            return x + 1 if mask.sum() > 0 else x

    assert capture(Ones(), (X,)).warnings == []
