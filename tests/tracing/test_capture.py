"""What a captured program says of ordinary models."""

import copy
import threading
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from depgraph.errors import TracingError
from depgraph.tracing.capture import capture

X = torch.arange(24.0).reshape(2, 3, 4) / 10


def targets(program):
    names = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    return [name for name in names if "getitem" not in name]


def kinds(program):
    return {source.name: source.kind for source in program.sources.values()}


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("scale", torch.ones(10))
        self.register_buffer("unused", torch.ones(1), persistent=False)
        self.table = torch.arange(10.0)

    def forward(self, ids):
        return self.head(self.embed(ids)) * self.scale + self.table


def test_parameters_buffers_and_constants_go_by_their_names_in_the_model(faithful):
    model = Tied().eval()
    program = faithful(model, (torch.tensor([[1, 2]]),))
    assert kinds(program) == {
        "embed.weight": "parameter",
        "scale": "buffer",
        "unused": "buffer",
        "table": "constant",
        "ids": "input",
    }
    assert program.parameters == ["embed.weight", "head.weight"]
    assert program.tied == {"head.weight": "embed.weight"}
    sources = {source.name: source for source in program.sources.values()}
    assert sources["embed.weight"].value is model.embed.weight
    assert not any(source.mutated for source in sources.values())
    assert program.mode == "eval"
    assert program.warnings == []
    assert targets(program) == ["aten.embedding.default", "aten.linear.default", "aten.mul.Tensor", "aten.add.Tensor"]


def test_composite_operations_stay_whole(faithful):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.LSTM(4, 4, 2, batch_first=True, bidirectional=True)
            self.norm = nn.LayerNorm(8)

        def forward(self, x):
            y = self.norm(self.rnn(x)[0])[:, None]
            return F.scaled_dot_product_attention(y, y, y, is_causal=True)

    names = targets(faithful(Model().eval(), (X,)))
    assert "aten.lstm.input" in names
    assert "aten.layer_norm.default" in names
    assert "aten.scaled_dot_product_attention.default" in names


def test_fused_encoder_stays_open_and_settings_are_put_back():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True), 2).eval()
    before = torch.backends.mha.get_fastpath_enabled(), torch.backends.mkldnn.enabled, torch.is_grad_enabled()
    program = capture(encoder, (X,), {"src_key_padding_mask": torch.tensor([[False, False, True]] * 2)})
    assert [leaf.name for leaf in program.inputs] == ["src", "src_key_padding_mask"]
    assert targets(program).count("aten.scaled_dot_product_attention.default") == 2
    after = torch.backends.mha.get_fastpath_enabled(), torch.backends.mkldnn.enabled, torch.is_grad_enabled()
    assert after == before


def test_writes_become_updates():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(4))
            self.register_buffer("cache", torch.zeros(4, 4))
            self.register_buffer("grown", torch.zeros(0, 4))

        def forward(self, x):
            self.seen += x.sum(0)
            self.cache[: x.shape[0]] = x
            self.grown = torch.cat([self.grown, x])
            x.add_(1)
            return x + self.seen + self.cache.mean(0) + self.grown.sum(0)

    model = Model()
    program = capture(model, (X[0],))
    assert set(program.updates) == {"seen", "cache", "grown"}
    assert tuple(program.updates["grown"].meta["val"].shape) == (3, 4)
    assert {s.name: s.mutated for s in program.sources.values()} == dict.fromkeys(("seen", "cache", "grown", "x"), True)
    assert float(model.cache.sum()) == 0
    assert model.grown.shape == (0, 4)
    assert float(X.sum()) == pytest.approx(27.6)
    assert all(node in program.graph.nodes for node in program.updates.values())


def test_nested_buffers_that_are_replaced(faithful):
    class Decay(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("state", torch.zeros(4))

        def forward(self, x):
            self.state = self.state * 0.5 + x.sum((0, 1))
            return x * self.state

    program = faithful(nn.Sequential(Decay(), Decay()), (X,))
    assert list(program.updates) == ["0.state", "1.state"]


def test_training_mode(faithful):
    model = nn.Sequential(nn.Conv1d(3, 3, 1), nn.BatchNorm1d(3)).train()
    program = faithful(model, (X,))
    assert program.mode == "train"
    assert set(program.updates) == {"1.running_mean", "1.running_var", "1.num_batches_tracked"}
    assert model.training
    dropout = capture(nn.Dropout(0.5).train(), (X,))
    assert targets(dropout) == ["aten.dropout.default"]
    assert next(node for node in dropout.graph.nodes if node.op == "call_function").args[1:] == (0.5, True)


def test_attributes_assigned_in_forward(faithful):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.history = []
            self.calls = 0

        def forward(self, x):
            self.last = self.linear(x)
            self.history.append(self.last)
            self.calls += 1
            return self.last.relu()

    model = Model()
    program = faithful(model, (X,))
    assert targets(program) == ["aten.linear.default", "aten.relu.default"]
    assert not hasattr(model, "last")
    assert model.history == []
    assert model.calls == 0


def test_dead_code_is_dropped(faithful):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.dead = nn.Linear(4, 4)

        def forward(self, x):
            self.dead(x)
            torch._check(x.shape[0] == 2)
            return x.tanh()

    program = faithful(Model(), (X,))
    assert targets(program) == ["aten.tanh.default"]
    assert kinds(program) == {"dead.weight": "parameter", "dead.bias": "parameter", "x": "input"}


def test_outputs_that_are_no_operation(faithful):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.parameter = nn.Parameter(torch.ones(2))
            self.constant = torch.ones(3)

        def forward(self, x):
            return x, self.parameter, self.constant, torch.arange(3), torch.tensor([1, 2]), 5, x

    program = faithful(Model(), (X,))
    assert [leaf.name for leaf in program.outputs] == [f"output.{k}" for k in range(6)]
    named = [program.sources.get(node.name) for node in program.results]
    assert [source and source.name for source in named] == ["x", "parameter", "constant", None, "", "x"]
    assert program.sources[program.results[4].name].kind == "constant"


def test_kinds_of_tensors(faithful):
    class Model(nn.Module):
        def forward(self, index, wave, number, flag):
            return index * 2, wave.real, torch.view_as_real(wave), number + 1, ~flag

    arguments = torch.arange(3), torch.randn(2, dtype=torch.complex64), torch.tensor(2.0), torch.tensor([True])
    program = faithful(Model(), arguments)
    assert [leaf.value.dtype for leaf in program.inputs] == [torch.int64, torch.complex64, torch.float32, torch.bool]


def test_the_same_tensor_passed_twice_is_two_inputs(faithful):
    class Model(nn.Module):
        def forward(self, x, y, z):
            return x.cumsum(0) + y.flip(0) + z

    shared = torch.randn(3, 4)
    program = faithful(Model(), (shared, shared, shared[:1]))
    add = program.results[0].args[0]
    cumsum, flip = add.args
    assert program.sources[cumsum.args[0].name].name == "x"
    assert program.sources[flip.args[0].name].name == "y"


def test_lines_and_modules(tmp_path, monkeypatch):
    (tmp_path / "written.py").write_text(
        "import torch\n"
        "from torch import nn\n"
        "def helper(x):\n"
        "    return x.sin()\n"
        "class Block(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.linear = nn.Linear(4, 4)\n"
        "    def encode(self, x):\n"
        "        return helper(self.linear(x))\n"
        "    def forward(self, x):\n"
        "        return self.encode(x) + 1\n"
        "class Model(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.blocks = nn.ModuleList([Block(), Block()])\n"
        "    def forward(self, x):\n"
        "        for block in self.blocks:\n"
        "            x = block(x)\n"
        "        return x * 2\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import written  # type: ignore[import-not-found]

    program = capture(written.Model(), (X,))
    found = [program.where(node) for node in program.graph.nodes if node.op == "call_function"]
    assert found == [
        ("blocks.0.linear", "written.py:10"),
        ("blocks.0", "written.py:4"),
        ("blocks.0", "written.py:12"),
        ("blocks.1.linear", "written.py:10"),
        ("blocks.1", "written.py:4"),
        ("blocks.1", "written.py:12"),
        ("", "written.py:20"),
    ]
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path.parent)
    assert program.where(program.results[0]) == ("", f"{tmp_path.name}/written.py:20")


def test_lines_where_no_code_is_the_users():
    program = capture(nn.Sequential(nn.Linear(4, 4)), (X,))
    module, line = program.where(program.results[0])
    assert module == "0"
    assert line.startswith("torch/nn/modules/linear.py:")


def test_regions_keep_lines_and_modules(faithful):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            with torch.enable_grad():
                x = self.linear(x)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return self.linear(x)

    program = faithful(Model(), (X,))
    linears = [n for n in program.graph.nodes if n.target is torch.ops.aten.linear.default]
    assert [program.where(node)[0] for node in linears] == ["linear", "linear"]
    first, second = (int(program.where(node)[1].rpartition(":")[2]) for node in linears)
    assert second - first == 2
    assert linears[1].meta["val"].dtype == torch.bfloat16


def test_what_the_model_prints_goes_to_stderr(capsys):
    class Model(nn.Module):
        def forward(self, x):
            print("hello from forward")
            warnings.warn("a warning of the model", stacklevel=1)
            return x + 1

    capture(Model(), (X,))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("hello from forward") == 1


def test_random_state_is_left_alone():
    class Model(nn.Module):
        def forward(self, x):
            if x.sum() > 0:
                return x + torch.rand(4)
            return x

    before = torch.get_rng_state()
    capture(Model(), (X,))
    assert torch.equal(torch.get_rng_state(), before)


def test_models_that_cannot_be_copied_are_put_back():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.lock = threading.Lock()
            self.register_buffer("count", torch.zeros(1))
            self.calls = 0
            self.kept = []

        def forward(self, x):
            self.calls += 1
            self.count += 1
            self.extra = x
            self.kept.append(x)
            return x + self.count if x.sum() > 0 else x

    model = Model()
    program = capture(model, (X,))
    assert list(program.updates) == ["count"]
    assert (model.calls, float(model.count), model.kept, hasattr(model, "extra")) == (0, 0.0, [], False)


def test_meta_device():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(10, 4)
            self.head = nn.Linear(4, 10)
            self.head.weight = self.embed.weight
            self.register_buffer("mask", torch.ones(3, 3).tril())
            self.loose = torch.ones(3, 4)

        def forward(self, ids):
            x = self.embed(ids) + self.loose + torch.arange(4)
            return self.head(self.mask @ x)

    with torch.device("meta"):
        model = Model()
    for ids in (torch.zeros(2, 3, dtype=torch.long), torch.zeros(2, 3, dtype=torch.long, device="meta")):
        program = capture(model, (ids,))
        sources = {source.name: source for source in program.sources.values()}
        assert sources["embed.weight"].value is model.embed.weight
        assert sources["ids"].value is ids
        assert program.tied == {"head.weight": "embed.weight"}
        assert tuple(program.outputs[0].value.shape) == (2, 3, 10)
        assert model.head.weight.is_meta
        arange = program.graph.find_nodes(op="call_function", target=torch.ops.aten.arange.default)
        assert [node.kwargs["device"] for node in arange] == [torch.device("cpu")]


def test_shared_modules(faithful):
    linear = nn.Linear(4, 4)
    program = faithful(nn.Sequential(linear, nn.ReLU(), linear), (X,))
    linears = program.graph.find_nodes(op="call_function", target=torch.ops.aten.linear.default)
    assert [program.where(node)[0] for node in linears] == ["0", "2"]
    assert program.tied == {"2.weight": "0.weight", "2.bias": "0.bias"}
    assert linears[0].args[1] is linears[1].args[1]


def test_only_modules_are_taken():
    with pytest.raises(TracingError, match=r"A model is a torch\.nn\.Module; got function\."):
        capture(lambda x: x, (X,))


def test_a_tensor_stands_for_one_argument():
    assert [leaf.name for leaf in capture(nn.Identity(), X).inputs] == ["input"]


def test_the_model_is_not_kept_from_being_copied_or_run_afterwards():
    model = nn.Sequential(nn.LSTM(4, 4), nn.Identity())
    expected = model(X)[0]
    capture(model, (X,))
    torch.testing.assert_close(copy.deepcopy(model)(X)[0], expected)
