"""`depgraph.verify` runs the user's own object: what shares memory goes on sharing it, and all of it is found."""

import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import depgraph
from tests.verification.models import Apply

X = {"x": 1, "output": 1}


class Along(nn.Module):
    """Reads nothing but what stands at the same place."""

    def forward(self, x):
        return x * 2


class Everything(nn.Module):
    """Reads everything."""

    def forward(self, x):
        return x + x.sum()


def against(told, model, *args, positions=X, **options):
    """Hold a model against the graph of another one."""
    return depgraph.verify(depgraph.trace(told, args, positions=positions), model, args, **options)


def test_a_view_that_is_an_attribute():
    class Shares(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("memory", torch.zeros(1, 4, 2))
            self.last = self.memory[:, -1:]

        def forward(self, x):
            self.memory.copy_(x)
            return x + self.last

    x = torch.randn(1, 4, 2)
    verdict = against(Along(), Shares(), x)
    assert [(p.source_position, p.target_position) for p in verdict.missed] == [((3,), (i,)) for i in range(3)]
    assert verdict.dtype == "float64 and float32"
    assert against(Apply(lambda x: x + x[:, -1:]), Shares(), x).exact


@pytest.mark.parametrize("kind", ["list", "closure", "view"])
def test_parameters_that_are_not_registered(kind):
    """A gate that is closed is still a connection, wherever it is kept."""

    class Gated(nn.Module):
        def __init__(self):
            super().__init__()
            gate = nn.Parameter(torch.zeros(()))
            self.held = [gate] if kind == "list" else (lambda: gate) if kind == "closure" else (gate, gate.detach())

        def gate(self):
            return self.held() if kind == "closure" else self.held[-1]

        def forward(self, x):
            return x + self.gate() * x.flip(1)

    model = Gated()
    verdict = against(Along(), model, torch.randn(1, 4, 2))
    assert len(verdict.missed) == 4
    assert model.gate().item() == 0


def test_tied_parameters_stay_tied():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Linear(2, 2, bias=False)
            self.other = nn.Linear(2, 2, bias=False)
            self.other.weight = self.one.weight
            self.part = self.one.weight.detach()[0]

        def forward(self, x):
            same = (self.one(x) - self.other(x)) + (self.part - self.other.weight[0])
            return x + same * x.flip(1)

    verdict = against(Along(), Tied(), torch.randn(1, 4, 2))
    assert verdict.exact


def test_gradients_of_parameters_that_are_inputs():
    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.rows = nn.Parameter(torch.randn(4, 2))
            self.register_buffer("shift", torch.randn(4, 2))

        def forward(self, x):
            return x + 1e-9 * self.rows.cumsum(0) + self.shift.flip(0)

    positions = {"x": 1, "rows": 0, "shift": 0, "output": 1}
    model, args = Table(), (torch.randn(1, 4, 2),)
    verdict = depgraph.verify(depgraph.trace(model, args, positions=positions), model, args)
    assert verdict.exact
    assert (verdict.pairs, verdict.notes) == (4 + 10 + 4, [])
    assert not model.shift.requires_grad


@pytest.mark.parametrize("arrange", [
    lambda x: x.to(memory_format=torch.channels_last), lambda x: x.transpose(1, 3), lambda x: x[..., ::2],
    lambda x: x.contiguous(),
])  # fmt: skip
def test_strides_are_kept(arrange):
    x = arrange(torch.randn(1, 4, 4, 4))
    seen = set()

    class Looks(nn.Module):
        def forward(self, x):
            seen.add(x.stride())
            return x * 2

    verdict = against(Along(), Looks(), x, positions={"x": 2, "output": 2})
    assert verdict.exact
    assert seen == {x.stride()}


def test_expanded_inputs():
    """Each of several elements in one place is an input of its own; unless it is held at its value."""
    x = torch.randn(1, 1, 2).expand(1, 4, 2)
    seen = set()

    class Looks(nn.Module):
        def forward(self, x):
            seen.add(x.stride())
            return x * 2

    assert against(Along(), Looks(), x).exact
    assert all(0 not in strides for strides in seen)
    seen.clear()

    class Two(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, y, x):
            return y + self.inner(x)

    args = torch.randn(1, 4, 2), x
    graph = depgraph.trace(Two(Along()), args, positions={"y": 1, "output": 1}, known=["x"])
    assert depgraph.verify(graph, Two(Looks()), args).exact
    assert seen == {x.stride()}


@pytest.mark.parametrize("pad", [0, 7, 9], ids=["zero", "frequent", "compared"])
def test_numbers_that_mean_something(pad):
    """What stands where something is filled up is not looked at; the example has nothing of the kind."""

    class Fills(nn.Module):
        def forward(self, x):
            here = (x != pad).float()
            return torch.cat([here.flip(1)[:, :1].expand(1, 4), here[:, :1] * 0], 1)[:, :4] + x

    class Told(nn.Module):
        def forward(self, x):
            return x + 0.5

    ids = torch.tensor([[3, 7, 7, 4]])
    verdict = against(Told(), Fills(), ids)
    assert [(p.source_position, p.target_position) for p in verdict.missed] == [((3,), (i,)) for i in range(3)]


def test_numbers_that_the_model_does_not_take():
    model = nn.Embedding(5, 3)
    ids = torch.tensor([[1, 3, 2]])
    verdict = depgraph.verify(depgraph.trace(model, (ids,), positions={"input": 1}), model, (ids,))
    assert verdict.exact
    assert (verdict.refused, verdict.strayed, verdict.left_out, verdict.notes) == (0, 0, 0, [])


def test_masks_that_are_exact_in_the_models_own_precision_only():
    """The weight of a score of -300 is 0 in float32, and a small number in float64."""

    class Weights(nn.Module):
        def __init__(self, low):
            super().__init__()
            self.project = nn.Linear(4, 4)
            self.register_buffer("mask", torch.full((4, 4), low).triu(1))

        def forward(self, x):
            return (self.project(x) @ x.mT + self.mask).softmax(-1)

    x = torch.randn(1, 4, 4)
    positions = {"x": 1, "output": (1, 2)}
    verdict = against(Weights(-torch.inf), Weights(-300.0), x, positions=positions)
    assert verdict.sound, verdict
    assert any("pairs without a path change in float64, and do not in float32" in note for note in verdict.notes)
    assert not against(Weights(-torch.inf), Weights(-30.0), x, positions=positions).sound
    assert not against(Weights(-torch.inf).double(), Weights(-300.0).double(), x.double(), positions=positions).sound


def test_weak_dependences_are_looked_at_again():
    verdict = against(Along(), Apply(lambda x: x * 2 + 1e-9 * x.flip(1)), torch.randn(1, 4, 2))
    assert verdict.sound or len(verdict.missed) <= 4
    strong = against(Along(), Apply(lambda x: x * 2 + 1e-6 * x.flip(1)), torch.randn(1, 4, 2))
    assert len(strong.missed) == 4


def test_nothing_compared_is_no_agreement():
    picky = Apply(lambda x: x * 2 if torch.equal(x, example) else 1 / 0)
    example = torch.randn(1, 4, 2)
    with pytest.raises(depgraph.TracingError):
        against(Along(), Apply(lambda x: 1 / 0), example)

    class Once(nn.Module):
        def forward(self, x):
            if not torch.allclose(x.double(), example.double()):
                raise ValueError("something else")
            return x * 2

    verdict = against(Along(), Once(), example)
    assert (verdict.compared, verdict.sound, verdict.exact, verdict.left_out) == (0, False, False, 16)
    assert verdict.refused > 0
    assert picky is not None


def test_what_was_left_out_is_counted():
    class Half(nn.Module):
        def forward(self, x):
            if x[0, 0, 0].item() != first:
                raise ValueError("something else")
            return x * 2

    x = torch.ones(1, 4, 2)
    first = 1.0
    verdict = against(Along(), Half(), x)
    assert verdict.sound
    assert (verdict.compared, verdict.left_out) == (12, 4)
    assert str(verdict).endswith(" 4 pairs could not be compared.")


def test_an_input_of_which_nothing_could_be_compared():
    class Two(nn.Module):
        def forward(self, x, y):
            if y.sum().item() != 0:
                raise ValueError("not that")
            return x * 2 + y

    args = torch.randn(1, 4, 2), torch.zeros(1, 4, 2)
    verdict = against(Apply2(), Two(), *args, positions={**X, "y": 1})
    assert verdict.sound
    assert "y: nothing that changes with it could be compared" in verdict.notes


class Apply2(nn.Module):
    def forward(self, x, y):
        return x * 2 + y


def _cond(x):
    return torch.cond(x.sum() > -1e9, lambda x: x.cumsum(1), lambda x: x * 1, (x,))


def _while(x):
    from torch._higher_order_ops.while_loop import while_loop

    return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x + x.roll(1, 1)), (torch.tensor(0), x))[1]


def _scan(x):
    from torch._higher_order_ops.scan import scan

    return scan(lambda carry, y: (carry + y, carry * 1.0), torch.zeros_like(x[:, 0]), x, dim=1)[1].reshape(x.shape)


def _associative(x):
    from torch._higher_order_ops.associative_scan import associative_scan

    return associative_scan(torch.add, x, 1, combine_mode="generic")


def _mapped(x):
    from torch._higher_order_ops.map import map as mapped

    return mapped(lambda y: y.cumsum(0), x)


def _flexible(x):
    from torch.nn.attention.flex_attention import flex_attention

    q = x[:, None]
    return flex_attention(q, q, q, score_mod=lambda s, b, h, i, j: torch.where(i >= j, s, -torch.inf))[:, 0]


@pytest.mark.parametrize("function", [_cond, _while, _scan, _associative, _mapped, _flexible])
def test_operators_that_take_functions(function):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch importing its own parts
        verdict = against(Everything(), Apply(function), torch.randn(1, 4, 8))
        assert verdict.sound, verdict
        assert 6 <= verdict.pairs - len(verdict.extra) <= 16
        assert verdict.compared == 16


def test_compiled_parts():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.compile(Apply(lambda x: x.cumsum(1)))

        def forward(self, x):
            return self.inner(x) * 2

    assert against(Apply(lambda x: x.cumsum(1)), Outer(), torch.randn(1, 4, 2)).exact


def test_derivatives_that_fail():
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            raise KeyError("no")

    verdict = against(Along(), Apply(Fails.apply), torch.randn(1, 4, 2))
    assert verdict.exact
    assert verdict.notes == ["no derivatives of output (KeyError: 'no')"]


def test_a_grid_of_no_numbers():
    """PyTorch's derivative of such a thing ends the process."""

    def sampled(x):
        grid = torch.full((1, 4, 2, 2), torch.nan, dtype=x.dtype)
        return x + 0 * F.grid_sample(x[:, None], grid, padding_mode="border", align_corners=False)[:, 0]

    verdict = against(Along(), Apply(sampled), torch.randn(1, 4, 2))
    assert verdict.notes[0].startswith("no derivatives of the outputs (RefusedError")


def test_parameters_without_memory_in_lists_of_modules():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(4)).to("meta")
    verdict = depgraph.verify(
        depgraph.trace(model, (torch.randn(3, 4, 2),), positions={"input": 1}), model, (torch.randn(3, 4, 2),)
    )
    assert verdict.sound
    assert all(tensor.is_meta for tensor in (*model.parameters(), *model.buffers()))
