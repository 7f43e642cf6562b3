"""Flex attention reads the keys that its mask and its scores let through."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import depgraph

T = 8
DOCUMENTS = [0, 0, 0, 1, 1, 1, 1, 2]
KEY, QUERY = np.arange(T)[:, None], np.arange(T)[None, :]


class Flex(nn.Module):
    """One layer of two heads."""

    def __init__(self, mask=None, score=None):
        super().__init__()
        self.mask, self.score = mask, score
        self.qkv = nn.Linear(4, 12)
        self.register_buffer("documents", torch.tensor(DOCUMENTS))
        self.register_buffer("bias", torch.randn(2, T, T))

    def forward(self, x):
        q, k, v = (t.view(1, T, 2, 2).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        block_mask = score = None
        if self.mask is not None:
            block_mask = create_block_mask(lambda b, h, i, j: self.mask(self, i, j), None, None, T, T, device="cpu")
        if self.score is not None:
            score = lambda s, b, h, i, j: self.score(self, s, h, i, j)  # noqa: E731
        return flex_attention(q, k, v, score_mod=score, block_mask=block_mask).transpose(1, 2).reshape(1, T, 4)


@pytest.mark.parametrize(
    ("mask", "score", "expected"),
    [
        (None, None, KEY >= 0),
        (lambda m, i, j: i >= j, None, KEY <= QUERY),
        (lambda m, i, j: (i >= j) & (i - j < 3), None, (KEY <= QUERY) & (QUERY - KEY < 3)),
        (lambda m, i, j: (i >= j) | (j < 3), None, (KEY <= QUERY) | (KEY < 3)),
        (
            lambda m, i, j: m.documents[i] == m.documents[j],
            None,
            np.equal.outer(DOCUMENTS, DOCUMENTS),
        ),
        (None, lambda m, s, h, i, j: torch.where(i >= j, s + m.bias[h, i, j], -float("inf")), KEY <= QUERY),
        (lambda m, i, j: i >= j, lambda m, s, h, i, j: s + (i - j), KEY <= QUERY),
    ],
    ids=["full", "causal", "window", "prefix", "documents", "score", "both"],
)
def test_reads_what_is_let_through(mask, score, expected):
    graph = depgraph.trace(Flex(mask, score).eval(), (torch.randn(1, T, 4),))
    lengths = depgraph.path_lengths(graph)
    assert np.array_equal(lengths >= 0, np.broadcast_to(expected, (T, T)))
    assert lengths.max() == 2  # a projection and the attention: one node a query position
    assert depgraph.parallelism(graph, "contractions").work == 2 * T
