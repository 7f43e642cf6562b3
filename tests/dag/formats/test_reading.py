"""Node-link files of others, and files that hold no graph."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import depgraph
from depgraph.dag.formats.node_link import node_link
from tests.metrics.synthetic import transformer

LADDER = nx.DiGraph([("x", "a"), ("x", "b"), ("a", "y"), ("b", "y")])


@pytest.mark.parametrize("key", ["edges", "links"])
@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiDiGraph])
def test_of_others(tmp_path: Path, key: str, kind: type[nx.DiGraph]) -> None:
    dag = kind(LADDER)
    dag.graph |= {"sources": ["x"], "targets": ["y"]}
    dag.nodes["a"].update(op="matmul", module="layer", source="net.py:3", contraction=True, colour=None)
    file = tmp_path / "ladder.JSON"
    file.write_text(json.dumps(nx.node_link_data(dag, edges=key)))
    graph = depgraph.load(str(file))
    assert set(graph.to_networkx().edges) == set(LADDER.edges)
    assert depgraph.path_lengths(graph).tolist() == [[2]]
    assert depgraph.path_lengths(graph, weight="contractions").tolist() == [[0]]
    assert graph.to_networkx().nodes["a"]["module"] == "layer"
    assert (graph.mode, graph.warnings) == ("", [])


def test_without_sources_and_targets(tmp_path: Path) -> None:
    (tmp_path / "graph.json").write_text(json.dumps(nx.node_link_data(LADDER, edges="links")))
    graph = depgraph.load(tmp_path / "graph.json")
    assert (len(graph.inputs), len(graph.outputs)) == (0, 0)
    assert depgraph.parallelism(graph).level_widths == [1, 2, 1]


def foreign(**changes: Any) -> str:
    """Return node-link JSON with something else in some places; None leaves out."""
    data = {"directed": True, "nodes": [{"id": 1}, {"id": 2}], "links": [{"source": 1, "target": 2}]} | changes
    return json.dumps({key: value for key, value in data.items() if value is not None})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is no JSON: Expecting value: line 1 column 1 (char 0)."),
        ("graph { a -- b }", "it is no JSON: Expecting value: line 1 column 1 (char 0)."),
        ("[" * 100_000, "it is no JSON: "),
        ("[1, 2]", "it is no node-link JSON: a list, not an object with nodes and edges."),
        (foreign(directed=None), 'it is no directed graph: there is no "directed": true.'),
        (foreign(directed=False), 'it is no directed graph: there is no "directed": true.'),
        (foreign(directed="true"), 'it is no directed graph: there is no "directed": true.'),
        (foreign(nodes=None), 'it has no "nodes".'),
        (foreign(links=None), 'it has no "edges".'),
        (foreign(edges=[]), 'it has both "edges" and "links".'),
        (foreign(nodes=[]), "edge 0 has the source 1, which is no node of it."),
        (foreign(nodes=[], links=[]), "The graph has no nodes: there is nothing to measure."),
        (foreign(nodes={"1": {}}), "its \"nodes\" is {'1': {}}, not a list."),
        (foreign(nodes=[1, 2]), "node 0 is 1, not a dict."),
        (foreign(nodes=[{"name": 1}]), 'node 0 has no "id".'),
        (foreign(nodes=[{"id": 1}, {"id": 2}, {"id": 1.0}]), "two of its nodes are called 1."),
        (
            foreign(nodes=[{"id": {}}]),
            "a node is called {}; the name of a node is a string, a number or a list of these.",
        ),
        (foreign(links=[{"source": 1}]), 'edge 0 has no "target".'),
        (foreign(links=[{"source": 1, "target": 3}]), "edge 0 has the target 3, which is no node of it."),
        (foreign(links=[{"source": 1, "target": None}]), "a node is called None; "),
        (foreign(links=[{"source": 1, "target": 2}] * 2), "The graph has 2 edges from 1 to 2; "),
        (foreign(links=[{"source": 1, "target": 1}]), "The node 1 reads itself."),
        (foreign(links=[{"source": 1, "target": 2}, {"source": 2, "target": 1}]), "The graph has a cycle: 1 → 2 → 1."),
        (foreign(graph=[]), 'its "graph" is [], not a dict.'),
        (foreign(graph={"sources": 1}), 'its graph attribute "sources" is 1, not a list.'),
        (foreign(graph={"sources": [3]}), "The source 3 is not a node of the graph."),
        (foreign(graph={"targets": [{}]}), "a node is called {}; "),
        (foreign(graph={"depgraph": 2}), 'its graph attribute "depgraph" is 2, and this version reads 1: '),
    ],
)
def test_files_without_a_graph(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "graph.json"
    file.write_text(text)
    with pytest.raises(depgraph.GraphError) as caught:
        depgraph.load(file)
    assert str(caught.value).startswith(f"{str(file)!r} holds no graph to be read: {message}")
    assert str(caught.value).endswith(".")


def test_binary_files(tmp_path: Path) -> None:
    (tmp_path / "graph.json").write_bytes(b"\xff\xfe\x80")
    with pytest.raises(depgraph.GraphError, match="holds no graph to be read: it is no JSON: "):
        depgraph.load(tmp_path / "graph.json")


Change = Callable[[dict[str, Any]], object]
MISFITS: list[tuple[Change, str]] = [
    (
        lambda d: d["nodes"].append({"id": 99}),
        "the blocks do not fit the rest of it. Where it was changed on purpose, ",
    ),
    (lambda d: d["nodes"].pop(), "edge "),
    (lambda d: d["graph"]["operations"].pop(), "the operations do not fit"),
    (lambda d: d["graph"]["operations"][0].pop("nodes"), 'one of its operations has no "nodes"'),
    (lambda d: d["graph"]["operations"][0].update(nodes=-1), "the operations do not fit"),
    (lambda d: d["graph"]["operations"][0].update(nodes=2.0), "the nodes of an operation is 2.0, not a whole number"),
    (lambda d: d["graph"]["operations"][0].update(grid=[2, 2]), "the grids of its operations do not fit"),
    (lambda d: d["graph"]["operations"][0].update(grid="3"), "the grid of an operation is '3', not a list"),
    (lambda d: d["graph"]["operations"][0].update(name=5), "the name of an operation is 5, not a str"),
    (lambda d: d["graph"]["operations"][0].update(contraction=1), "the contraction of an operation is 1, not a bool"),
    (lambda d: d["graph"].pop("blocks"), 'it has no "blocks"'),
    (lambda d: d["graph"]["blocks"].insert(1, 0), "the blocks do not fit"),
    (lambda d: d["graph"].update(blocks=[len(d["nodes"])]), "the blocks do not fit"),
    (lambda d: d["graph"]["blocks"].__setitem__(0, True), "a block is True, not a whole number"),
    (lambda d: d["graph"].pop("inputs"), 'it has no "inputs"'),
    (lambda d: d["graph"]["inputs"][0]["nodes"].reverse(), "the nodes of the input x do not fit"),
    (lambda d: d["graph"]["inputs"][0]["nodes"][0].clear(), "the nodes of the input x do not fit"),
    (lambda d: d["graph"]["inputs"][0].update(shape=[1, 4]), "the positions of x do not fit"),
    (lambda d: d["graph"]["inputs"][0].update(positions=[7]), "the positions of x do not fit"),
    (lambda d: d["graph"]["inputs"][0].update(shape=[1, "3"]), "a size of x is '3', not a whole number"),
    (lambda d: d["graph"]["inputs"][0].update(name=None), "the name of one of its inputs is None, not a str"),
    (lambda d: d["graph"].update(inputs=[], aliases={"inputs": [], "outputs": []}), "the operations do not fit"),
    (lambda d: d["graph"]["outputs"].append(d["graph"]["outputs"][0]), "the names of its outputs do not fit"),
    (lambda d: d["graph"]["outputs"][0]["nodes"][0].append(-5), "output has the node -5, which is no node of it"),
    (lambda d: d["graph"]["aliases"].update(inputs=[[0, "y"]]), "the names of its inputs do not fit"),
    (lambda d: d["graph"]["aliases"].update(inputs=[[0, []]]), "the names of its inputs do not fit"),
    (lambda d: d["graph"].update(warnings=[1]), 'one of its "warnings" is 1, not a str'),
    (lambda d: d["graph"].update(mode=None), "its mode is None, not a str"),
    (lambda d: d["edges"].append(d["edges"][0]), "one of its edges is there twice"),
    (lambda d: d["edges"].append({"source": 3, "target": 0}), "it has an edge from 3 to 0, which is an input, which"),
    (
        lambda d: d["edges"].append({"source": 3, "target": 4}),
        "it has an edge from 3 to 4, which is not in a later block",
    ),
]


@pytest.mark.parametrize(("change", "message"), MISFITS)
def test_own_files_changed_by_others(tmp_path: Path, change: Change, message: str) -> None:
    data = json.loads(node_link(transformer(1, 3)))
    change(data)
    file = tmp_path / "graph.json"
    file.write_text(json.dumps(data))
    with pytest.raises(depgraph.GraphError) as caught:
        depgraph.load(file)
    assert str(caught.value).startswith(f"{str(file)!r} holds no graph to be read: {message}")


def test_own_files_read_as_others(tmp_path: Path) -> None:
    graph = transformer(1, 3)
    data = json.loads(node_link(graph))
    data["graph"] = {"sources": [0, 1, 2], "targets": list(range(graph.dag.nodes - 3, graph.dag.nodes))}
    (tmp_path / "graph.json").write_text(json.dumps(data))
    again = depgraph.load(tmp_path / "graph.json")
    assert depgraph.path_lengths(again).tolist() == depgraph.path_lengths(graph).tolist()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("missing.json", "cannot be read: No such file or directory."),
        ("folder.json", "cannot be read: Is a directory."),
        ("graph.graphml", "is neither .json (node-link, as depgraph.save writes it) nor .onnx."),
        ("graph", "is neither .json"),
        ("null\0.json", "cannot be read: embedded null byte."),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, path: str, message: str) -> None:
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(depgraph.LoadError) as caught:
        depgraph.load(tmp_path / path)
    assert str(caught.value).startswith(f"{str(tmp_path / path)!r} {message}")


@pytest.mark.parametrize("path", [None, 5, b"graph.json", ["graph.json"]])
def test_what_is_no_path(path: Any) -> None:
    with pytest.raises(depgraph.LoadError) as caught:
        depgraph.load(path)
    assert str(caught.value) == f"path is the name of a file to read, such as 'graph.json'; got {path!r}."
