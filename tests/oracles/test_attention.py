"""Attention: work, critical path, path lengths, and what masks leave to be read."""

from collections import Counter
from math import ceil

import networkx as nx
import numpy as np
import pytest
import torch

import depgraph
from tests.gallery.files import traced
from tests.oracles.models import CAUSAL, CausalAttention, CausalEncoder, lower
from tests.oracles.pairs import distance, every, past, reached
from tests.oracles.stacks import layers_to_connect, stacked

# Sizes of which no answer depends: as small as they can be.
NARROW = {"width": 4, "heads": 2, "feedforward": 4}


def words(n):
    return torch.randn(1, n, 4)


@pytest.mark.parametrize("n", [1, 64])
def test_fused_attention_between_projections(n):
    graph = traced("self_attention", n)
    found = depgraph.parallelism(graph)
    assert (found.work, found.span) == (5 * n, 3)
    assert depgraph.critical_path(graph).length == 3
    assert (depgraph.path_lengths(graph) == 3).all()
    # By key or value, at a position itself by query as well; where there is one key, its weight is always 1.
    assert np.array_equal(depgraph.count_paths(graph), 2 + np.eye(n, dtype=int) if n > 1 else [[1]])
    assert found.level_widths == [3 * n, n, n]
    assert (found.width, found.width_is_exact) == (3 * n, True)


def encoder_lengths(n, layers):
    """Return 4 a layer along the sums, and 3 more where attention has to be passed once."""
    return np.where(distance(n) == 0, 4 * layers, 7 + 4 * (layers - 1))


@pytest.mark.parametrize(("n", "layers"), [(6, 3), (100, 2)])
def test_transformer_encoder(n, layers):
    graph = traced("transformer_encoder", n, words(n), **NARROW, layers=layers)
    found = depgraph.parallelism(graph)
    assert (found.work, found.span) == (10 * n * layers, 10 * layers)
    lengths = depgraph.path_lengths(graph)
    assert np.array_equal(lengths, encoder_lengths(n, layers))
    # In a layer, around attention or through it, around the feed-forward part or through it: (2 (I + J))ᴸ in all.
    paths = depgraph.count_paths(graph)
    assert np.array_equal(paths, 2**layers * (np.eye(n, dtype=int) + ((n + 1) ** layers - 1) // n))
    # The shortest move to the other position in one of the layers.
    shortest = depgraph.count_paths(graph, shortest=True)
    assert np.array_equal(shortest, np.where(distance(n) == 0, 1, layers))
    if (n, layers) == (100, 2):
        assert (found.work, found.span, lengths.min(), lengths.max()) == (2000, 20, 8, 11)


@pytest.mark.parametrize(("n", "layers"), [(5, 1), (9, 2)])
def test_causal_transformer_encoder(n, layers):
    graph = depgraph.trace(CausalEncoder(layers).eval(), (words(n),))
    found = depgraph.parallelism(graph)
    assert (found.work, found.span) == (len(graph.outputs) * 10 * n * layers, 10 * layers)
    for output in graph.outputs:
        lengths = depgraph.path_lengths(graph, target=output)
        assert np.array_equal(lengths, np.where(past(n), encoder_lengths(n, layers), -1))


@pytest.mark.parametrize("n", [2, 8])
def test_causal_attention_costs_what_full_attention_does(n):
    graph = traced("causal_attention", n)
    # The first position has one key left: nobody reads the query there.
    assert depgraph.critical_path(graph).length == 3
    assert depgraph.parallelism(graph).work == 5 * n
    assert np.array_equal(depgraph.path_lengths(graph), np.where(past(n), 3, -1))


HELD = "mask: boolean and not tracked, so held at its example value"


@pytest.mark.parametrize(("origin", "n"), [("forward", 2), ("buffer", 7), ("argument", 5)])
def test_a_causal_mask_is_one_however_it_is_given(n, origin):
    model = CausalAttention(n if origin == "buffer" else None).eval()
    args = (words(n), *([lower(n)] if origin == "argument" else []))
    graph = depgraph.trace(model, args)
    for form, output in zip(CAUSAL, graph.outputs, strict=True):
        # Value, weighted sum, output, be the weights one operation or many.
        assert np.array_equal(depgraph.path_lengths(graph, target=output), np.where(past(n), 3, -1)), form
    if origin == "argument":
        assert graph.warnings == ["x: tracked along axis 1 (inferred)", HELD]


@pytest.mark.parametrize(("width", "layers", "reads"), [(8, 3, 22), (4, 5, 16)])
def test_causal_window(width, layers, reads):
    n = reads + 5
    graph = stacked("window_attention", words(n), **NARROW, layers=layers, window=width)
    fields = [depgraph.reads(graph, (output, -1)) for output in graph.outputs]
    assert [len(field) for field in fields] == [seen(width, number) for number in range(1, layers + 1)]
    assert fields[-1].intervals == [(n - reads, n)]
    # Mistral (Jiang et al. 2023), of which the paper has the round 32 × 4,096 = 131,072.
    assert seen(4096, 32) == 131_041


def seen(width, layers):
    """Return what the last position reads through layers of a window."""
    return layers * (width - 1) + 1


def neighbours(n, r, layers, tokens=0):
    """Return by how many layers all pairs are connected, of which each reads r positions and the global tokens."""
    sizes = {"window": r - 1, "global_tokens": tokens, "layers": layers}
    return layers_to_connect(every(n), "global_attention", words(n), **NARROW, **sizes)


@pytest.mark.parametrize(("n", "r", "layers"), [(65, 5, 32), (65, 17, 8)])
def test_restricted_attention(n, r, layers):
    assert neighbours(n, r, layers) == layers == ceil(2 * (n - 1) / (r - 1))


@pytest.mark.parametrize(("n", "without"), [(16, 8), (64, 32)])
def test_one_global_token(n, without):
    assert neighbours(n, 5, without) == without
    assert neighbours(n, 5, 2, tokens=1) == 2


@pytest.mark.parametrize("n", [4, 9])
def test_every_score_is_a_node(n):
    graph = traced("self_attention_eager", n)
    ops = Counter((operation.name, operation.stop - operation.start) for operation in graph.operations)
    # Projections, scores and their scaling, a softmax a row, weighted sums.
    assert ops == {
        ("linear", n): 4, ("matmul", n * n): 1, ("div", n * n): 1, ("softmax", n): 1, ("matmul", n): 1,
    }  # fmt: skip
    found = depgraph.parallelism(graph)
    assert (found.work, found.span) == (2 * n * n + 6 * n, 6)
    # The longest way is along the scores, the shortest along the values: projection, weighted sum, output.
    assert (depgraph.path_lengths(graph) == 3).all()


@pytest.mark.parametrize("n", [5, 40])
def test_table_of_vaswani_et_al(n):
    def attention(node):
        return node.op == "scaled_dot_product_attention"

    for graph, weight, steps, longest in [
        (traced("self_attention", n), attention, 1, 1),
        (traced("rnn", n, hidden=3), "ops", n, n),
        # To connect all takes n / k contiguous layers and logₖ n dilated ones: test_convolution.py.
        (traced("cnn", n, channels=1, layers=1), "contractions", 1, 1),
        # Here it takes n / r layers: above.
        (traced("global_attention", n, global_tokens=0, layers=1), attention, 1, 1),
    ]:
        assert depgraph.critical_path(graph, weight).length == steps
        assert depgraph.path_lengths(graph, weight=weight).max() == longest


def generation(n, layers):
    """Return the steps of generating n tokens: every layer reads the one below at all places up to its own."""

    def made(layer, t):
        """Layer 0 is the token itself: the first is given, the others are samples."""
        return ("sample", t - 1) if layer == 0 and t else (layer, t)

    dag = nx.DiGraph()
    for t in range(n):
        for layer in range(1, layers + 1):
            dag.add_edges_from((made(layer - 1, s), made(layer, t)) for s in range(t + 1))
        dag.add_edge(made(layers, t), ("sample", t))
    return depgraph.from_networkx(dag, sources=[(0, 0)])


@pytest.mark.parametrize(("n", "layers", "steps"), [(4, 2, 12), (6, 3, 24)])
def test_generation_as_a_dag(n, layers, steps):
    assert depgraph.critical_path(generation(n, layers)).length == steps == n * (layers + 1)


# A layer: norm, projection, attention, output, sum; norm, linear, gelu, linear, sum. The logits: norm, linear.
LAYER = [
    *("layer_norm", "linear", "scaled_dot_product_attention", "linear", "add"),
    *("layer_norm", "linear", "gelu", "linear", "add"),
]
LOGITS = ["layer_norm", "linear"]


@pytest.mark.parametrize(("layers", "prompt", "steps"), [(1, 1, 1), (1, 4, 1), (1, 4, 3), (2, 2, 1), (2, 1, 2)])
def test_generation_is_a_chain(layers, prompt, steps):
    step = ["embedding", "add", *LAYER * layers, *LOGITS, "argmax"]
    assert len(step) == 10 * layers + 5
    graph = traced("generation", prompt, steps, **NARROW, layers=layers)
    path = depgraph.critical_path(graph)
    # One step after the other, however long the prompt is; nothing is sampled from the last logits.
    assert [node.op for node in path.nodes] == (step * steps)[:-1]
    assert path.length == steps * len(step) - 1
    assert reached(graph).all()


@pytest.mark.parametrize(("n", "layers"), [(3, 1), (27, 1), (9, 2)])
def test_training_is_parallel(n, layers):
    graph = traced("training", n, **NARROW, layers=layers)
    path = depgraph.critical_path(graph)
    ops = [node.op for node in path.nodes]
    assert ops[: 10 * layers + 4] == ["embedding", "add", *LAYER * layers, *LOGITS]
    # Then cross-entropy: the logarithm of softmax, the target's entry, its negative, and 0 where it is to be ignored.
    assert ops[10 * layers + 4 :] == ["log_softmax", "gather", "neg", "where"]
    assert path.length == 10 * layers + 8
    # The loss at i reads up to the target i + 1.
    assert np.array_equal(reached(graph), distance(n)[:, :-1] >= -1)
