"""Attention: work, critical path, path lengths, and what masks leave to be read."""

from collections import Counter
from math import ceil

import networkx as nx
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import depgraph
from tests.oracles.models import (
    CAUSAL,
    Attentions,
    CausalAttention,
    D,
    EagerAttention,
    Generation,
    SelfAttention,
    lower,
)


def spread(n):
    """Return |j - i| for all pairs."""
    return abs(np.arange(n)[None, :] - np.arange(n)[:, None])


def per_layer(graph):
    """Yield, for each output in turn, which input position (row) reaches which output position (column)."""
    for name in graph.outputs:
        yield depgraph.path_lengths(graph, target=name) >= 0


def layers_to_connect_all(graph):
    """Return the number of the first layer of which every position has read every input position."""
    return next(k for k, reached in enumerate(per_layer(graph), 1) if reached.all())


@pytest.mark.parametrize("n", [1, 5, 64])
def test_fused_attention_between_projections(n):
    graph = depgraph.trace(SelfAttention().eval(), (torch.randn(2, n, D),))
    found = depgraph.parallelism(graph)
    assert (found.work, found.span) == (5 * n, 3)
    assert depgraph.critical_path(graph).length == 3
    assert (depgraph.path_lengths(graph) == 3).all()
    assert found.level_widths == [3 * n, n, n]
    assert (found.width, found.width_is_exact) == (3 * n, True)


def encoder(layers, d=D):
    layer = nn.TransformerEncoderLayer(d, 2, 2 * d, batch_first=True)
    return nn.TransformerEncoder(layer, layers).eval()


@pytest.mark.parametrize(("n", "layers"), [(3, 1), (6, 3), (100, 2)])
def test_transformer_encoder(n, layers):
    graph = depgraph.trace(encoder(layers), (torch.randn(2, n, D),))
    found = depgraph.parallelism(graph)
    assert (found.work, found.span) == (10 * n * layers, 10 * layers)
    expected = np.where(spread(n) == 0, 4 * layers, 7 + 4 * (layers - 1))
    assert np.array_equal(depgraph.path_lengths(graph), expected)
    if (n, layers) == (100, 2):
        assert (found.work, found.span, expected.min(), expected.max()) == (2000, 20, 8, 11)


class CausalEncoder(nn.Module):
    def __init__(self, layers, form):
        super().__init__()
        self.encoder, self.form = encoder(layers), form

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        if self.form == "bool":
            mask = mask < 0
        return self.encoder(x, mask=mask, is_causal=True if self.form == "is_causal" else None)


@pytest.mark.parametrize("form", ["bool", "float", "is_causal"])
@pytest.mark.parametrize(("n", "layers"), [(5, 1), (9, 2)])
def test_causal_transformer_encoder(n, layers, form):
    graph = depgraph.trace(CausalEncoder(layers, form).eval(), (torch.randn(2, n, D),))
    found = depgraph.parallelism(graph)
    assert (found.work, found.span) == (10 * n * layers, 10 * layers)
    expected = np.where(spread(n) == 0, 4 * layers, 7 + 4 * (layers - 1))
    expected[np.tril_indices(n, -1)] = -1
    assert np.array_equal(depgraph.path_lengths(graph), expected)


@pytest.mark.parametrize("form", CAUSAL)
@pytest.mark.parametrize(("origin", "n"), [("forward", 2), ("buffer", 7), ("argument", 5)])
def test_a_causal_mask_is_one_however_it_is_given(form, n, origin):
    model = CausalAttention(form, n if origin == "buffer" else None).eval()
    args = (torch.randn(2, n, D), *([lower(n)] if origin == "argument" else []))
    graph = depgraph.trace(model, args)
    assert np.array_equal(depgraph.path_lengths(graph) >= 0, np.triu(np.ones((n, n), bool)))
    if origin == "argument" and form != "is_causal":
        assert graph.warnings == ["x: tracked along axis 1 (inferred)", HELD]


HELD = "mask: boolean and not tracked, so held at its example value"


@pytest.mark.parametrize("form", ["bool mask", "-inf mask", "is_causal"])
@pytest.mark.parametrize("n", [2, 8])
def test_fused_causal_attention_costs_what_full_attention_does(form, n):
    graph = depgraph.trace(CausalAttention(form).eval(), (torch.randn(2, n, D),))
    # The first position has one key left: nobody reads the query there.
    assert depgraph.critical_path(graph).length == 3
    assert depgraph.parallelism(graph).work == 5 * n
    lengths = depgraph.path_lengths(graph)
    assert set(lengths[lengths >= 0].tolist()) == {3}


def window(n, behind, ahead=0):
    offset = torch.arange(n)[:, None] - torch.arange(n)[None, :]
    return (offset <= behind) & (-offset <= ahead)


@pytest.mark.parametrize(("width", "layers"), [(8, 3), (4, 5)])
def test_causal_window(width, layers):
    reach = layers * (width - 1) + 1
    n = reach + 5
    graph = depgraph.trace(Attentions(window(n, width - 1), layers), (torch.randn(1, n, D),))
    for layer, reached in enumerate(per_layer(graph), 1):
        assert reached[:, -1].sum() == layer * (width - 1) + 1
    assert reached[:, -1].sum() == reach
    assert (width, layers, reach) in {(8, 3, 22), (4, 5, 16)}


def test_thirty_two_windows():
    # Mistral (Jiang et al. 2023): 32 layers of a window of 4,096 read 131,041 tokens; here the window is 1/512 of that.
    width, layers = 8, 32
    n = layers * (width - 1) + 10
    graph = depgraph.trace(Attentions(window(n, width - 1), layers), (torch.randn(1, n, D),))
    last = depgraph.path_lengths(graph, target=(f"output.{layers - 1}", n - 1))
    assert (last >= 0).sum() == layers * (width - 1) + 1 == 225
    assert 32 * (4096 - 1) + 1 == 131_041


@pytest.mark.parametrize(("n", "r", "layers"), [(65, 5, 32), (65, 17, 8), (10, 3, 9)])
def test_restricted_attention(n, r, layers):
    graph = depgraph.trace(Attentions(window(n, r // 2, r // 2), layers + 1), (torch.randn(1, n, D),))
    assert layers_to_connect_all(graph) == layers == ceil(2 * (n - 1) / (r - 1))


@pytest.mark.parametrize(("n", "without"), [(16, 8), (64, 32)])
def test_one_global_token(n, without):
    mask = window(n, 2, 2)
    graph = depgraph.trace(Attentions(mask, without), (torch.randn(1, n, D),))
    assert layers_to_connect_all(graph) == without
    mask[0], mask[:, 0] = True, True
    graph = depgraph.trace(Attentions(mask, 3), (torch.randn(1, n, D),))
    assert layers_to_connect_all(graph) == 2


@pytest.mark.parametrize(("n", "m"), [(4, 4), (6, 9)])
def test_every_score_is_a_node(n, m):
    args = torch.randn(1, n, D), torch.randn(1, m, D), torch.randn(1, m, D)
    graph = depgraph.trace(EagerAttention(), args, positions={"q": 1, "k": 1, "v": 1})
    ops = Counter((operation.name, operation.stop - operation.start) for operation in graph.operations)
    assert ops == {("matmul", n * m): 1, ("softmax", n): 1, ("matmul", n): 1}
    assert depgraph.parallelism(graph).span == 3


@pytest.mark.parametrize("n", [5, 40])
def test_table_of_vaswani_et_al(n):
    x = torch.randn(1, n, D)
    attention = depgraph.trace(Attentions(torch.ones(n, n, dtype=torch.bool), 1), (x,))
    recurrence = depgraph.trace(nn.RNN(D, D, batch_first=True), (x,))
    for graph, steps, longest in [(attention, 1, 1), (recurrence, n, n)]:
        assert depgraph.critical_path(graph).length == steps
        assert depgraph.path_lengths(graph).max() == longest


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


@pytest.mark.parametrize("n", [2, 5])
def test_generation_is_a_chain(n):
    graph = depgraph.trace(Generation(n).eval(), (torch.tensor([3]),))
    # Embedding; query, key or value; attention; output; head; argmax.
    assert depgraph.critical_path(graph).length == 6 * n
    found = depgraph.critical_path(graph).nodes
    assert [node.op for node in found[:6]] == [
        "embedding", "linear", "scaled_dot_product_attention", "linear", "linear", "argmax",
    ]  # fmt: skip


def test_training_is_parallel():
    lengths = [
        depgraph.critical_path(depgraph.trace(CausalAttention("is_causal"), (torch.randn(1, n, D),))).length
        for n in (3, 9, 27)
    ]
    assert lengths == [3, 3, 3]


def test_grouped_queries_read_like_others():
    class Grouped(nn.Module):
        def forward(self, q, k, v):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

    n = 6
    args = torch.randn(1, 4, n, D), torch.randn(1, 2, n, D), torch.randn(1, 2, n, D)
    graph = depgraph.trace(Grouped(), args, positions={"q": 2, "k": 2, "v": 2})
    for name in ("k", "v"):
        reached = depgraph.path_lengths(graph, name) >= 0
        expected = np.triu(np.ones((n, n), bool))
        if name == "k":
            expected[0, 0] = False  # one key left: its weight is 1
        assert np.array_equal(reached, expected)
