"""Elementwise operations read their arguments at their own place, but for what settles a result alone."""

import pytest
import torch
import torch.nn.functional as F

import depgraph
from tests.jacobian import Apply, changes, check

INF = float("inf")


def test_broadcasting():
    check(
        lambda x, y, z: {
            "add": x + y,
            "mul": x * z,
            "all": (x - y) * z / 3,
            "scalar": x * y.sum() + 1,
            "addcmul": torch.addcmul(z, x, y),
            "lerp": torch.lerp(x, y, z),
            "hypot": torch.hypot(x, y),
            "atan2": torch.atan2(x, z),
        },
        *(torch.randn(2, 1), torch.randn(3), torch.randn(2, 3)),
    )


def test_functions_of_one_argument():
    check(
        lambda x: {
            "exp": x.exp(),
            "tanh": x.tanh(),
            "gelu": F.gelu(x),
            "silu": F.silu(x),
            "pow": x**3,
            "square": x.square(),
            "dropout": F.dropout(x, training=False) * 2,
            "sigmoid": x.sigmoid(),
        },
        torch.randn(2, 3),
    )


def test_kinks():
    check(
        lambda x, y: {
            "relu": x.relu(),
            "maximum": torch.maximum(x, y),
            "minimum": torch.minimum(x, y),
            "clamp": x.clamp(-1, 1),
            "clamp by tensors": torch.clamp(x, y - 1, y + 1),
            "abs": (x - y).abs(),
        },
        *(torch.randn(3), torch.randn(2, 3)),
        draws=24,
    )


def test_no_derivatives():
    check(
        lambda x, y, i: {
            "less": x < y,
            "equal": i == i.roll(1),
            "sign": (x * y).sign(),
            "floor": (3 * x).floor(),
            "and": (x > 0) & (y > 0),
            "or": (x > 0) | (y > 0),
            "xor": (x > 0) ^ (i > 1),
            "shift": i << 1,
            "remainder": i % 2,
        },
        *(torch.randn(3), torch.randn(3), torch.arange(3)),
        oracle=changes,
        draws=40,
    )


def test_unknown_conditions():
    check(
        lambda c, x, y: {
            "where": torch.where(c, x, y),
            "masked_fill": x.masked_fill(c, 0.5),
            "derived": torch.where(y > 0, x, 2 * y),
            "one side": torch.where(c, x, torch.zeros(())),
        },
        *(torch.tensor([True, False, True]), torch.randn(3), torch.randn(3)),
        oracle=changes,
        draws=40,
    )


def test_a_known_condition_moves_data():
    mask = torch.tensor([[True, False, True], [False, False, True]])
    graph = check(
        lambda x, y: {
            "where": torch.where(mask, x, y),
            "masked_fill": x.masked_fill(mask, 7.0),
            "in place": x.clone().masked_fill_(~mask, 0.0),
        },
        *(torch.randn(2, 3), torch.randn(3)),
    )
    assert graph.dag.nodes == graph.dag.inputs
    for name in graph.outputs:
        assert depgraph.path_lengths(graph, target=name).max() == 0


def test_a_choice_between_equal_known_numbers_is_known():
    flags, table = torch.tensor([True, False, True]), torch.tensor([0.0, 1.0, 2.0]).double()
    check(
        lambda c, x: {
            "equal": torch.where(c, 2.0, 2.0) * x,
            "tensors": torch.where(c, table, table) * x,
            "in places": torch.where(c, table, 1.0) * x.sin(),
            "filled": table.masked_fill(c, 1.0) * x,
            "by data": torch.where(x > 0, 1.0, 1.0) + table,
            "shared zero": torch.where(c[:, None], 0.0, table) * x,
        },
        *(flags, torch.randn(3)),
        oracle=changes,
        draws=40,
    )
    graph = check(
        lambda c: {
            "in places": torch.where(c, table, 1.0),
            "zeros": torch.where(c, torch.zeros(3), 0.0),
            "filled": table.masked_fill(c, 1.0),
        },
        flags,
        oracle=changes,
        draws=40,
    )
    assert graph.dag.nodes - graph.dag.inputs == 4


def test_known_zeros_are_not_read():
    keep = torch.tensor([1.0, 0.0, 1.0])
    graph = check(
        lambda x, y: {
            "product": x * keep,
            "product behind it": (x * keep) * y + y.sin(),
            "made in forward": x * (torch.arange(3) > 0),
            "by a literal": x * 0 + y.cos(),
            "divided": (keep - 1) / (2 + x.abs()),
            "multiplied in place": x.clone().mul_(keep),
        },
        *(torch.randn(2, 3), torch.randn(3)),
    )
    lengths = depgraph.path_lengths(graph, 0, ("output.product", [(0, 0), (0, 1)]))
    assert lengths[0].tolist() == [1, -1]


def test_an_argument_of_no_weight_is_not_read():
    ends, zero = torch.tensor([0.0, 1.0, 0.5]).double(), torch.tensor([0.0, 1.0, 2.0]).double()
    check(
        lambda x, y, z: {
            "start": torch.lerp(x, y, 0.0),
            "end": torch.lerp(x, y, 1.0),
            "between": torch.lerp(x, y, 0.25),
            "both ends": torch.lerp(x, y, ends),
            "known end": torch.lerp(x, zero, ends),
            "factor": torch.addcmul(x, y, zero),
            "other factor": torch.addcmul(x, zero, y),
            "value": torch.addcmul(x, y, z, value=0),
            "dividend": torch.addcdiv(x, zero, y),
            "quotient": torch.addcdiv(x, y, z, value=0),
            "add": torch.add(x, y, alpha=0),
            "sub": torch.sub(x, y, alpha=0),
            "rsub": torch.rsub(x, y, alpha=0),
            "itself": torch.sub(x, x, alpha=0),
            "power": x**0 + y,
            "powers": (2 + x.abs()) ** zero,
            "power of one": torch.ones(3).double() ** y + z,
        },
        *(torch.randn(3), torch.randn(3), torch.rand(3) + 1),
    )


def test_flags_that_are_settled():
    off, on = torch.tensor([True, False, False]), torch.tensor([False, True, False])
    check(
        lambda a, b: {
            "and": a & off,
            "or": b | on,
            "logical": torch.logical_and(a, off) | torch.logical_or(b, on),
            "integer and": (a.long() & off.long()),
        },
        *(torch.tensor([True, False, True]), torch.tensor([True, False, True])),
        oracle=changes,
        draws=40,
    )


def test_infinities_settle_sums_and_maxima():
    shift = torch.tensor([0.0, -INF, INF])
    check(
        lambda x: {
            "sum": x + shift,
            "difference": x - shift.flip(0),
            "maximum": torch.maximum(x, shift),
            "minimum": torch.minimum(x, shift),
        },
        torch.randn(3),
        oracle=changes,
        draws=40,
    )


def test_a_parameter_of_zeros_is_read_all_the_same():
    class Gate(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = torch.nn.Parameter(torch.zeros(()))
            self.register_buffer("zero", torch.zeros(()))

        def forward(self, x):
            return x * self.gate, x * self.zero

    graph = depgraph.trace(Gate(), (torch.randn(1, 4, 2),), positions={"x": 1, "output.0": 1, "output.1": 1})
    assert (depgraph.path_lengths(graph, target="output.0") == torch.eye(4).long().numpy() * 2 - 1).all()
    assert (depgraph.path_lengths(graph, target="output.1") == -1).all()


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float32, torch.bool])
def test_casts_are_free(dtype):
    graph = depgraph.trace(Apply(lambda x: x.to(dtype)), (torch.randn(1, 4, 2),), positions={0: 1})
    assert graph.dag.nodes == graph.dag.inputs == 4
