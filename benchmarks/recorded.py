"""Models to be recorded: each with its example arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Recorded:
    """A model and how it is called.

    Attributes
    ----------
    name : str
    build : callable
        Returns the model and its example arguments.
    """

    name: str
    build: Callable[[], tuple[nn.Module, tuple[Any, ...]]]


class Translator(nn.Module):
    """`nn.Transformer`, whose decoder is masked by an argument."""

    def __init__(self) -> None:
        super().__init__()
        self.transformer = nn.Transformer(batch_first=True)

    def forward(self, source: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        """Read a source and a target of (1, T, 512)."""
        return self.transformer(source, target, tgt_mask=mask, tgt_is_causal=True)


class Padded(nn.Module):
    """Transformer layers over as many positions as the longest sequence has, which is read off a tensor."""

    def __init__(self) -> None:
        super().__init__()
        layers = [nn.TransformerEncoderLayer(64, 4, 128, batch_first=True) for _ in range(12)]
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Read (B, T, 64) of some lengths."""
        longest = int(lengths.max())
        x, padding = x[:, :longest], torch.arange(longest) >= lengths[:, None]
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=padding)
        return x


class Cells(nn.Module):
    """An LSTM as a loop of cells, whose states are written into one tensor row by row."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(16, 32)

    def forward(self, x: Tensor) -> Tensor:
        """Read a (T, 16) sequence step by step."""
        h = c = x.new_zeros(32)
        out = x.new_zeros(len(x), 32)
        for t in range(len(x)):
            h, c = self.cell(x[t], (h, c))
            out[t] = h
        return out


class Branch(nn.Module):
    """A linear layer whose sign decides what follows."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        """Read (N, 8)."""
        y = self.linear(x)
        return y * 2 if y.sum() > 0 else y + 1


class Scaled(nn.Module):
    """A linear layer on what is divided by its largest number, read off with ``item()``."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        """Read (N, 8)."""
        return self.linear(x / x.abs().max().item())


class Named(nn.Module):
    """A model of `transformers` that is given its arguments by their names, and returns one tensor."""

    def __init__(self, model: nn.Module, names: tuple[str, ...], result: str = "logits") -> None:
        super().__init__()
        self.model, self.names, self.result = model, names, result

    def forward(self, *tensors: Tensor) -> Tensor:
        """Read tensors in the order of the names."""
        return getattr(self.model(**dict(zip(self.names, tensors, strict=True)), use_cache=False), self.result)


def _tokens(count: int) -> Tensor:
    return torch.arange(count)[None] * 7 % 100


def translator() -> tuple[nn.Module, tuple[Any, ...]]:
    """Build the Transformer of the original paper's size, for 100 positions."""
    mask = nn.Transformer.generate_square_subsequent_mask(100)
    return Translator(), (torch.randn(1, 100, 512), torch.randn(1, 100, 512), mask)


def gpt2() -> tuple[nn.Module, tuple[Any, ...]]:
    """Build a small GPT-2."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=100, n_positions=64)
    return Named(GPT2LMHeadModel(config), ("input_ids",)), (_tokens(20),)


def t5() -> tuple[nn.Module, tuple[Any, ...]]:
    """Build a small T5."""
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(vocab_size=100, d_model=64, d_kv=16, d_ff=128, num_layers=4, num_heads=4)
    return Named(T5ForConditionalGeneration(config), ("input_ids", "decoder_input_ids")), (_tokens(20), _tokens(12))


def large() -> tuple[nn.Module, tuple[Any, ...]]:
    """Build a model of 6.4 billion parameters without data."""
    with torch.device("meta"):
        layer = nn.TransformerEncoderLayer(4096, 32, 16384, batch_first=True)
        return nn.TransformerEncoder(layer, 32), (torch.empty(1, 512, 4096),)


MODELS = (
    Recorded("`nn.Transformer`, 6 + 6 layers, 100 positions", translator),
    Recorded("LSTM, 2 layers, 100 steps", lambda: (nn.LSTM(32, 64, 2, batch_first=True), (torch.randn(1, 100, 32),))),
    Recorded("GPT-2, 2 layers, 20 tokens", gpt2),
    Recorded("T5, 4 + 4 layers, 20 + 12 tokens", t5),
    Recorded("300 LSTM cells in a loop, rows written in place", lambda: (Cells(), (torch.randn(300, 16),))),
    Recorded("6.4 billion parameters on the meta device", large),
    Recorded(
        "12 Transformer layers, `int(lengths.max())`",
        lambda: (Padded(), (torch.randn(2, 50, 64), torch.tensor([50, 30]))),
    ),
    Recorded("a branch that depends on data", lambda: (Branch(), (torch.ones(2, 8),))),
    Recorded("a division by `.item()`", lambda: (Scaled(), (torch.randn(2, 8),))),
)
