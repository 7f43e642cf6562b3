"""Recurrent layers: a step reads its input and the state before it, the first step the state it is given."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import depgraph
from tests.jacobian import check

R = torch.randn
KINDS = [nn.RNN, nn.LSTM, nn.GRU]


class Named(nn.Module):
    """A recurrent layer with its outputs by name."""

    def __init__(self, kind, *args, **options):
        super().__init__()
        self.layer = kind(*args, **options)

    def forward(self, x, *state):
        if isinstance(self.layer, nn.LSTM):
            out, (h, c) = self.layer(x, state or None)
            return {"out": out, "h": h, "c": c}
        out, h = self.layer(x, *state)
        return {"out": out, "h": h}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_every_element(kind, bidirectional):
    # Two examples, two layers, every feature told apart.
    model = Named(kind, 2, 2, 2, bidirectional=bidirectional, batch_first=True)
    check(model, R(2, 3, 2), draws=3)


def test_time_first_and_no_batch():
    check(Named(nn.LSTM, 2, 3), R(3, 2, 2), draws=3)
    check(Named(nn.GRU, 2, 3, bidirectional=True), R(3, 2), draws=3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_that_is_given(kind):
    model = Named(kind, 2, 2, 2, batch_first=True, bidirectional=True)
    states = [R(4, 1, 2) for _ in range(2 if kind is nn.LSTM else 1)]
    # A cell state goes to its own features only: told apart by layer and direction, not by feature.
    check(model, R(1, 3, 2), *states, axes=dict.fromkeys(range(1, 3)[: len(states)], (0, 1)), draws=3)


def test_projections():
    model = Named(nn.LSTM, 2, 3, 2, proj_size=2, batch_first=True, bidirectional=True)
    check(model, R(1, 3, 2), draws=3)
    # The cell state is as wide as the layer, the hidden state as the projection.
    check(model, R(1, 3, 2), R(4, 1, 2), R(4, 1, 3), axes={1: (0,), 2: (0,)}, draws=3)


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
def test_plain_recurrence(nonlinearity):
    check(
        Named(nn.RNN, 2, 2, nonlinearity=nonlinearity, bias=False), R(3, 1, 2), draws=40, exact=nonlinearity == "tanh"
    )


@pytest.mark.parametrize("kind", [nn.RNNCell, nn.LSTMCell, nn.GRUCell])
def test_cells(kind):
    class Steps(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = kind(2, 2)

        def forward(self, x, h):
            state = (h, h.sin()) if kind is nn.LSTMCell else h
            for step in x:
                state = self.cell(step, state)
            return state

    check(Steps(), R(3, 2, 2), R(2, 2), axes={1: (0,)}, draws=3)


class Packed(nn.Module):
    """Sequences of different lengths, padded and packed."""

    def __init__(self, kind, lengths, bidirectional=False, enforce_sorted=True):
        super().__init__()
        self.layer = kind(2, 2, 2, batch_first=True, bidirectional=bidirectional)
        self.lengths, self.sorted = lengths, enforce_sorted

    def forward(self, x):
        packed = pack_padded_sequence(x, torch.tensor(self.lengths), batch_first=True, enforce_sorted=self.sorted)
        out, state = self.layer(packed)
        return {
            "out": pad_packed_sequence(out, batch_first=True, total_length=x.shape[1])[0],
            "h": state[0] if isinstance(state, tuple) else state,
        }


@pytest.mark.parametrize(
    ("kind", "lengths", "bidirectional"),
    [(nn.RNN, (4, 2, 1), False), (nn.LSTM, (2, 4, 3), True), (nn.GRU, (1, 4, 4), False)],
)
def test_packed_sequences(kind, lengths, bidirectional):
    check(Packed(kind, lengths, bidirectional, enforce_sorted=False), R(3, 4, 2), draws=2)


def test_padding_is_no_step():
    graph = depgraph.trace(Packed(nn.LSTM, (5, 2)).eval(), (R(2, 5, 2),), positions={"x": (0, 1), "output.out": (0, 1)})
    assert depgraph.parallelism(graph).work == 2 * (5 + 2)
    lengths = depgraph.path_lengths(graph, "x", "output.h")
    assert (lengths[5:7, :] >= 0).any(1).all()
    assert (lengths[7:] == -1).all()


@pytest.mark.parametrize("kind", KINDS)
def test_weights_can_be_inputs(kind):
    model = kind(2, 2, 2, batch_first=True)
    graph = depgraph.trace(
        model, (R(1, 4, 2),), positions={0: 1, "weight_hh_l0": (), "weight_ih_l1": (), "output.0": 1}
    )
    assert (depgraph.path_lengths(graph, "weight_hh_l0") == 2).all()
    assert (depgraph.path_lengths(graph, "weight_ih_l1") == 1).all()


def test_a_batch_is_told_apart():
    # The batch axis is the second one here: examples do not mix.
    graph = depgraph.trace(nn.LSTM(2, 2), (R(5, 3, 2),), positions={0: 1, "output.0": 1})
    assert (depgraph.path_lengths(graph) >= 0).tolist() == torch.eye(3).bool().tolist()
