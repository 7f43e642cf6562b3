"""Sequence to sequence models and their kin: what separates a short path, a short chain and a wide passage."""

from collections import Counter

import numpy as np
import pytest
import torch

import depgraph
from tests.gallery.files import traced
from tests.oracles.models import Translation
from tests.oracles.pairs import distance, past


def sequence(n):
    return torch.randn(1, n, 32)


SIZES = [(7, 7, 1), (5, 3, 3), (3, 6, 2)]


def is_a_fixed_vector(graph, n, m, layers):
    found = depgraph.parallelism(graph)
    assert found.work == layers * (n + m) + m
    assert found.span == n + m + layers
    assert depgraph.bottleneck(graph).size == min(n, m, layers)


@pytest.mark.parametrize("name", ["seq2seq", "seq2seq_reversed"])
@pytest.mark.parametrize(("n", "m", "layers"), SIZES)
def test_fixed_vector(n, m, layers, name):
    graph = traced(name, n, m, hidden=3, layers=layers)
    is_a_fixed_vector(graph, n, m, layers)
    i, j = np.arange(1, n + 1)[:, None], np.arange(1, m + 1)[None, :]
    expected = (i + j + 1 if name == "seq2seq_reversed" else n - i + j + 2) + layers - 1
    assert np.array_equal(depgraph.path_lengths(graph), expected)


def test_reversing_the_source_brings_the_nearest_words_nearer():
    forwards, backwards = (
        np.diag(depgraph.path_lengths(traced(name, 4, hidden=3))) for name in ("seq2seq", "seq2seq_reversed")
    )
    assert forwards.tolist() == [6, 6, 6, 6]
    assert backwards.tolist() == [3, 5, 7, 9]
    assert forwards.mean() == backwards.mean()


@pytest.mark.parametrize(("n", "m", "layers"), SIZES[1:])
def test_knowing_the_target_does_not_shorten_the_chain(n, m, layers):
    graph = traced("seq2seq_teacher", n, sequence(m), hidden=3, layers=layers)
    is_a_fixed_vector(graph, n, m, layers)
    # Word j is read from step j + 1 on: a cell a layer, then the output.
    expected = np.where(distance(m) > 0, distance(m) + layers, -1)
    assert np.array_equal(depgraph.path_lengths(graph, "target"), expected)


def test_alignment():
    spans = {}
    for n, m in [(3, 2), (5, 2), (3, 4)]:
        graph = traced("bahdanau", n, m, hidden=3)
        # Encoder cell, context, decoder cell, output: the same from every word to every word.
        assert (depgraph.path_lengths(graph) == 4).all()
        assert depgraph.bottleneck(graph).size == min(n, m)
        spans[n, m] = depgraph.critical_path(graph).length
        # Cells backwards, first state with its tanh; query, sum, tanh, score, softmax, context and cell a word; output.
        assert spans[n, m] == n + 2 + 7 * m + 1
    assert spans[5, 2] - spans[3, 2] == 2 * 1
    assert spans[3, 4] - spans[3, 2] == 2 * 7


@pytest.mark.parametrize(("n", "m", "layers"), [(3, 5, 1), (5, 2, 2)])
def test_alignment_outside_the_chain(n, m, layers):
    graph = traced("luong", n, m, hidden=3, layers=layers)
    # A cell a layer, context, attentional state with its tanh, output.
    assert (depgraph.path_lengths(graph) == layers + 4).all()
    assert depgraph.bottleneck(graph).size == min(n, m)
    # All cells; then score, softmax, context, attentional state with its tanh, output, once.
    assert depgraph.critical_path(graph).length == n + m + layers - 1 + 6


def test_memory_network():
    for n in (2, 5):
        graph = traced("lstmn", n, hidden=3)
        lengths = depgraph.path_lengths(graph)
        # Into the memory by gate, activation and product; out of it by context, gate, activation and product.
        assert set(lengths[np.triu_indices(n, 1)].tolist()) == {7}
        assert set(np.diag(lengths).tolist()) == {3}
        assert np.array_equal(lengths >= 0, past(n))
        # A short path is not parallelism: every step waits for the one before. Key, sum, tanh, score, softmax,
        # context, gates, activation, product, sum, tanh, product; the first has only one key, so its context is known.
        assert depgraph.critical_path(graph).length == 12 * (n - 1) + 6


@pytest.mark.parametrize(("name", "more"), [("decomposable_attention", 0), ("decomposable_intra_attention", 8)])
def test_decomposable_attention(name, more):
    for n, m in [(5, 2), (2, 7)]:
        graph = traced(name, n, sequence(m), hidden=3)
        # F (four operations), scores, softmax, weighted sum, G (four), sum. Before it attention inside each sentence:
        # F' (four), scores, their bias, softmax, weighted sum.
        assert depgraph.critical_path(graph).length == 12 + more
        assert graph.outputs["output"].positions == (1,)
        for source in "ab":
            assert depgraph.bottleneck(graph, source).size == 2
        scores = Counter((operation.name, operation.stop - operation.start) for operation in graph.operations)
        assert scores["matmul", n * m] >= 1


def test_recurrence_under_attention():
    for n in (3, 9):
        graph = traced("rnn_self_attention", n, hidden=3)
        # Cell, key or value, attention, output.
        assert np.array_equal(depgraph.path_lengths(graph), np.where(past(n), 4, -1))
        assert depgraph.critical_path(graph).length == n + 3


def is_an_encoder_and_decoder(graph, m, layers, before, after):
    """Check what does not depend on the length of the source, given the operations before and after the stacks."""
    source, target = graph.inputs
    # Encoder: 4 a layer and its last norm. Decoder: into the first layer by key or value, cross-attention and
    # output, then 4 operations to the end: the further layers can read the memory as early as the first.
    across = depgraph.path_lengths(graph, source)
    assert set(across.reshape(-1).tolist()) == {before + 4 * layers + 1 + 3 + 4 + 1 + after}
    # A decoder layer is 15 operations, of which the first 5 need not wait for the encoder in the first layer.
    span = before + 10 * layers + 1 + 15 * layers - 5 + 1 + after
    assert depgraph.critical_path(graph).length == span
    # Along the decoder's sums, 6 a layer, and its last norm; once through attention takes 3 more.
    within = before + 6 * layers + 1 + after
    expected = np.where(distance(m) == 0, within, within + 3)
    assert np.array_equal(depgraph.path_lengths(graph, target), np.where(past(m), expected, -1))


@pytest.mark.parametrize(("n", "m", "layers"), [(3, 4, 1), (6, 2, 2)])
def test_transformer(n, m, layers):
    tokens = torch.randint(9, (1, n)), torch.randint(9, (1, m))
    sizes = {"vocabulary": 9, "width": 4, "heads": 2, "feedforward": 8}
    graph = traced("transformer", n, *tokens, **sizes, layers=layers)
    # Embedding, scaling and sum with the position; the logits.
    is_an_encoder_and_decoder(graph, m, layers, before=3, after=1)
    assert depgraph.bottleneck(graph, "src").size == min(n, m)


@pytest.mark.parametrize(("n", "m", "layers"), [(3, 4, 1), (6, 2, 1)])
def test_transformer_told_that_its_mask_is_causal(n, m, layers):
    args = torch.randn(1, n, 4), torch.randn(1, m, 4)
    graph = depgraph.trace(Translation(layers).eval(), args, positions={"source": 1, "target": 1})
    is_an_encoder_and_decoder(graph, m, layers, before=0, after=0)
    assert depgraph.bottleneck(graph, "source").size == min(n, m)
