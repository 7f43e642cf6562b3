"""How many vectors, and how many numbers, carry the past at every point between two positions."""

import pytest
import torch

import depgraph
from tests.gallery.files import built, load, traced


def sizes(graph, **options):
    n = graph.inputs.default().count
    return [depgraph.state(graph, t, **options).size for t in range(n + 1)]


def no_more_than(most, n, inputs=1, outputs=1):
    """Return what carries the past where most is room for all of it, or what has been read or is to come is less."""
    return [min(inputs * t, most, outputs * (n - t)) for t in range(n + 1)]


@pytest.mark.parametrize("n", [7, 20])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("kind", ["rnn", "lstm", "gru"])
def test_one_vector_a_recurrent_layer(kind, layers, n):
    assert sizes(traced(kind, n, hidden=3, layers=layers)) == no_more_than(layers, n)


@pytest.mark.parametrize("n", [6, 11])
@pytest.mark.parametrize(
    ("name", "vectors"),
    [
        ("rnn_loop", 1),
        ("gru_loop", 1),
        ("lstm_loop", 2),  # h and c
        ("linear_attention_loop", 2),  # S and z
        ("ssm", 1),
        ("sequential_scan", 1),
    ],
)
def test_loops_carry_what_they_assign(name, vectors, n):
    assert sizes(traced(name, n)) == no_more_than(vectors, n)


@pytest.mark.parametrize("n", [6, 11])
@pytest.mark.parametrize(
    "name",
    [
        "causal_attention",
        "gpt",
        # The same function of its input as its loop, but in this form every position goes back to the inputs.
        "linear_attention",
        "scan",
        # Memory itself is attended to.
        "lstmn",
    ],
)
def test_what_keeps_all_it_has_read(name, n):
    assert sizes(traced(name, n)) == no_more_than(n, n)


@pytest.mark.parametrize("n", [12, 25])
@pytest.mark.parametrize(("layers", "window"), [(1, 4), (1, 7), (2, 4), (3, 3)])
def test_windows_keep_their_length_less_one_a_layer(layers, window, n):
    graph = traced("window_attention", n, layers=layers, window=window)
    assert sizes(graph) == no_more_than(layers * (window - 1), n)


@pytest.mark.parametrize("n", [11, 14])
def test_linear_attention_carries_a_matrix_and_a_vector_a_head(n):
    # Two heads of 4: S has 2 · 4 · 4 numbers, z has 2 · 4, and a position has 8, so that 5 of them fill the memory.
    model = built("linear_attention_loop", width=8, heads=2)
    graph = depgraph.trace(model, (torch.randn(1, n, 8),), positions=load("linear_attention_loop").positions)
    assert sizes(graph, weight="scalars") == no_more_than(32 + 8, n, 8, 8)
    assert depgraph.state(graph, n // 2, weight="scalars").size == 40
    assert depgraph.bottleneck(graph, weight="scalars").size == 8 * n


@pytest.mark.parametrize("n", [10, 17])
def test_a_state_space_layer_carries_a_state_a_feature(n):
    # Three features with states of 4 numbers: 4 positions fill the memory.
    model = built("ssm", features=3, state=4)
    graph = depgraph.trace(model, (torch.randn(1, n, 3),), positions=load("ssm").positions)
    assert sizes(graph, weight="scalars") == no_more_than(12, n, 3, 3)


@pytest.mark.parametrize("n", [6, 11])
def test_one_output_of_causal_attention(n):
    # An id is one number, every vector inside has 4.
    graph = traced("causal_attention", n)
    for j in range(n):
        assert depgraph.bottleneck(graph, target=("output", j)).size == 1
        cut = depgraph.bottleneck(graph, target=("output", j), weight=lambda node: 1 if node.op == "input" else 4)
        assert cut.size == min(j + 1, 4)
        assert depgraph.bottleneck(graph, target=("output", [0, j])).size == min(2, j + 1)


@pytest.mark.parametrize(("n", "m"), [(3, 5), (4, 2)])
def test_both_inputs_of_an_encoder_and_decoder(n, m):
    tokens = torch.randint(9, (1, n)), torch.randint(9, (1, m))
    graph = traced("transformer", n, *tokens, vocabulary=9, width=4, heads=2, feedforward=8, layers=1)
    assert depgraph.bottleneck(graph, "src").size == min(n, m)
    assert depgraph.bottleneck(graph, ["src", "tgt"]).size == m
    for t in range(m + 1):
        assert depgraph.state(graph, t, "tgt").size == min(t, m - t)
        assert depgraph.state(graph, t, [("src", 0), "tgt"]).size == min(t + (t > 0), m - t)
