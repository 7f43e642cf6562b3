"""Models built with PyTorch's own wrappers, hooks and transformations."""

import warnings

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import depgraph
from depgraph.tracing.capture import capture

X = torch.arange(24.0).reshape(2, 3, 4) / 10


def targets(program):
    names = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    return [name for name in names if "getitem" not in name]


def sources(program):
    return {source.name: source.kind for source in program.sources.values()}


def quietly(build, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return build(*args)


LINEAR = {"weight": "parameter", "bias": "parameter", "input": "input"}


def test_weight_norm_and_spectral_norm(faithful):
    new = faithful(nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)), (X,))
    assert sources(new).keys() >= {"parametrizations.weight.original0", "parametrizations.weight.original1"}
    old = quietly(nn.utils.weight_norm, nn.Linear(4, 4))
    old(X)  # leaves a computed tensor behind, which refuses to be copied
    assert sources(capture(old, (X,))).keys() == {"bias", "weight_g", "weight_v", "input"}
    spectral = faithful(nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)).train(), (X,))
    assert set(spectral.updates) == {"parametrizations.weight.0._u", "parametrizations.weight.0._v"}


def test_lazy_modules_are_initialised_in_a_copy():
    model = nn.Sequential(nn.LazyLinear(5), nn.LazyBatchNorm1d()).train()
    program = capture(model, (X,))
    assert tuple(program.outputs[0].value.shape) == (2, 3, 5)
    weights = {source.name: source for source in program.sources.values()}
    assert tuple(weights["0.weight"].value.shape) == (5, 4)
    assert int(weights["1.num_batches_tracked"].value) == 0
    assert isinstance(model[0], nn.LazyLinear)
    assert model[0].has_uninitialized_params()
    assert program.mode == "train"


def test_data_parallel(faithful):
    program = faithful(nn.DataParallel(nn.Linear(4, 4)), (X,))
    assert sources(program) == {"module.weight": "parameter", "module.bias": "parameter", "input": "input"}


def test_compiled_modules_and_functions():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.compile(nn.Linear(4, 4))

        @torch.compile
        def helper(self, x):
            return x.sin()

        def forward(self, x):
            return self.helper(self.inner(x))

    program = capture(Model(), (X,))
    assert targets(program) == ["aten.linear.default", "aten.sin.default"]
    assert sources(program).keys() == {"inner._orig_mod.weight", "inner._orig_mod.bias", "x"}
    assert targets(capture(torch.compile(nn.Linear(4, 4)), (X,))) == ["aten.linear.default"]


def test_scripted_and_jit_traced_modules(faithful):
    inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    for build in (torch.jit.script, lambda module: torch.jit.trace(module, X)):
        scripted = quietly(build, inner)
        program = faithful(nn.Sequential(scripted, nn.Tanh()), (X,))
        assert targets(program) == ["aten.linear.default", "aten.relu.default", "aten.tanh.default"]
        assert sources(program) == {"0.0.weight": "parameter", "0.0.bias": "parameter", "input": "input"}
    assert targets(capture(quietly(torch.jit.script, inner), (X,))) == ["aten.linear.default", "aten.relu.default"]


def test_hooks(faithful):
    model = nn.Linear(4, 4)
    model.register_forward_hook(lambda module, args, output: output * 2)
    model.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    program = faithful(model, (X,))
    assert targets(program) == ["aten.add.Tensor", "aten.linear.default", "aten.mul.Tensor"]
    assert sources(program) == LINEAR


def test_checkpointing():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            x = checkpoint(self.linear, x, use_reentrant=False)
            return checkpoint(self.linear, x, use_reentrant=True)

    assert targets(capture(Model(), (X,))) == ["aten.linear.default"] * 2


def test_autograd_functions_and_gradients_in_forward(faithful):
    class Roll(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            return x.roll(k, dims=1) * x.sigmoid()

        @staticmethod
        def backward(ctx, gradient):
            return gradient, None

    class Model(nn.Module):
        def forward(self, x):
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                (gradient,) = torch.autograd.grad((x**2).sum(), x)
            return Roll.apply(x, 1), gradient

    program = faithful(Model(), (X,))
    assert "aten.roll.default" in targets(program)
    assert program.warnings == []


def test_inference_mode_and_inputs_that_want_gradients(faithful):
    class Model(nn.Module):
        @torch.inference_mode()
        def forward(self, x):
            return x * 2

    program = faithful(Model(), (X.clone().requires_grad_(),))
    assert targets(program) == ["aten.mul.Tensor"]


def test_control_flow_operators():
    from torch._higher_order_ops.scan import scan

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x, flag):
            x = torch.cond(flag.sum() > 0, lambda x: self.linear(x), lambda x: x.flip(1) * 1.0, (x,))
            return scan(lambda carry, step: (carry + step, carry * step), x[0], x, dim=0)

    program = capture(Model(), (X, torch.ones(3)))
    assert program.warnings == []
    assert [leaf.name for leaf in program.outputs] == ["output.0", "output.1"]
    for name, count in (("cond", 2), ("scan", 1)):
        (node,) = (n for n in program.graph.nodes if str(n.target) == name)
        graphs = [argument for argument in node.args if getattr(argument, "op", "") == "get_attr"]
        graphs += [argument for argument in node.all_input_nodes if argument.op == "get_attr"]
        assert len(set(graphs)) == count
        for graph in graphs:
            inner = getattr(program.module, graph.target)
            assert all("val" in n.meta for n in inner.graph.nodes if n.op == "call_function")
    (cond,) = (n for n in program.graph.nodes if str(n.target) == "cond")
    true_graph, false_graph = (getattr(program.module, n.target) for n in cond.args[1:3])
    assert not any(n.target is torch.ops.aten.linear.default for n in false_graph.graph.nodes)
    (linear,) = (n for n in true_graph.graph.nodes if n.target is torch.ops.aten.linear.default)
    assert "test_models.py:" in program.where(linear)[1]


def test_sparse_buffers():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("adjacency", torch.eye(3).to_sparse())

        def forward(self, x):
            return torch.sparse.mm(self.adjacency, x)

    program = capture(Model(), (X[0],))
    assert targets(program) == ["aten._sparse_mm.default"]
    assert sources(program) == {"adjacency": "buffer", "x": "input"}


@pytest.mark.parametrize("count", [1, 3])
def test_recurrent_stacks(count, faithful):
    model = nn.GRU(4, 3, count, bidirectional=True)
    program = faithful(model, (X,))
    assert targets(program)[-1] == "aten.gru.input"
    assert len(program.parameters) == 8 * count


def test_where_new_tensors_are_made_elsewhere():
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval()
        graph = depgraph.trace(model, (torch.zeros(1, 3, 4),), positions={0: 1})
    assert depgraph.path_lengths(graph).tolist() == [[2, -1, -1], [-1, 2, -1], [-1, -1, 2]]
