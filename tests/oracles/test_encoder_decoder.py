"""Sequence to sequence models and their kin: what separates a short path, a short chain and a wide passage."""

from collections import Counter

import numpy as np
import pytest
import torch
from torch import nn

import depgraph
from tests.oracles.models import LSTMN, Bahdanau, D, Parikh, RecurrentAttention, Sutskever


def sequence(n):
    return torch.randn(2, n, D)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("n", "m", "layers"), [(4, 4, 1), (5, 3, 3), (3, 6, 2)])
def test_fixed_vector(n, m, layers, reverse):
    graph = depgraph.trace(Sutskever(layers, m, reverse).eval(), (sequence(n),))
    found = depgraph.parallelism(graph)
    assert found.work == layers * (n + m) + m
    assert found.span == n + m + layers
    i, j = np.arange(1, n + 1)[:, None], np.arange(1, m + 1)[None, :]
    expected = (i + j + 1 if reverse else n - i + j + 2) + layers - 1
    assert np.array_equal(depgraph.path_lengths(graph), expected)
    assert depgraph.bottleneck(graph).size == min(n, m, layers)


def test_reversing_the_source_brings_the_nearest_words_nearer():
    matched = {
        reverse: np.diag(depgraph.path_lengths(depgraph.trace(Sutskever(1, 4, reverse).eval(), (sequence(4),))))
        for reverse in (False, True)
    }
    assert matched[False].tolist() == [6, 6, 6, 6]
    assert matched[True].tolist() == [3, 5, 7, 9]
    assert matched[False].mean() == matched[True].mean()


def test_alignment():
    spans = {}
    for n, m in [(3, 2), (4, 2), (5, 2), (3, 3), (3, 4)]:
        graph = depgraph.trace(Bahdanau(m).eval(), (sequence(n),))
        # Encoder cell, context, decoder cell, output: the same from every word to every word.
        assert (depgraph.path_lengths(graph) == 4).all()
        assert depgraph.bottleneck(graph).size == min(n, m)
        spans[n, m] = depgraph.critical_path(graph).length
    # A source word more is a cell more; a target word more is query, sum, tanh, score, softmax, context and cell more.
    assert [spans[n, 2] - spans[3, 2] for n in (4, 5)] == [1, 2]
    assert [spans[3, m] - spans[3, 2] for m in (3, 4)] == [7, 14]


def test_memory_network():
    spans = []
    for n in (2, 3, 4):
        graph = depgraph.trace(LSTMN().eval(), (sequence(n),))
        lengths = depgraph.path_lengths(graph)
        # Into the memory by gate, activation and product; out of it by context, gate, activation and product.
        assert set(lengths[np.triu_indices(n, 1)].tolist()) == {7}
        assert set(np.diag(lengths).tolist()) == {3}
        assert (lengths[np.tril_indices(n, -1)] == -1).all()
        spans.append(depgraph.critical_path(graph).length)
    # A short path is not parallelism: every step waits for the one before. Key, sum, tanh, score, softmax,
    # context, gates, activation, product, sum, tanh, product.
    assert spans == [12 * (n - 1) + 6 for n in (2, 3, 4)]


def test_decomposable_attention():
    for n, m in [(3, 3), (5, 2), (2, 7)]:
        args = sequence(n), sequence(m)
        graph = depgraph.trace(Parikh().eval(), args, positions={"a": 1, "b": 1})
        # F, scores, softmax, weighted sum, G, relu, sum.
        assert depgraph.critical_path(graph).length == 7
        assert graph.outputs["output"].positions == (1,)
        for source in "ab":
            assert depgraph.bottleneck(graph, source).size == 2
        scores = Counter((operation.name, operation.stop - operation.start) for operation in graph.operations)
        assert scores["matmul", n * m] >= 1


def test_recurrence_under_attention():
    spans = []
    for n in (3, 6, 9):
        graph = depgraph.trace(RecurrentAttention().eval(), (sequence(n),))
        lengths = depgraph.path_lengths(graph)
        # Cell, key or value, attention, output.
        assert set(lengths[np.triu_indices(n)].tolist()) == {4}
        assert (lengths[np.tril_indices(n, -1)] == -1).all()
        spans.append(depgraph.critical_path(graph).length)
    assert spans == [3 + 3, 6 + 3, 9 + 3]


class Translation(nn.Module):
    """`nn.Transformer` with the target masked, ``is_causal`` said or left for PyTorch to find out."""

    def __init__(self, layers, is_causal):
        super().__init__()
        self.transformer = nn.Transformer(D, 2, layers, layers, 2 * D, batch_first=True)
        self.is_causal = is_causal

    def forward(self, source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        return self.transformer(source, target, tgt_mask=mask, tgt_is_causal=self.is_causal)


@pytest.mark.parametrize("is_causal", [True, None])
@pytest.mark.parametrize("layers", [1, 2])
def test_transformer(layers, is_causal):
    for n, m in [(3, 4), (6, 2)]:
        model = Translation(layers, is_causal).eval()
        graph = depgraph.trace(model, (sequence(n), sequence(m)), positions={"source": 1, "target": 1})
        # Encoder: 4 a layer and its last norm. Decoder: into the first layer by key or value, cross-attention and
        # output, then 4 operations to the end: the further layers can read the memory as early as the first.
        across = depgraph.path_lengths(graph, "source")
        assert set(across.reshape(-1).tolist()) == {4 * layers + 1 + 3 + 4 + 1}
        # A decoder layer is 15 operations, of which the first 5 need not wait for the encoder in the first layer.
        assert depgraph.critical_path(graph).length == 10 * layers + 1 + 15 * layers - 5 + 1
        reached = depgraph.path_lengths(graph, "target") >= 0
        assert np.array_equal(reached, np.triu(np.ones((m, m), bool)))
        assert depgraph.bottleneck(graph, "source").size == min(n, m)
