"""Recurrent layers, unrolled analytically: one node a time step, layer and direction.

Reads: h[t] ← x[t, all features] and h[t - 1]; h[0] ← x[0] and the given initial state (hidden, and cell for an LSTM).
Gates do not shorten the road: an LSTM's or GRU's cell is one node like an RNN's.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from depgraph.errors import TracingError
from depgraph.rules.call import Call, Read
from depgraph.rules.registry import rule
from depgraph.rules.values import KNOWN, Value, core, forget, known

PACKED = "the lengths of a packed sequence decide which steps are taken"


def layers(
    call: Call, x: Tensor, states: list[Tensor], weights: list[list[Value]], bidirectional: bool,
    active: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Unroll stacked layers.

    Parameters
    ----------
    x : (T, B, features) codes
    states : list of (layers · directions, B, features) codes
    weights : the parameters of each layer and direction
    active : (T, B) bool, True where a step is taken (packed sequences)

    Returns
    -------
    output : (T, B, directions · hidden) codes
    last : (layers · directions, B) codes of each direction's last state
    """
    directions = 2 if bidirectional else 1
    steps, batch = x.shape[:2]
    x = x.narrow(-1, 0, 1) if x.stride(-1) == 0 else x
    lasts: list[Tensor] = []
    for layer in range(len(weights) // directions):
        outs = []
        for direction in range(directions):
            number = layer * directions + direction
            sequence, on = (x.flip(0), None if active is None else active.flip(0)) if direction else (x, active)
            start = [Read(state[number : number + 1], 1) for state in states]
            extra = [w.codes for w in weights[number] if not w.is_constant]
            if extra:
                # A parameter that carries nodes is read by every step, like the input.
                flat = [core(w).unique() for w in extra]
                sequence = torch.cat([sequence, *(f.expand(steps, batch, -1) for f in flat)], -1)
            codes = call.steps(Read(sequence, 1), start, on, backwards=bool(direction))
            lasts.append(final(codes, on))
            outs.append(codes.flip(0) if direction else codes)
        hidden = outs[0].unsqueeze(-1).expand(-1, -1, 1)
        x = torch.stack(outs, -1) if directions == 2 else hidden
    return x, torch.stack(lasts)


def final(codes: Tensor, active: Tensor | None) -> Tensor:
    """Return the codes of each chain's last step."""
    if active is None:
        return codes[-1]
    steps = torch.arange(1, len(codes) + 1)[:, None] * active
    return codes.gather(0, steps.argmax(0)[None])[0]


def spread(codes: Tensor, shape: torch.Size) -> Tensor:
    """Give every hidden feature of a step its code; two directions lie side by side."""
    if codes.shape[-1] == 1:
        return codes.expand(shape)
    return codes.repeat_interleave(shape[-1] // codes.shape[-1], -1)


def grouped(params: list[Value], count: int) -> list[list[Value]]:
    """Split the flat list of parameters by layer and direction."""
    size = len(params) // count
    return [params[i * size : (i + 1) * size] for i in range(count)]


def unroll(
    call: Call, x: Value, states: list[Value], params: list[Value], num_layers: int, bidirectional: bool,
    batch_first: bool,
) -> Any:  # fmt: skip
    """Follow a whole recurrent module: output, then each state's last values."""
    codes = x.codes
    batched = codes.ndim == 3
    if not batched:
        codes = codes.unsqueeze(1)
    elif batch_first:
        codes = codes.transpose(0, 1)
    if not codes.shape[0]:
        raise TracingError(
            f"A recurrent layer is given a sequence of no steps, {tuple(x.shape)}; it needs one at least."
        )
    begin = [s.codes if batched else s.codes.unsqueeze(1) for s in states]
    count = num_layers * (2 if bidirectional else 1)
    out, last = layers(call, codes, begin, grouped(params, count), bidirectional)
    metas = call.meta
    if batched and batch_first:
        out = out.transpose(0, 1)
    elif not batched:
        out, last = out.squeeze(1), last.squeeze(1)
    results = [Value(spread(out, metas[0].shape), None, metas[0].dtype)]
    results += [Value(last.unsqueeze(-1).expand(m.shape), None, m.dtype) for m in metas[1:]]
    return tuple(results)


@rule("lstm.input", contraction=True)
def lstm(
    call: Call, x: Value, hx: list[Value], params: list[Value], has_biases: bool, num_layers: int, dropout: float,
    train: bool, bidirectional: bool, batch_first: bool,
) -> Any:  # fmt: skip
    """Long short-term memory: hidden and cell are one node a step."""
    return unroll(call, x, list(hx), list(params), num_layers, bidirectional, batch_first)


@rule("gru.input", "rnn_tanh.input", "rnn_relu.input", contraction=True)
def rnn(
    call: Call, x: Value, hx: Value, params: list[Value], has_biases: bool, num_layers: int, dropout: float,
    train: bool, bidirectional: bool, batch_first: bool,
) -> Any:  # fmt: skip
    """Gated and plain recurrence."""
    return unroll(call, x, [hx], list(params), num_layers, bidirectional, batch_first)


@rule("lstm.data", "gru.data", "rnn_tanh.data", "rnn_relu.data", contraction=True)
def packed(
    call: Call, data: Value, batch_sizes: Value, hx: Any, params: list[Value], has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool,
) -> Any:  # fmt: skip
    """Recurrence over a packed sequence: each example has steps of its own number."""
    call.need_known(batch_sizes, PACKED)
    sizes = batch_sizes.values()
    unpack = torch.ops.aten._pad_packed_sequence
    codes, lengths = unpack(data.codes.contiguous(), sizes, False, KNOWN, len(sizes))
    active = torch.arange(len(sizes))[:, None] < lengths
    states = [s.codes for s in (hx if isinstance(hx, (list, tuple)) else [hx])]
    count = num_layers * (2 if bidirectional else 1)
    out, last = layers(call, codes, states, grouped(list(params), count), bidirectional, active)
    rows, _ = torch.ops.aten._pack_padded_sequence(out.contiguous(), lengths, False)
    metas = call.meta
    results = [Value(spread(rows, metas[0].shape), None, metas[0].dtype)]
    results += [Value(last.unsqueeze(-1).expand(m.shape), None, m.dtype) for m in metas[1:]]
    return tuple(results)


@rule("_pack_padded_sequence")
def pack(call: Call, x: Value, lengths: Value, batch_first: bool) -> Any:
    """Move the steps that are within each example's length."""
    call.need_known(lengths, PACKED)
    rows = x.through(lambda t: call.op(t.contiguous(), lengths.values(), batch_first)[0])
    return rows, known(call.op(x.codes.contiguous(), lengths.values(), batch_first)[1])


@rule("_pad_packed_sequence")
def unpack(call: Call, data: Value, sizes: Value, batch_first: bool, padding: float, total: int) -> Any:
    """Move the steps back to where they belong, a known number everywhere else."""
    call.need_known(sizes, PACKED)
    codes, lengths = call.op(data.codes.contiguous(), sizes.values(), batch_first, KNOWN, total)

    def unpacked(tensor: Tensor, filling: float) -> Tensor:
        rows: Tensor = call.op(tensor.contiguous(), sizes.values(), batch_first, filling, total)[0]
        return rows

    low = high = nan = None
    if padding != 0 or data.low is not None:
        low = unpacked(data.values(), padding)
    if data.high is not None:
        high = unpacked(data.high, padding)
        nan = None if data.nan is None else unpacked(data.nan.to(torch.uint8), 0).bool()
    return Value(codes, low, data.dtype, high, nan), known(lengths)


@rule("lstm_cell", contraction=True)
def lstm_cell(call: Call, x: Value, hx: list[Value], *params: Any) -> Any:
    """One step; hidden and cell are one node."""
    codes = cell(call, [x, *hx], params)
    return tuple(Value(codes.expand(m.shape), None, m.dtype) for m in call.meta)


@rule("gru_cell", "rnn_tanh_cell", "rnn_relu_cell", contraction=True)
def rnn_cell(call: Call, x: Value, hx: Value, *params: Any) -> Value:
    """One step."""
    return Value(cell(call, [x, hx], params).expand(call.shape), None, call.dtype)


def cell(call: Call, read: list[Value], params: Any) -> Tensor:
    """Read all features of the input and the state of an example."""
    weights = [p for p in params if isinstance(p, Value) and not p.is_constant]
    reads = [Read(r.codes.unsqueeze(-2), 1) for r in read] + [Read(w.codes, w.ndim) for w in weights]
    batch = read[0].shape[:-1]
    codes = call.nodes((*batch, 1), *reads)
    return forget(codes)
