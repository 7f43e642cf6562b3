"""Fourier transforms.

Reads: transform           out[…, any] ← in[…, all along the transformed axes]
       inverse short-time  out[…, t] ← all frequencies of the frames whose window covers t
"""

from __future__ import annotations

from typing import Any

import torch

from depgraph.rules.call import Call, Read
from depgraph.rules.convolution import stretches
from depgraph.rules.elementwise import outputs
from depgraph.rules.reduction import axes_of, gathered
from depgraph.rules.registry import rule
from depgraph.rules.values import Value


@rule("_fft_r2c", "_fft_c2c", "_fft_c2r")
def fourier(call: Call, value: Value, dim: list[int], *args: Any) -> Any:
    """Read everything along the transformed axes."""
    axes = axes_of(dim, value.ndim)
    return outputs(call, call.nodes(call.shape, Read(gathered(value.codes, axes, True), len(axes))))


@rule("istft")
def istft(
    call: Call, value: Value, size: int, hop: int | None = None, length: int | None = None, window: Value | None = None,
    center: bool = True, normalized: Any = None, onesided: Any = None, total: Any = None, return_complex: bool = False,
) -> Value:  # fmt: skip
    """Add up overlapping frames."""
    hop, length, frames = hop or size // 4, length or size, value.shape[-1]
    taps = torch.zeros(size, dtype=torch.bool)
    first = (size - length) // 2
    inside = torch.ones(length, dtype=torch.bool) if window is None or window.zero is None else ~window.zero
    taps[first : first + length] = inside
    start = size // 2 if center else 0
    tap = torch.arange(call.shape[-1])[:, None] + start - torch.arange(frames) * hop
    covers = (tap >= 0) & (tap < size) & taps[tap.clamp(0, size - 1)]
    # Real signals have the other half of their frequencies settled by the first.
    codes = value.codes if return_complex else value.codes.narrow(-2, 0, size // 2 + 1)
    read, _single = stretches(codes.movedim(-2, 0), [covers])
    reads = [Read(read.codes.movedim(0, -1), 2, None if read.dead is None else read.dead.movedim(0, -1))]
    if window is not None:
        at = torch.arange(first, first + length)
        frame = torch.arange(call.shape[-1])[:, None] + start - at
        reads.append(Read(window.codes, 1, (frame % hop != 0) | (frame < 0) | (frame >= frames * hop)))
    return call.result(call.nodes(call.shape, *reads))
