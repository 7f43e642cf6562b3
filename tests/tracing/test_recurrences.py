"""Recurrent layers keep their shapes and, where there are values, their values."""

import pytest
import torch
from torch import nn

from depgraph.tracing.capture import capture
from depgraph.tracing.recurrences import whole_recurrences
from depgraph.tracing.settings import tracing_settings

LAYERS = [
    nn.LSTM(3, 4),
    nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2, batch_first=True),
    nn.GRU(3, 4, 2, bidirectional=True),
    nn.RNN(3, 4, batch_first=True),
]


@pytest.mark.parametrize("layer", LAYERS, ids=repr)
@pytest.mark.parametrize("shape", [(5, 2, 3), (5, 3)], ids=["batched", "unbatched"])
def test_shapes_are_those_of_the_layer(layer, shape):
    x = torch.randn(shape)
    program = capture(layer.eval(), (x,))
    with tracing_settings():  # oneDNN warns about projections
        output, state = layer(x)
    expected = [output, *(state if isinstance(state, tuple) else [state])]
    assert [tuple(leaf.value.shape) for leaf in program.outputs] == [tuple(t.shape) for t in expected]


def test_values_are_computed_where_there_are_any():
    layer, x = nn.LSTM(3, 4).eval(), torch.randn(5, 2, 3)
    expected = layer(x)[0]
    with whole_recurrences():
        assert torch.equal(layer(x)[0], expected)


def test_nothing_stays_replaced():
    op = torch.ops.aten.lstm.input
    before = dict(op.py_kernels)
    with whole_recurrences():
        assert op.py_kernels != before
    assert op.py_kernels == before
