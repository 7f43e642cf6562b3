"""Other values of the same kind, and what is different in another run."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import depgraph
from depgraph.tracing.capture import capture
from depgraph.tracing.python.shifting import FAR, NEAR, shifted

CHANGES = (*NEAR, *FAR)
NUMBERS = st.one_of(st.booleans(), st.integers(-(2**40), 2**40), st.floats(allow_nan=False, width=32))


@given(NUMBERS, st.sampled_from(CHANGES))
def test_another_number_of_the_same_kind(value, change):
    other = shifted(value, change)
    assert type(other) is type(value)
    if not isinstance(value, bool) or change in NEAR:
        assert other != value or value == 1.0  # an infinity becomes 1


@given(NUMBERS)
def test_whatever_the_threshold_one_is_beyond(value):
    assert shifted(value, "lowered") <= value <= shifted(value, "raised") or abs(value) == float("inf")


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int64", "float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("change", [*CHANGES, "turned"])
def test_arrays(dtype, change):
    array = np.array([[0, 1, 1], [1, 0, 3]]).astype(dtype)
    other = shifted(array, change)
    assert (other.dtype, other.shape) == (array.dtype, array.shape)
    if change != "turned" and dtype != "bool" and (dtype, change) != ("uint8", "lowered"):  # there is nothing below 0
        assert (other != array).all()


@pytest.mark.parametrize("change", [*CHANGES, "turned"])
def test_nests_and_tensors(change):
    assert [type(v) for v in shifted([1.0, (2, True)], change)] == (
        [tuple, float] if change == "turned" else [float, tuple]
    )
    tensor = shifted(torch.tensor([1.0, 2.0]), change)
    assert (tensor.dtype, tensor.shape) == (torch.float32, (2,))


class Runs(nn.Module):
    def __init__(self, run):
        super().__init__()
        self.run = run

    def forward(self, x):
        return self.run(x)


def read(run):
    """Return what stands for Python in the graph, and what it reads."""
    program = capture(Runs(run), (torch.tensor([0.3, -0.2, 0.1, 0.4]),))
    nodes = [node for node in program.graph.nodes if str(node.target) == "depgraph.python.default"]
    return program, [{str(n.target) for n in node.args[1]} for node in nodes]


def test_a_number_that_is_still_the_same_is_read_where_it_was_taken():
    program, nodes = read(lambda x: x * float(x[1]))
    assert nodes == []
    assert [str(n.target) for n in program.graph.nodes if n.op == "call_function"][-2:] == [
        "aten.item.default", "aten.mul.Tensor",
    ]  # fmt: skip


def test_a_number_that_another_one_replaces_is_not_taken_for_the_same():
    _, (reads,) = read(lambda x: x * max(float(x[0]), float(x[1])))
    assert reads == {"aten.select.int"}


def test_views_are_compared_as_what_they_are():
    """A view that is read first at another place in another run is the same view."""
    program, nodes = read(lambda x: x[int(x[0] > 0)] + x[1] * float(x[2]))
    assert len(nodes) == 1
    assert "aten.index_select.default" in {str(node.target) for node in program.graph.nodes}
    assert program.warnings == [] or all("followed" in warning for warning in program.warnings)


def test_another_number_of_turns_is_another_branch():
    def run(x):
        for _ in range(int(x[0] > 0) + 1):
            x = x * 2
        return x

    program, nodes = read(run)
    assert nodes == []
    assert len(program.warnings) == 1


@pytest.mark.parametrize("count", [4, 9, 20])
def test_more_numbers_than_are_changed_apart_are_all_read(count):
    """Several are changed at once then, and each of these groups counts."""
    graph = depgraph.trace(
        Runs(lambda x: x[:1] * sum(float(value) * 2 for value in x)),
        (torch.rand(count),),
        positions={"x": 0, "output": 0},
    )
    assert depgraph.dependence_matrix(graph).toarray().all()
