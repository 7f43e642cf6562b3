"""What comes with a graph: what nodes are called and where they stand, what is not used, what has to be said."""

import inspect

import pytest
import torch
from torch import nn

import depgraph
from depgraph.errors import TracingError
from tests.jacobian import Apply

R = torch.randn


def line_of(text):
    """Return ``file:line`` of the line of this file that ends with a comment."""
    lines = inspect.getsource(inspect.getmodule(line_of)).splitlines()
    (number,) = (k for k, line in enumerate(lines, 1) if line.endswith("  # " + text))
    return f":{number}"


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(2, 2)
        self.recur = nn.GRU(2, 2, batch_first=True, bidirectional=True)

    def forward(self, x):
        y = self.project(x)  # here it projects
        z, _ = self.recur(y)  # here it recurs
        return torch.softmax(z[..., :2] @ y.transpose(1, 2), -1)  # here it weighs


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Identity(), Block()])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x.cumsum(1)  # here it sums


@pytest.fixture(scope="module")
def graph():
    return depgraph.trace(Model().eval(), (R(1, 3, 2),))


def nodes_of(graph, op):
    return [graph.node(k) for k in range(graph.dag.nodes) if graph.node(k).op == op]


def test_nodes_say_what_they_are(graph):
    assert [node.position for node in nodes_of(graph, "input")] == [(0,), (1,), (2,)]
    assert [node.module for node in nodes_of(graph, "input")] == ["x"] * 3
    (first, *_) = linear = nodes_of(graph, "linear")
    assert [node.position for node in linear] == [(0,), (1,), (2,)]
    assert first.module == "blocks.1.project"
    assert [node.position for node in nodes_of(graph, "matmul")] == [(t, s) for t in range(3) for s in range(3)]
    assert [node.position for node in nodes_of(graph, "softmax")] == [(0,), (1,), (2,)]
    assert {node.module for node in nodes_of(graph, "softmax")} == {"blocks.1"}
    assert {node.module for node in nodes_of(graph, "cumsum")} == {""}


def test_both_directions_stand_at_their_time(graph):
    forwards, backwards = nodes_of(graph, "gru")[:3], nodes_of(graph, "gru")[3:]
    assert [node.position for node in forwards] == [(0,), (1,), (2,)]
    assert [node.position for node in backwards] == [(2,), (1,), (0,)]
    assert {node.module for node in [*forwards, *backwards]} == {"blocks.1.recur"}


@pytest.mark.parametrize(
    ("op", "comment"),
    [
        ("linear", "here it projects"),
        ("gru", "here it recurs"),
        ("matmul", "here it weighs"),
        ("softmax", "here it weighs"),
        ("cumsum", "here it sums"),
    ],
)
def test_nodes_say_where_they_come_from(graph, op, comment):
    for node in nodes_of(graph, op):
        assert node.source.endswith("test_trace.py" + line_of(comment))


def test_contractions(graph):
    assert {operation.name: operation.contraction for operation in graph.operations} == {
        "linear": True, "gru": True, "matmul": True, "softmax": False, "cumsum": False,
    }  # fmt: skip


def test_networkx_carries_the_same(graph):
    dag = graph.to_networkx()
    for number, data in dag.nodes(data=True):
        node = graph.node(number)
        assert (data["op"], data["position"], data["module"], data["source"]) == node[1:]
    assert len(dag) == graph.dag.nodes


def test_operations_drawn_together(graph):
    whole = graph.collapse("operation")
    found = depgraph.parallelism(whole)
    # Linear, both directions of the recurrence, product, softmax, sum.
    ops = [operation.name for operation in whole.operations]
    assert ops == [operation.name for operation in graph.operations]
    assert found.work == len(ops)
    assert found.span == 5
    assert found.width == 2
    assert depgraph.path_lengths(whole).tolist() == [[4]]  # linear, product, softmax, sum
    dag = whole.to_networkx()
    assert sorted(data["op"] for _, data in dag.nodes(data=True)) == sorted(["input", *ops])


def test_branches_of_the_operation_graph():
    model = Apply(lambda x: (x.exp() + x.sin()) * x.cos().tanh())
    graph = depgraph.trace(model, (R(1, 4, 2),))
    whole = graph.collapse("operation")
    assert depgraph.parallelism(graph).width == 12
    assert depgraph.parallelism(whole).width == 3
    assert depgraph.critical_path(whole).length == depgraph.critical_path(graph).length == 3


class Leftovers(nn.Module):
    """Parameters that are used, that are not, and that are switched off in different ways."""

    def __init__(self):
        super().__init__()
        self.used = nn.Linear(2, 2)
        self.forgotten = nn.Linear(2, 2)
        self.masked = nn.Parameter(R(2))
        self.gate = nn.Parameter(torch.zeros(()))
        self.behind_gate = nn.Parameter(R(2))
        self.lonely_bias = nn.Parameter(R(3, 1))
        self.aside = nn.Parameter(R(2))
        self.other = self.used
        self.register_buffer("off", torch.zeros(2))

    def forward(self, x, y, z, scale):
        self.aside.exp()
        weights = (x @ self.lonely_bias.T).softmax(0) if x.shape[-1] == 1 else 1
        return self.used(x) * weights + self.masked * self.off + self.gate * self.behind_gate + z * self.off


def test_what_is_not_used():
    graph = depgraph.trace(Leftovers(), (R(1, 4, 2), R(3), R(2), torch.tensor(1.0)))
    # A gate that starts at zero may open; a buffer of zeros stays.
    assert graph.unused_parameters == ["aside", "forgotten.bias", "forgotten.weight", "lonely_bias", "masked"]
    assert graph.unused_inputs == ["y", "z", "scale"]


def test_a_second_name_is_as_used_as_the_first():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(5, 2)
            self.head = nn.Linear(2, 5, bias=False)
            self.head.weight = self.embed.weight
            self.idle, self.idler = nn.Linear(2, 2), nn.Linear(2, 2)
            self.idler.weight = self.idle.weight

        def forward(self, ids):
            return self.head(self.embed(ids))

    graph = depgraph.trace(Tied(), (torch.tensor([[1, 2, 3]]),))
    assert graph.unused_parameters == ["idle.bias", "idle.weight", "idler.bias", "idler.weight"]
    assert graph.unused_inputs == []


def test_a_parameter_before_a_constant_softmax_is_not_used():
    model = nn.Sequential(nn.Linear(2, 1), nn.Softmax(-1))
    graph = depgraph.trace(model, (R(1, 3, 2),))
    assert graph.unused_parameters == ["0.bias", "0.weight"]
    assert graph.unused_inputs == ["input"]


def test_held_inputs_are_not_reported_as_unused():
    model = Apply(lambda x, mask: x.masked_fill(mask, 0.0))
    graph = depgraph.trace(model, (R(1, 3, 2), torch.zeros(3, 1).bool()), positions={0: 1})
    assert graph.unused_inputs == []


@pytest.mark.parametrize("training", [False, True])
def test_the_mode_is_kept_and_said(training):
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5)).train(training)
    graph = depgraph.trace(model, (R(1, 3, 2),))
    assert graph.mode == ("train" if training else "eval")
    assert model.training == training
    # In training dropout is a product with random numbers.
    ops = [node.op for node in depgraph.critical_path(graph).nodes]
    assert ops == (["linear", "mul"] if training else ["linear"])


def test_a_model_that_returns_its_input():
    graph = depgraph.trace(nn.Identity(), (R(1, 3, 2),))
    assert depgraph.path_lengths(graph).tolist() == [[0, -1, -1], [-1, 0, -1], [-1, -1, 0]]
    assert depgraph.critical_path(graph).length == 0
    assert depgraph.bottleneck(graph).size == 3


def test_a_model_that_returns_a_constant():
    graph = depgraph.trace(Apply(lambda x: torch.ones(3)), (R(1, 3, 2),))
    assert (depgraph.path_lengths(graph) == -1).all()
    assert graph.unused_inputs == ["args.0"]


def test_models_without_data():
    with torch.device("meta"):
        model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
        x = torch.empty(1, 6, 8)
    real = depgraph.trace(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), (R(1, 6, 8),))
    graph = depgraph.trace(model, (x,))
    assert graph.dag.nodes == real.dag.nodes
    assert (depgraph.path_lengths(graph) == depgraph.path_lengths(real)).all()


def test_what_is_no_model():
    with pytest.raises(TracingError, match=r"A model is a torch.nn.Module; got function\."):
        depgraph.trace(lambda x: x, (R(1),))
