"""What runs under the modes is recorded such that the graph does on other inputs what the model does."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention.bias import causal_lower_right
from torch.utils.checkpoint import checkpoint

X, Y = (torch.randn(3, 4, generator=torch.Generator().manual_seed(seed)) for seed in range(2))


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.roll(1, 0)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * x


@torch.library.custom_op("depgraph_tests::scaled_into", mutates_args=("out",))
def scaled_into(x: torch.Tensor, out: torch.Tensor) -> None:
    out.copy_(x * 2)


def autocast(x, y):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return (x @ y.t()).float()


def checkpointed(x, y):
    return checkpoint(lambda a: (a * y).cumsum(0), x, use_reentrant=False)


def differentiated(x, y):
    with torch.enable_grad():
        z = x.clone().requires_grad_()
        energy = (F.layer_norm(z, (4,)) * y * 3.0).pow(2).sum()
        return torch.autograd.grad(energy, z)[0]


def written_by_a_custom_operator(x, y):
    out = torch.zeros_like(x)
    torch.ops.depgraph_tests.scaled_into(x, out[:])
    return out + y


def bias(x, y):
    return F.scaled_dot_product_attention(x[None, None], y[None, None], y[None, None], causal_lower_right(3, 3))


def double_backward(x, y):
    return torch.func.hessian(lambda a: (a * a * y[0] * 0.5).sum())(x[0])


def pushed_back(x, y):
    return torch.func.vjp(lambda a: (a / 3).softmax(-1) * y, x)[1](y)[0]


def mapped_twice(x, y):
    return torch.vmap(torch.vmap(lambda a, b: a * 2.0 + b))(x, y)


MODELS = {
    "autocast": autocast,
    "checkpoint": checkpointed,
    "a function with a backward of its own": lambda x, y: Square.apply(x) + y,
    "backward": differentiated,
    "an operator that writes": written_by_a_custom_operator,
    "a bias that is a subclass": bias,
    "hessian": double_backward,
    "vjp": pushed_back,
    "vmap in vmap": mapped_twice,
    "jacrev": lambda x, y: torch.func.jacrev(lambda a: a * a * y[0] / 2)(x[0]),
    "jacfwd": lambda x, y: torch.func.jacfwd(lambda a: a * a * y[0] / 2)(x[0]),
    "jvp": lambda x, y: torch.func.jvp(lambda a: a.cumsum(0) * 2, (x,), (y,))[1],
    "vmap with random numbers off": lambda x, y: torch.vmap(lambda a: a.sum() * y)(x),
    "functional_call": lambda x, y: torch.func.functional_call(nn.Linear(4, 3), {"weight": y, "bias": x[:, 0]}, (x,)),
    "complex numbers": lambda x, y: torch.view_as_real(torch.complex(x, y).conj() * 1j)[..., 0],
    "fft": lambda x, y: torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(y), n=4),
    "foreach": lambda x, y: torch._foreach_add([x, y], 1.0)[0] * torch._foreach_mul([x, y], [2.0, 3.0])[1],
}


class Runs(nn.Module):
    def __init__(self, run):
        super().__init__()
        self.run = run

    def forward(self, x, y):
        return self.run(x, y)


@pytest.mark.parametrize("name", MODELS)
def test_the_graph_does_what_the_model_does(name, faithful_elsewhere):
    faithful_elsewhere(Runs(MODELS[name]), (X, Y), (Y, X), (-X, Y * 3))


def test_operators_above_and_below(faithful):
    """Composite operators stay whole, except where they are differentiated: then all that they are made of is read."""
    whole = faithful(Runs(lambda x, y: F.linear(x, y)), (X, Y))
    assert [str(n.target) for n in whole.graph.nodes if n.op == "call_function"] == ["aten.linear.default"]
    apart = faithful(Runs(differentiated), (X, Y))
    assert "aten.native_layer_norm_backward.default" in {str(node.target) for node in apart.graph.nodes}


def test_a_mask_that_says_where_global_tokens_are(faithful_elsewhere):
    """The places of a mask that is known are known, and so is what is gathered from there and put back."""

    class Global(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("is_global", torch.tensor([True, False, False]))

        def forward(self, x, y):
            places = self.is_global.nonzero(as_tuple=True)[0]
            z = x * 2
            z[places] = (x[places] @ y.t()).softmax(-1) @ y
            return z

    program = faithful_elsewhere(Global(), (X, Y), (Y, X))
    assert program.warnings == []


def test_inputs_that_share_memory(faithful_elsewhere):
    class Both(nn.Module):
        def forward(self, x, y):
            x.mul_(2)
            return x + y

    model, whole = Both(), torch.randn(6, 4)
    program = faithful_elsewhere(model, (X.clone(), Y.clone()), (Y.clone(), X.clone()))
    assert program.warnings == []
    from depgraph.tracing.capture import capture

    shared = capture(model, (whole, whole))
    assert {shared.sources[n.name].name for n in shared.graph.nodes if n.op == "placeholder" and n.users} == {"x"}
