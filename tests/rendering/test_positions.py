from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
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
    "lstm": traced.stacked_lstm(),
    "bidirectional": traced.stacked_lstm(layers=1, bidirectional=True),
    "transformer": traced.transformer(layers=2),
}
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)


def drawn(graph: DependencyGraph, **options: str | None) -> Dot:
    return parse(render(graph, granularity="position", **options))


def places(dot: Dot) -> dict[str, tuple[float, float]]:
    return {
        name: tuple(map(float, box["pos"].split(","))) for name, box in dot.nodes.items() if not name.startswith("row")
    }


@every_graph
def test_every_edge_of_the_graph_and_no_other(graph: DependencyGraph) -> None:
    expected = {(f"n{u}", f"n{v}") for u, v in graph.to_networkx().edges}
    first = 0
    for terminal in graph.outputs.values():
        row, node = terminal.nodes.elements()
        expected |= {(f"n{u}", f"output{first + r}") for r, u in zip(row.tolist(), node.tolist(), strict=True)}
        first += terminal.count
    assert set(drawn(graph).edges) == expected


@every_graph
def test_rows_are_depths(graph: DependencyGraph) -> None:
    generations = list(nx.topological_generations(graph.to_networkx()))
    place = places(drawn(graph))
    heights = [
        {place[f"n{v}"][1] for v in generation if v >= graph.dag.inputs or not r}
        for r, generation in enumerate(generations)
    ]
    assert all(len(row) == 1 for row in heights)
    assert heights == sorted(heights, key=max, reverse=True)
    outputs = {y for name, (_, y) in place.items() if name.startswith("output")}
    assert len(outputs) == 1
    assert max(outputs) < min(min(row) for row in heights)


@every_graph
def test_all_edges_lead_down_and_no_two_nodes_touch(graph: DependencyGraph) -> None:
    dot = drawn(graph)
    place = places(dot)
    assert all(place[u][1] > place[v][1] for u, v in dot.edges)
    xy = np.array([*place.values()])
    apart = np.abs(xy[:, None] - xy[None, :]).max(-1) + 1e9 * np.eye(len(xy))
    assert apart.min() > 18


@every_graph
def test_the_critical_path_is_one(graph: DependencyGraph) -> None:
    dot, dag = drawn(graph), graph.to_networkx()
    nodes = sorted(int(name[1:]) for name in dot.critical())
    assert nx.is_path(dag, nodes)
    dag.remove_nodes_from(range(graph.dag.inputs))
    assert len(nodes) == nx.dag_longest_path_length(dag) + 1
    orange = {edge for edge, attributes in dot.edges.items() if attributes.get("color") == "#c2410c"}
    assert orange == {(f"n{u}", f"n{v}") for u, v in pairwise(nodes)}


def test_columns_are_positions() -> None:
    graph = traced.encoder(6, layers=1)
    place = places(drawn(graph))
    linear = next(operation for operation in graph.operations if operation.source == "model.py:14")
    pitch = place["n1"][0] - place["n0"][0]
    assert [place[f"n{p}"][0] for p in range(6)] == [pitch * p for p in range(6)]
    assert [place[f"n{v}"][0] for v in range(linear.start, linear.stop)] == [pitch * p for p in range(6)]
    assert [place[f"output{p}"][0] for p in range(6)] == [pitch * p for p in range(6)]


def test_strides_and_means_stand_in_the_middle() -> None:
    graph = traced.convolution(8)
    place = places(drawn(graph))
    x = [place[f"n{p}"][0] for p in range(8)]
    strided, mean = graph.operations[2], graph.operations[3]
    middles = [(x[2 * p] + x[2 * p + 1]) / 2 for p in range(4)]
    assert [place[f"n{v}"][0] for v in range(strided.start, strided.stop)] == middles
    assert place[f"n{mean.start}"][0] == sum(middles) / 4


def test_both_directions_of_a_recurrence_stand_at_their_time() -> None:
    place = places(drawn(traced.stacked_lstm(4, layers=1, bidirectional=True)))
    x = [place[f"n{p}"][0] for p in range(4)]
    assert [place[f"n{v}"][0] for v in range(4, 12)] == x + x[::-1]


def test_half_a_grid() -> None:
    graph = traced.eager_attention(3)
    dot = drawn(graph)
    scores = graph.operations[3]
    labels = [dot.nodes[f"n{v}"]["label"] for v in range(scores.start, scores.stop)]
    assert labels == ["0,0", "1,0", "1,1", "2,0", "2,1", "2,2"]
    place = places(dot)
    x = np.array([place[f"n{v}"][0] for v in range(scores.start, scores.stop)])
    np.testing.assert_allclose(np.diff(x) / (x[2] - x[1]), [3, 1, 2, 1, 1], atol=0.01)
    assert place["n1"][0] == pytest.approx(x[2])


def test_nodes_tell_what_they_are() -> None:
    dot = drawn(traced.convolution())
    assert dot.nodes["n3"] | {"pos": ""} == {
        "label": "3",
        "tooltip": "input [3]\\nx",
        "shape": "square",
        "fillcolor": "#dbeafe",
        "color": "#1d4ed8",
        "fontsize": "7",
        "width": "0.250",
        "height": "0.250",
        "pos": "",
    }
    assert dot.nodes["n9"]["tooltip"] == "conv1d [1]\\nnet.0\\nmodel.py:5"
    assert dot.nodes["output0"]["tooltip"] == "output"
    labels = [box["label"] for name, box in dot.nodes.items() if name.startswith("row")]
    assert labels == [
        f"{row}\\r"
        for row in ("input x   0", "conv1d   1", "relu   2", "conv1d   3", "mean   4", "linear   5", "output")
    ]


def test_long_positions_are_told_and_not_written() -> None:
    model = traced.Model(x=4)
    where = np.array([[1000, 100 + p] for p in range(4)])
    model.add("matmul", "", traced.each(model.inputs["x"]), coordinates=where)
    dot = drawn(model.graph())
    assert dot.nodes["n5"]["label"] == ""
    assert dot.nodes["n5"]["tooltip"] == "matmul [1000, 101]\\nmodel.py:1"


def test_a_plain_graph_shows_its_names() -> None:
    grid = nx.DiGraph([((i, j), (i + 1, j)) for i in range(2) for j in range(3)])
    grid.add_edges_from(((i, j), (i, j + 1)) for i in range(3) for j in range(2))
    dot = drawn(from_networkx(grid, sources=[(0, 0)], targets=[(2, 2)]))
    assert {box["label"] for name, box in dot.nodes.items() if name.startswith("n")} == {str(v) for v in grid}
    assert dot.nodes[dot.labelled("(0, 0)")]["shape"] == "box"
    assert len(dot.critical()) == 4


def test_coordinates_are_kept_in_the_svg(tmp_path: Path) -> None:
    import xml.etree.ElementTree as ET

    graph = traced.encoder(5, layers=1)
    place = places(parse(render(graph, tmp_path / "drawn.svg", granularity="position")))
    svg = "{http://www.w3.org/2000/svg}"
    seen = {}
    for group in ET.parse(tmp_path / "drawn.svg").getroot().iter(f"{svg}g"):
        circle = group.find(f".//{svg}ellipse")
        if group.get("class") == "node" and circle is not None:
            seen[group.findtext(f"{svg}title")] = float(circle.get("cx", "")), -float(circle.get("cy", ""))
    assert len(seen) == graph.dag.nodes - graph.dag.inputs
    shift = np.array(seen["n5"]) - place["n5"]
    for name, xy in seen.items():
        np.testing.assert_allclose(np.array(xy) - shift, place[str(name)], atol=0.11)


def test_empty_graph() -> None:
    assert drawn(nothing()).nodes == {}
