"""An LSTM of 100 steps: tracing ``nn.LSTM`` against torchlens logging the same model written as a loop of cells."""

import time

import torch
import torchlens
from torch import nn

import depgraph
from depgraph.tracing.capture import capture
from depgraph.unrolling.positions import plan
from depgraph.unrolling.trace import unroll


class Loop(nn.Module):
    """An LSTM as a loop of cells."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(32, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Read a (1, T, 32) sequence step by step."""
        h = c = x.new_zeros(x.shape[0], 64)
        outs = []
        for t in range(x.shape[1]):
            h, c = self.cell(x[:, t], (h, c))
            outs.append(h)
        return torch.stack(outs, 1)


def best(function, times: int = 3) -> float:
    """Return the least seconds of a few runs."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def ratios() -> list[tuple[str, str, float]]:
    """Return what is measured, against what, and the ratio."""
    x = torch.randn(1, 100, 32)
    lstm, loop = nn.LSTM(32, 64, batch_first=True).eval(), Loop().eval()
    program = capture(lstm, (x,))
    unrolled = best(lambda: unroll(program, plan(program, None, None)))
    whole = best(lambda: depgraph.trace(lstm, (x,)))
    logged = best(lambda: torchlens.trace(loop, x))
    against = "torchlens logging it as a loop of cells"
    return [
        ("unrolling an LSTM of 100 steps", against, unrolled / logged),
        ("exporting and unrolling it", against, whole / logged),
    ]
