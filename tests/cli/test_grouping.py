"""A long path told in a few rows."""

from depgraph_cli.reporting.grouping import Stretch, stretches


def node(op, module, source="net.py:1"):
    return {"op": op, "position": [0], "module": module, "source": source}


def test_consecutive_nodes_of_one_operation_are_one_row():
    path = [node("linear", "a"), *[node("lstm", "b", "net.py:2")] * 100, node("linear", "a")]
    assert stretches(path) == [
        Stretch(1, ("linear",), "a", ("net.py:1",)),
        Stretch(100, ("lstm",), "b", ("net.py:2",)),
        Stretch(1, ("linear",), "a", ("net.py:1",)),
    ]


def test_many_rows_become_one_a_module():
    step = [node("linear", "cell.x", "net.py:3"), node("add", "cell.x", "net.py:5"), node("tanh", "cell.x", "net.py:4")]
    (row,) = stretches(step * 50)
    assert row == Stretch(150, ("linear", "add", "tanh"), "cell.x", ("net.py:3", "net.py:5", "net.py:4"))
    assert row.source == "net.py:3–5"


def test_the_rounds_of_a_loop_are_one_row():
    step = [
        node("linear", "score.query", "net.py:3"),
        node("tanh", "", "net.py:3"),
        node("gru_cell", "cell", "net.py:5"),
    ]
    rows = stretches([node("embedding", "embed"), *step * 30, node("linear", "out", "net.py:9")])
    assert rows == [
        Stretch(1, ("embedding",), "embed", ("net.py:1",)),
        Stretch(90, ("linear", "tanh", "gru_cell"), "", ("net.py:3", "net.py:5")),
        Stretch(1, ("linear",), "out", ("net.py:9",)),
    ]
    within = [node(op, f"cell.{op}", "net.py:3") for op in ("linear", "tanh")]
    assert [(row.count, row.module) for row in stretches(within * 30)] == [(60, "cell")]


def test_parts_of_a_numbered_layer_belong_together():
    path = [node("embed", "embed"), *[node(op, f"layers.0.{op}") for op in "abcdefghijklmnopqrstuvw"]]
    assert [(row.count, row.module) for row in stretches(path)] == [(1, "embed"), (23, "layers.0")]


def test_many_alike_layers_become_one_row():
    layers = [node(op, f"decoder.layers.{i}.{op}") for i in range(96) for op in "ab"]
    path = [node("embed", "embed"), *layers, node("norm", "decoder.norm")]
    assert [(row.count, row.operations, row.module) for row in stretches(path)] == [
        (1, ("embed",), "embed"),
        (192, ("a", "b"), "decoder.layers.0–95"),
        (1, ("norm",), "decoder.norm"),
    ]


def test_layers_that_differ_stay_apart():
    layers = [node(op, f"layers.{i}.{op}") for i in range(24) for op in ("ab" if i < 12 else "cd")]
    assert [row.module for row in stretches(layers)] == ["layers.0–11", "layers.12–23"]


def test_numbers_in_the_middle_of_a_path():
    inner = [node("a", f"h.{i}.mlp") for i in range(3)]
    assert [row.module for row in stretches(inner)] == ["h.0.mlp", "h.1.mlp", "h.2.mlp"]


def test_unknown_sources():
    assert Stretch(1, ("a",), "", ()).source == ""
    assert Stretch(1, ("a",), "", ("nowhere",)).source == "nowhere"
    assert Stretch(2, ("a",), "", ("a.py:3", "b.py:1")).source == "a.py:3"


def test_an_empty_path():
    assert stretches([]) == []
