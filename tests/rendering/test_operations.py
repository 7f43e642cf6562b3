from __future__ import annotations

import time

import networkx as nx
import pytest

from depgraph import DependencyGraph, from_networkx, render
from tests.metrics.synthetic import nothing
from tests.rendering import traced
from tests.rendering.dot import Dot, parse

GRAPHS = {
    "convolution": traced.convolution(),
    "eager attention": traced.eager_attention(),
    "encoder": traced.encoder(),
    "loop": traced.loop(5),
    "long loop": traced.loop(70),
    "lstm": traced.stacked_lstm(bidirectional=True),
    "transformer": traced.transformer(layers=2),
}
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)


def drawn(graph: DependencyGraph, **options: str | None) -> Dot:
    return parse(render(graph, granularity="operation", **options))


@every_graph
def test_every_edge_of_the_graph_and_no_other(graph: DependencyGraph) -> None:
    collapsed = graph.collapse("operation")
    read, reader = collapsed.dag.edge_arrays()
    expected = {(f"n{u}", f"n{v}") for u, v in zip(read.tolist(), reader.tolist(), strict=True)}
    for number, terminal in enumerate(collapsed.outputs.values()):
        expected |= {(f"n{u}", f"output{number}") for u in terminal.nodes.row(0).tolist()}
    assert set(drawn(graph).edges) == expected


@every_graph
def test_every_operation_with_its_nodes_module_and_source(graph: DependencyGraph) -> None:
    dot, inputs = drawn(graph), len(graph.inputs)
    for number, operation in enumerate(graph.operations):
        box = dot.nodes[f"n{inputs + number}"]
        count = operation.stop - operation.start
        assert box["label"].split("\\n")[0].removesuffix(" ↻") == operation.name + (f" ×{count}" if count > 1 else "")
        told = box["tooltip"].split("\\n")
        assert told[1 : 3 if operation.module else 2] == [s for s in (operation.module, operation.source) if s]
    for number, (name, terminal) in enumerate(graph.inputs.items()):
        assert dot.nodes[f"n{number}"]["label"] == f"input {name}\\n{terminal.count} positions"
    rows = [name for name in dot.nodes if name.startswith("row")]
    assert len(dot.nodes) == inputs + len(graph.operations) + len(graph.outputs) + len(rows)


@every_graph
def test_operations_on_the_critical_path_of_the_position_graph(graph: DependencyGraph) -> None:
    dot = drawn(graph)
    positions = graph.to_networkx()
    positions.remove_nodes_from(range(graph.dag.inputs))
    length = nx.dag_longest_path_length(positions) + 1
    shares = [
        int(line.removeprefix("critical path: ").split(" of ")[0])
        for name in dot.critical()
        for line in dot.nodes[name]["tooltip"].split("\\n")
        if line.startswith("critical path: ")
    ]
    assert sum(shares) == length
    assert f"critical path: {length} steps (orange)" in dot.graph["label"]
    orange = [edge for edge, attributes in dot.edges.items() if attributes.get("color") == "#c2410c"]
    path = nx.DiGraph(orange)
    path.add_nodes_from(dot.critical())
    assert set(path) == dot.critical()
    assert nx.is_weakly_connected(path)


def test_no_highlight() -> None:
    dot = drawn(traced.encoder(), highlight=None)
    assert dot.critical() == set()
    assert "critical" not in dot.graph["label"]


def test_frames_follow_the_modules() -> None:
    graph = traced.transformer(layers=2)
    dot = drawn(graph)
    frames = {operation.source: dot.frames[f"n{2 + n}"] for n, operation in enumerate(graph.operations[:24])}
    assert frames["model.py:10"] == ("transformer", "encoder", "layers.1", "self_attn")
    assert frames["model.py:14"] == ("transformer", "encoder", "layers.1", "self_attn")
    assert frames["model.py:22"] == ("transformer", "encoder", "layers.1")
    assert dot.frames["n0"] == ()
    assert dot.frames["output0"] == ()


def test_a_module_of_one_operation_has_no_frame_but_its_name() -> None:
    dot = drawn(traced.transformer(layers=1))
    assert dot.frames[dot.labelled("layer_norm ×5\\nnorm1")] == ("transformer", "encoder", "layers.0")
    assert dot.frames[dot.labelled("linear ×4\\ngenerator")] == ()
    assert dot.frames[dot.labelled("log_softmax ×4")] == ()


def test_frames_around_a_single_frame_are_one() -> None:
    dag: nx.DiGraph[str] = nx.DiGraph([("a", "b")])
    nx.set_node_attributes(dag, {"a": "net.body.0.block", "b": "net.body.0.block"}, "module")
    dot = drawn(from_networkx(dag))
    assert set(dot.frames.values()) == {("net.body.0.block",)}


def test_recurrent_operations_are_marked() -> None:
    dot = drawn(traced.stacked_lstm())
    assert dot.nodes["n1"]["label"] == "lstm ×6 ↻\\nlstm0"
    assert "↻" not in render(traced.encoder(), granularity="operation")


def test_names_of_a_plain_graph() -> None:
    dag: nx.DiGraph[str] = nx.DiGraph([("wash", "dry"), ("wash", "fold"), ("dry", "fold")])
    dot = drawn(from_networkx(dag, targets=["fold"]))
    assert dot.critical() == {dot.labelled("wash"), dot.labelled("dry"), dot.labelled("fold")}
    assert dot.nodes["output0"]["label"] == "output"


def test_a_long_loop_is_laid_out_by_rows() -> None:
    assert drawn(traced.loop(5)).graph.get("layout") is None
    dot = drawn(traced.loop(70))
    assert dot.graph["layout"] == "nop2"
    boxes = {name: box for name, box in dot.nodes.items() if not name.startswith("row")}
    height = {name: float(box["pos"].split(",")[1]) for name, box in boxes.items()}
    assert all(height[u] > height[v] for u, v in dot.edges)
    assert dot.nodes["n1"]["label"] == "linear\\ncell"


@pytest.mark.parametrize("steps", [25, 55, 400])
def test_loops_are_laid_out_within_seconds(steps: int, tmp_path) -> None:
    began = time.perf_counter()
    render(traced.loop(steps), tmp_path / "loop.svg", granularity="operation")
    assert time.perf_counter() - began < 30


def test_an_input_that_is_an_output() -> None:
    model = traced.Model(x=3)
    model.output("output", model.inputs["x"])
    assert set(drawn(model.graph()).edges) == {("n0", "output0")}


def test_empty_graph() -> None:
    assert drawn(nothing()).nodes == {}
