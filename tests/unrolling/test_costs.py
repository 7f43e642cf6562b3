"""What nodes cost: PyTorch's own count of running the model, formulas by hand, and clocks that are no clocks."""

import warnings
from math import prod

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.utils.flop_counter import FlopCounterMode, flop_registry, sdpa_flop_count, shape_wrapper

import depgraph
from depgraph.errors import GraphError
from depgraph.rules.registration import UserRule
from depgraph.rules.registry import CONTRACTIONS, RULES
from depgraph.unrolling.flops import FORMULAS, known
from tests.gallery.files import load, traced


class Module(nn.Module):
    """A function as a module."""

    def __init__(self, function, **parts):
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *args):
        return self.function(self, *args)


def counted(model, *args):
    """Return what PyTorch counts while the model runs, attention by the products that it is made of."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with (
            FlopCounterMode(display=False) as counter,
            torch.no_grad(),
            warnings.catch_warnings(action="ignore"),
            torch.backends.mkldnn.flags(enabled=False),
            torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH),
        ):
            model.requires_grad_(False)(*args)
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
    return counter.get_total_flops()


def costs_of(graph, name):
    """Return the sum of a cost over the nodes of each operation that has nodes, by the operation's name."""
    values = graph.costs(name)
    return [(o.name, values[o.start : o.stop].sum().item()) for o in graph.operations]


X = torch.randn(2, 6, 8)

LIKE_PYTORCH = {
    "mlp": (nn.Sequential(nn.Linear(8, 5), nn.GELU(), nn.Linear(5, 3)), X),
    "convolutions": (
        nn.Sequential(nn.Conv2d(4, 6, 3, 2, 1, groups=2), nn.BatchNorm2d(6), nn.ReLU(), nn.ConvTranspose2d(6, 2, 2, 2)),
        torch.randn(2, 4, 8, 8),
    ),
    "convolution over time": (nn.Conv1d(8, 3, 3, padding=2, dilation=2), X.mT),
    "eager attention": (Module(lambda self, x: (x @ x.mT / 3).softmax(-1) @ x), X),
    "encoder layer": (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), X),
    "decoder layer": (nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), X, X[:, :3]),
    "bmm": (Module(lambda self, x: torch.bmm(x, x.mT)), X),
    "baddbmm": (Module(lambda self, x: torch.baddbmm(x @ x.mT, x, x.mT)), X),
    "addmm": (Module(lambda self, x: torch.addmm(x[0], x[0], x[1].mT @ x[0], beta=2)), X),
    "einsum": (Module(lambda self, x: torch.einsum("bti,bsi,bsj->btj", x, x, x)), X),
    "lstm cell": (nn.LSTMCell(8, 3), X[0]),
    "gru cell": (nn.GRUCell(8, 3), X[0]),
    "attention": (Module(lambda self, x: F.scaled_dot_product_attention(x, x[:, :, :4], x[:, :, :4, :5])), X[:, None]),
    "grouped queries": (
        Module(lambda self, q, k: F.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True)),
        torch.randn(2, 6, 5, 4),
        torch.randn(2, 2, 7, 4),
    ),
    "loop": (Module(lambda self, x: [x := x @ x.mT @ x for _ in range(3)][-1]), X),
    "trained": (nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 2)).train(), X),
}


@pytest.mark.parametrize("name", LIKE_PYTORCH)
def test_flops_are_those_that_pytorch_counts_when_the_model_runs(name):
    model, *args = LIKE_PYTORCH[name]
    model = model if name == "trained" else model.eval()
    graph = depgraph.trace(model, tuple(args))
    flops = graph.costs("flops")
    assert flops.dtype == np.int64
    assert flops[: graph.dag.inputs].tolist() == [0] * graph.dag.inputs
    assert flops.sum() == counted(model, *args) > 0
    assert graph.collapse().costs("flops").sum() == flops.sum()


@pytest.mark.parametrize("name", ["seq2seq", "resnet", "training"])
def test_every_weight_of_a_model_file(name):
    graph, file = traced(name, 5), load(name)
    given = file.example_inputs(5)
    model = type(file.model)().eval()
    assert graph.costs("flops").sum() == counted(model, *(given if isinstance(given, tuple) else (given,)))
    for weight in ("flops", "bytes", "seconds", "scalars"):
        found = depgraph.parallelism(graph, weight)
        assert found.span == depgraph.critical_path(graph, weight).length
        assert 0 < found.span <= found.work
        small = depgraph.parallelism(graph.collapse(), weight)
        assert small.work == pytest.approx(found.work, rel=1e-12)
        assert depgraph.path_lengths(graph, weight=weight).max() <= found.span * (1 + 1e-12)


def test_constants_and_what_nobody_reads_cost_nothing():
    model = Module(
        lambda self, x: (self.one(x), self.two(x))[0] + self.one.weight @ self.one.weight[0],
        one=nn.Linear(8, 8),
        two=nn.Linear(8, 4),
    )
    graph = depgraph.trace(model.eval(), (X,))
    assert graph.costs("flops").sum() == 2 * 2 * 6 * 8 * 8


class TestRecurrentLayers:
    """Two multiply-adds a weight, example and step: gates · (input + hidden) · hidden · 2."""

    @pytest.mark.parametrize(("layer", "gates"), [(nn.RNN, 1), (nn.GRU, 3), (nn.LSTM, 4)])
    @pytest.mark.parametrize("directions", [1, 2])
    def test_stacked(self, layer, gates, directions):
        model = layer(8, 5, num_layers=3, bidirectional=directions == 2, batch_first=True).eval()
        graph = depgraph.trace(model, (X,), positions={"input": 1})
        widths = [8] + [5 * directions] * 2
        expected = [gates * (width + 5) * 5 * 2 * 2 * 6 for width in widths for _ in range(directions)]
        assert [cost for _, cost in costs_of(graph, "flops")] == expected
        assert graph.costs("flops").dtype == np.int64
        numbers = 2 * (10 if layer is nn.LSTM else 5)
        assert graph.costs("scalars").tolist() == [16] * 6 + [numbers] * (6 * 3 * directions)
        parameters = [gates * 5 * (width + 5 + 2) for width in widths for _ in range(directions)]
        moved = [2 * 6 * (width + 5) + 2 * numbers for width in widths for _ in range(directions)]
        expected = [4 * (p + m) for p, m in zip(parameters, moved, strict=True)]
        assert [cost for _, cost in costs_of(graph, "bytes")] == pytest.approx(expected)

    def test_projections(self):
        model = nn.LSTM(8, 5, num_layers=2, proj_size=3, batch_first=True).eval()
        graph = depgraph.trace(model, (X,))
        assert [cost for _, cost in costs_of(graph, "flops")] == [
            2 * 2 * 6 * (4 * 5 * (width + 3) + 3 * 5) for width in (8, 3)
        ]
        assert set(graph.costs("scalars")[6:].tolist()) == {2 * (3 + 5)}

    def test_a_packed_sequence_costs_the_steps_it_has(self):
        def run(self, x, lengths):
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
            return nn.utils.rnn.pad_packed_sequence(self.layer(packed)[0], batch_first=True)[0]

        model = Module(run, layer=nn.GRU(8, 5, batch_first=True)).eval()
        graph = depgraph.trace(model, (X, torch.tensor([6, 2])), positions={0: 1}, known=[1])
        assert costs_of(graph, "flops") == [("gru", 3 * (8 + 5) * 5 * 2 * (6 + 2))]
        assert graph.costs("scalars")[-6:].tolist() == [10, 10, 5, 5, 5, 5]

    def test_a_layer_that_is_constant_has_no_nodes(self):
        zero = torch.zeros(1, 2, 5)
        model = Module(
            lambda self, x: self.layer(torch.zeros(2, 6, 8), torch.cat([zero, x[None, :, 0, :5]]))[0],
            layer=nn.GRU(8, 5, num_layers=2, batch_first=True),
        )
        graph = depgraph.trace(model.eval(), (X,))
        assert costs_of(graph, "flops") == [("gru", 3 * (5 + 5) * 5 * 2 * 2 * 6)]


class TestAttention:
    q, k, v = torch.randn(2, 4, 6, 8), torch.randn(2, 4, 7, 8), torch.randn(2, 4, 7, 3)

    @pytest.mark.parametrize("causal", [False, True])
    def test_masked_or_not(self, causal):
        model = Module(lambda self, q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal))
        graph = depgraph.trace(model, (self.q, self.k, self.v), positions={0: 2, 1: 2, 2: 2})
        total = sdpa_flop_count(self.q.shape, self.k.shape, self.v.shape)
        assert graph.costs("flops")[graph.dag.inputs :].tolist() == [total // 6] * 6
        assert set(graph.costs("scalars")[graph.dag.inputs :].tolist()) == {2 * 4 * 3}
        moved = 4 * sum(t.numel() for t in (self.q, self.k, self.v, self.q[..., :3]))
        assert graph.costs("bytes").sum() == pytest.approx(moved)

    def test_the_kernel_of_the_cpu(self):
        kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        graph = depgraph.trace(Module(lambda self, q, k: kernel(q, k, k)[0]), (self.q, self.k), positions={0: 2})
        total = sdpa_flop_count(self.q.shape, self.k.shape, self.k.shape)
        assert [cost for _, cost in costs_of(graph, "flops")] == [total, 0]

    def test_flex_attention(self):
        x = torch.randn(1, 2, 128, 16)
        mask = create_block_mask(lambda b, h, i, j: j <= i, None, None, 128, 128, device="cpu")
        model = Module(lambda self, x: flex_attention(x, x, x, block_mask=mask))
        graph = depgraph.trace(model, (x,), positions={0: 2})
        assert graph.costs("flops").sum() == sdpa_flop_count(x.shape, x.shape, x.shape)
        assert set(graph.costs("scalars").tolist()) == {32}
        assert graph.costs("seconds").sum() > 0


class TestBytes:
    def test_read_and_written(self):
        graph = depgraph.trace(nn.Linear(8, 5), (X,))
        assert graph.costs("bytes").sum() == pytest.approx(4 * (12 * 8 + 8 * 5 + 5 + 12 * 5))

    def test_the_same_memory_counts_once(self):
        twice = depgraph.trace(Module(lambda self, x: x * x), (X,), positions={0: 1})
        assert twice.costs("bytes").sum() == 4 * 2 * X.numel()
        wide = depgraph.trace(Module(lambda self, x: x * x[:, :1].expand(2, 6, 8)), (X,), positions={0: 1})
        assert wide.costs("bytes").sum() == pytest.approx(4 * (2 * X.numel() + 16))

    def test_of_every_type(self):
        model = Module(lambda self, x: x.double() > 0)
        assert costs_of(depgraph.trace(model, (X.half(),), positions={0: 1}), "bytes") == [("gt", 96 * (8 + 1))]


class TestScalars:
    def test_inputs_count_too(self):
        graph = depgraph.trace(Module(lambda self, x, y: x + y), (X, X[0]), positions={0: 1})
        assert graph.costs("scalars").tolist() == [16] * 6 + [48] + [16] * 6
        assert graph.collapse().costs("scalars").tolist() == [96, 48, 96]

    def test_nodes_that_stand_for_different_numbers_of_elements(self):
        index = torch.tensor([0, 0, 0, 1, 2, 2])
        graph = depgraph.trace(Module(lambda self, x: x[:, index].relu()), (X[:, :3],), positions={0: 1})
        assert graph.costs("scalars").tolist() == [16] * 3 + [48, 16, 32]
        assert graph.costs("bytes").tolist() == [0] * 3 + [8 * 48, 8 * 16, 8 * 32]

    def test_results_that_nobody_reads_do_not_count(self):
        graph = depgraph.trace(Module(lambda self, x: x.max(-1).values), (X,), positions={0: 1})
        assert graph.costs("scalars").tolist() == [16] * 6 + [2] * 6
        graph = depgraph.trace(Module(lambda self, x: tuple(x.max(-1))), (X,), positions={0: 1})
        assert graph.costs("scalars").tolist() == [16] * 6 + [4] * 6

    def test_a_state_of_two(self):
        graph = depgraph.trace(
            Module(lambda self, x: self.cell(x)[0] + self.cell(x)[1], cell=nn.LSTMCell(8, 3)), (X[0],)
        )
        assert {n for o, n in costs_of(graph, "scalars") if o == "lstm_cell"} == {6 * 3}


class TestSubgraphs:
    @pytest.mark.parametrize("known", [[], [0]])
    def test_a_branch_that_is_taken_and_one_that_may_be(self, known):
        model = Module(lambda self, n, x: torch.cond(n > 0, lambda x: x @ x, lambda x: x * 2, (x,)))
        graph = depgraph.trace(model, (torch.tensor(1), X[..., :6].clone()), positions={1: 1}, known=known)
        assert graph.costs("flops").sum() == 2 * 2 * 6 * 6 * 6
        expected = (
            [("matmul", 2 * 288)] if known else [("gt", 8 + 1), ("matmul", 2 * 288), ("mul", 2 * 288), ("cond", 0)]
        )
        assert costs_of(graph, "bytes") == expected
        assert set(graph.costs("scalars")[-6:].tolist()) == {12}
        assert graph.costs("seconds").sum() > 0

    def test_a_scan(self):
        from torch._higher_order_ops import scan

        model = Module(lambda self, h, x: scan(lambda h, x: (h @ x, h * 1), h, x)[0])
        graph = depgraph.trace(model, (torch.randn(2, 8), torch.randn(6, 8, 8)), positions={1: 0})
        assert graph.costs("flops").sum() == 6 * 2 * 2 * 8 * 8
        seconds = graph.costs("seconds")[graph.dag.inputs :]
        assert seconds.min() == seconds.max() > 0

    def test_a_loop_without_end_in_sight(self):
        from torch._higher_order_ops.while_loop import while_loop

        model = Module(lambda self, x: while_loop(lambda x: x.sum() < 9, lambda x: (x @ x,), (x,))[0])
        graph = depgraph.trace(model, (torch.ones(2, 2),))
        with pytest.raises(GraphError, match=r"while_loop.*Take another weight than 'flops'"):
            graph.costs("flops")
        with pytest.raises(GraphError, match=r"while_loop.*Take another weight than 'bytes'"):
            graph.costs("bytes")
        assert "flops" not in graph.to_networkx().nodes[graph.dag.inputs]


def test_every_contraction_is_counted_or_said_not_to_be():
    aten = torch.ops.aten
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    unknown = {
        name
        for name in CONTRACTIONS
        if not known(packet := getattr(aten, name, None))
        and packet is not None
        and not any(getattr(packet, o).has_kernel_for_dispatch_key(composite) for o in packet.overloads())
    }
    assert unknown == {"_sparse_addmm", "_trilinear", "linalg_solve_triangular", "triangular_solve"}
    assert not set(FORMULAS) & set(flop_registry)


def test_a_sparse_matrix():
    model = Module(lambda self, x: torch.sparse.mm(self.matrix, x))
    model.register_buffer("matrix", torch.eye(8).to_sparse())
    graph = depgraph.trace(model, (torch.randn(8, 3),), positions={0: 0})
    for weight, reason in (("flops", r"aten::_?sparse_\w+ takes is not known"), ("bytes", "a sparse tensor holds")):
        with pytest.raises(GraphError, match=reason):
            graph.costs(weight)
    assert graph.costs("seconds").sum() > 0


@torch.library.custom_op("costs::mix", mutates_args=())
def mix(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x @ weight


@mix.register_fake
def _(x, weight):
    return torch.empty_like(x)


@torch.library.custom_op("costs::mix_", mutates_args=("out",))
def mix_(x: torch.Tensor, out: torch.Tensor, weight: torch.Tensor) -> None:
    out.copy_(x @ weight)


def written(self, x):
    out = torch.empty_like(x)
    torch.ops.costs.mix_(x, out, self.weight)
    return out


@pytest.mark.parametrize("run", [lambda self, x: torch.ops.costs.mix(x, self.weight), written])
def test_a_user_s_own_operator(monkeypatch, run):
    model = Module(run, weight=nn.Parameter(torch.randn(8, 8)))
    assert depgraph.trace(model, (X,)).costs("flops").sum() == 0
    for packet in (torch.ops.costs.mix, torch.ops.costs.mix_):
        formula = shape_wrapper(lambda x, *more, out_shape: 10 * prod(x))
        monkeypatch.setitem(flop_registry, packet, formula)
    graph = depgraph.trace(model, (X,))
    assert graph.costs("flops").sum() == counted(model, X) == 960
    assert graph.costs("seconds").sum() > 0


def test_a_formula_for_what_is_followed_by_other_operators(monkeypatch):
    monkeypatch.setitem(RULES, "costs::mix", UserRule(lambda call, x, w: call.like(torch.matmul, x, w), "costs::mix"))
    monkeypatch.setitem(flop_registry, torch.ops.costs.mix, shape_wrapper(lambda x, *more, out_shape: 1200))
    graph = depgraph.trace(Module(lambda self, x: torch.ops.costs.mix(x, torch.eye(8))), (X,), positions={0: 1})
    assert graph.costs("flops").tolist() == [0] * 6 + [200] * 6


def test_a_contraction_without_a_formula():
    model = Module(lambda self, x: torch.linalg.solve_triangular(x.tril(), x, upper=False))
    graph = depgraph.trace(model, (torch.randn(2, 3, 3),), positions={0: 0})
    with pytest.raises(GraphError, match=r"test_costs.py:\d+: .*aten::linalg_solve_triangular.*register_flop_formula"):
        graph.costs("flops")


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda self, x: x[0] @ x[1, 0], 2 * 6 * 8),
        (lambda self, x: x[0, 0] @ x[1, 0], 2 * 8),
        (lambda self, x: torch.addmv(x[0, :, 0], x[0], x[1, 0]), 2 * 6 * 8),
        (lambda self, x: torch.addbmm(x[0, :, :6], x, x.mT), 2 * 2 * 6 * 8 * 6),
        (lambda self, x: torch.linalg.vecdot(x, x[:, :1]), 2 * 2 * 6 * 8),
        (lambda self, x: torch.cdist(x, x[:, :2]), 2 * 2 * 6 * 2 * 8),
        (lambda self, x: torch.outer(x[0, 0], x[0, 1]), 0),
    ],
)
def test_what_pytorch_does_not_count(function, expected):
    assert depgraph.trace(Module(function), (X,), positions={0: 1}).costs("flops").sum() == expected


def test_to_networkx_carries_flops():
    graph = depgraph.trace(nn.Linear(8, 5), (X,), positions={"input": 1})
    data = graph.to_networkx().nodes
    assert [data[n]["flops"] for n in range(12)] == [0] * 6 + [2 * 2 * 8 * 5] * 6
    back = depgraph.from_networkx(graph.to_networkx(), sources=range(6))
    assert back.costs("flops").tolist() == graph.costs("flops").tolist()


def test_a_saved_graph_keeps_its_flops(tmp_path):
    graph = depgraph.trace(nn.LSTM(8, 5, num_layers=2, batch_first=True).eval(), (X,))
    depgraph.save(graph, tmp_path / "graph.json")
    back = depgraph.load(tmp_path / "graph.json")
    assert depgraph.critical_path(back, "flops").length == depgraph.critical_path(graph, "flops").length
    with pytest.raises(GraphError, match="The node 6 has no attribute 'seconds'"):
        back.costs("seconds")


def test_unknown_costs():
    graph = depgraph.trace(nn.Linear(8, 5), (X,))
    with pytest.raises(GraphError, match=r"There are no costs 'ops'. The costs are: 'flops', 'bytes'"):
        graph.costs("ops")


def test_too_much_to_add():
    with torch.device("meta"):
        model, x = nn.Linear(2**30, 2**30, bias=False), torch.empty(1, 2**30)
    graph = depgraph.trace(model, (x,))
    with pytest.raises(GraphError, match="The flops of this model add up to 2⁶¹ or more"):
        graph.costs("flops")
    assert prod((2, 2**30, 2**30)) == 2**61
