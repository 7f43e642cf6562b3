"""What no model file of the gallery offers: the same thing said in the different ways that people say it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.gallery.files import built


class Cells(nn.Module):
    """Stacked cells in a loop, each of them one operation."""

    def __init__(self, kind, layers):
        super().__init__()
        self.cells = nn.ModuleList(kind(3, 3) for _ in range(layers))

    def forward(self, x):
        states, found = [None] * len(self.cells), []
        for t in range(x.shape[1]):
            h = x[:, t]
            for k, cell in enumerate(self.cells):
                states[k] = cell(h, states[k])
                h = states[k][0] if isinstance(states[k], tuple) else states[k]
            found.append(h)
        return torch.stack(found, 1)


def lower(n):
    """Return the causal mask: True where a query (row) may read a key (column)."""
    return torch.ones(n, n, dtype=torch.bool).tril()


def scores(q, k):
    return q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5


# The same causal attention, said in different ways.
CAUSAL = {
    "bool mask": lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m),
    "-inf mask": lambda q, k, v, m: F.scaled_dot_product_attention(
        q, k, v, attn_mask=torch.zeros(m.shape).masked_fill(~m, float("-inf"))
    ),
    "is_causal": lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    "masked_fill": lambda q, k, v, m: scores(q, k).masked_fill(~m, float("-inf")).softmax(-1) @ v,
    "where": lambda q, k, v, m: torch.where(m, scores(q, k), torch.tensor(float("-inf"))).softmax(-1) @ v,
    "added -1e9": lambda q, k, v, m: (scores(q, k) + (1 - m.float()) * -1e9).softmax(-1) @ v,
}


class CausalAttention(nn.Module):
    """The projections of `causal_attention.py`, and between them each of these forms, an output each.

    The mask is made in forward, held in a buffer or given.
    """

    def __init__(self, n=None):
        super().__init__()
        self.layer = built("causal_attention", width=4, heads=2)
        self.register_buffer("mask", None if n is None else lower(n))

    def forward(self, x, mask=None):
        if mask is None:
            mask = torch.ones(x.shape[1], x.shape[1]).tril() > 0 if self.mask is None else self.mask
        layer = self.layer
        q, k, v = (layer.split(project(x)) for project in (layer.q_proj, layer.k_proj, layer.v_proj))
        return [layer.out_proj(form(q, k, v, mask).transpose(1, 2).flatten(2)) for form in CAUSAL.values()]


class CausalEncoder(nn.Module):
    """The layers of `transformer_encoder.py` under a causal mask given in three ways, an output each."""

    def __init__(self, layers):
        super().__init__()
        self.encoder = built("transformer_encoder", width=4, heads=2, feedforward=8, layers=layers).encoder

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.encoder(x, mask=mask < 0), self.encoder(x, mask=mask), self.encoder(x, mask=mask, is_causal=True)


class Translation(nn.Module):
    """The `nn.Transformer` of `transformer.py`, told that its mask is causal: there PyTorch has to find out."""

    def __init__(self, layers):
        super().__init__()
        sizes = {"vocabulary": 9, "width": 4, "heads": 2, "feedforward": 8}
        self.transformer = built("transformer", layers=layers, **sizes).transformer

    def forward(self, source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        return self.transformer(source, target, tgt_mask=mask, tgt_is_causal=True)
