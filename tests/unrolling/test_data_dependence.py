"""Shapes, sizes and branches that depend on values: the example decides, and that is said."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import depgraph
from tests.jacobian import Apply

R = torch.randn


def traced(function, *args, positions=None):
    return depgraph.trace(Apply(function), args, positions=positions or {0: 0})


def reached(graph, **options):
    return (depgraph.path_lengths(graph, **options) >= 0).tolist()


def test_the_branch_taken_is_the_branch_analysed():
    def either(x):
        if x.sum() > 0:
            return x.cumsum(0)
        return x * 2

    up = traced(either, torch.ones(3, 2), positions={0: 0, "output": 0})
    down = traced(either, -torch.ones(3, 2), positions={0: 0, "output": 0})
    assert reached(up) == np.triu(np.ones((3, 3), bool)).tolist()
    assert reached(down) == np.eye(3, dtype=bool).tolist()
    for graph, value in ((up, "True"), (down, "False")):
        (warning,) = graph.warnings
        assert "test_data_dependence.py:" in warning
        assert value in warning


def test_sizes_made_of_values():
    graph = traced(lambda x, n: x[: int(n)] * 2, R(4), torch.tensor(2), positions={0: 0, "output": 0})
    assert reached(graph) == [[True, False], [False, True], [False, False], [False, False]]
    (warning,) = graph.warnings
    assert "args.1" in warning
    assert "test_data_dependence.py:" in warning


def test_a_mask_that_decides_a_size_reads_everything():
    x = torch.tensor([1.0, -1.0, 2.0])
    for function in (lambda x: x[x > 0], lambda x: x.masked_select(x > 0), lambda x: torch.nonzero(x > 0)):
        graph = traced(function, x)
        assert reached(graph) == [[True]] * 3
        assert any("test_data_dependence.py:" in warning for warning in graph.warnings)


def test_sets():
    graph = traced(lambda x: torch.unique(x), torch.tensor([3, 1, 1]))
    assert reached(graph) == [[True]] * 3


def test_known_values_decide_sizes_without_a_word():
    mask = torch.tensor([True, False, True])
    graph = traced(lambda x: x[mask] * torch.nonzero(mask).sum(), R(3), positions={0: 0, "output": 0})
    assert reached(graph) == [[True, False], [False, False], [False, True]]
    assert graph.warnings == []


class Lengths(nn.Module):
    """The lengths of a batch of sequences are an input."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(2, 2, batch_first=True)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.rnn(packed)[0], batch_first=True, total_length=x.shape[1])[0]


def test_inputs_that_have_to_be_known_are_held():
    graph = depgraph.trace(Lengths(), (R(2, 3, 2), torch.tensor([1, 3])), positions={"x": (0, 1), "output": (0, 1)})
    expected = np.zeros((2, 3, 2, 3), bool)
    expected[0, 0, 0, 0] = True
    expected[1, :, 1, :] = np.triu(np.ones((3, 3), bool))
    assert reached(graph) == expected.reshape(6, 6).tolist()
    assert any("lengths is held at its example value" in warning for warning in graph.warnings)
    assert graph.unused_inputs == []
    assert graph.unused_parameters == []


def test_named_as_known_they_are_held_without_a_word():
    args = R(2, 3, 2), torch.tensor([1, 3])
    graph = depgraph.trace(Lengths(), args, positions={"x": 1}, known=["lengths"])
    assert not any("held" in warning for warning in graph.warnings)


def test_tracked_they_are_not_held():
    graph = depgraph.trace(
        Lengths(), (R(2, 3, 2), torch.tensor([1, 3])), positions={"x": (0, 1), "lengths": 0, "output": (0, 1)}
    )
    # What their values decide is not known, so everything may depend on them.
    assert depgraph.path_lengths(graph, "lengths").max() > 0
    assert any("taken to read everything" in warning for warning in graph.warnings)


@pytest.mark.parametrize("n", [1, 3])
def test_loops_over_a_number(n):
    def repeated(x, n):
        for _ in range(n.item()):
            x = x.roll(1, 0) * 2
        return x

    graph = traced(repeated, R(4), torch.tensor(n), positions={0: 0, "output": 0})
    assert depgraph.critical_path(graph).length == n
    assert reached(graph) == np.roll(np.eye(4, dtype=bool), n, 1).tolist()
    (warning,) = graph.warnings
    assert str(n) in warning
