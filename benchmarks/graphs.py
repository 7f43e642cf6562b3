"""The graphs that are measured: models as they are used, and two classic DAGs."""

from collections.abc import Callable
from dataclasses import dataclass

import networkx as nx
import torch
from torch import nn

import depgraph


@dataclass(frozen=True)
class Case:
    """A graph with a name, and how to make it."""

    name: str
    build: Callable[[], depgraph.DependencyGraph]


def gpt2_model(tokens: int, attention: str = "sdpa") -> tuple[nn.Module, torch.Tensor]:
    """Return GPT-2 small (12 layers, random weights) and that many tokens."""
    from transformers import GPT2Config, GPT2Model

    torch.manual_seed(0)
    config = GPT2Config(attn_implementation=attention, use_cache=False, n_positions=max(tokens, 1024))
    return GPT2Model(config).eval(), torch.randint(0, 100, (1, tokens))


def gpt2(tokens: int, attention: str = "sdpa") -> depgraph.DependencyGraph:
    """Return the graph of GPT-2 small."""
    model, ids = gpt2_model(tokens, attention)
    return depgraph.trace(model, (ids,))


def lstm(steps: int) -> depgraph.DependencyGraph:
    """Return two bidirectional layers."""
    model = nn.LSTM(8, 8, 2, bidirectional=True, batch_first=True).eval()
    return depgraph.trace(model, (torch.randn(1, steps, 8),), positions={"input": 1, "output.0": 1})


class Residual(nn.Module):
    """A 3×3 convolution that is added to what it reads."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x and what the convolution makes of it."""
        return x + torch.relu(self.convolution(x))


def convolutions(layers: int, side: int) -> depgraph.DependencyGraph:
    """Return a stack of residual convolutions on an image."""
    model = nn.Sequential(*(Residual() for _ in range(layers))).eval()
    return depgraph.trace(model, (torch.randn(1, 4, side, side),))


def grid(rows: int, columns: int) -> depgraph.DependencyGraph:
    """Return a grid whose nodes read the ones above and to the left; inputs above, outputs at the bottom."""
    dag = nx.DiGraph()
    dag.add_edges_from(((i - 1, j), (i, j)) for i in range(rows) for j in range(columns))
    dag.add_edges_from(((i, j - 1), (i, j)) for i in range(rows) for j in range(1, columns))
    edge = [[(i, j) for j in range(columns)] for i in (-1, rows - 1)]
    return depgraph.from_networkx(dag, *edge)


def fft(size: int) -> depgraph.DependencyGraph:
    """Return the butterfly of the fast Fourier transform."""
    dag, levels = nx.DiGraph(), size.bit_length() - 1
    for level in range(levels):
        dag.add_edges_from(((level, j), (level + 1, i)) for i in range(size) for j in (i, i ^ 1 << level))
    edge = [[(level, i) for i in range(size)] for level in (0, levels)]
    return depgraph.from_networkx(dag, *edge)


CASES = (
    *(Case(f"GPT-2, {n:,} tokens", lambda n=n: gpt2(n)) for n in (256, 1024, 4096)),
    *(Case(f"GPT-2, attention written out, {n} tokens", lambda n=n: gpt2(n, "eager")) for n in (256, 512)),
    Case("LSTM, 2 layers, both directions, 4,096 steps", lambda: lstm(4096)),
    Case("50 residual convolutions, 64×64 pixels", lambda: convolutions(50, 64)),
    Case("grid, 300×300", lambda: grid(300, 300)),
    Case("FFT, 4,096 points", lambda: fft(4096)),
)
