"""Files for other tools: read back by networkx and by Graphviz."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import depgraph
from depgraph.dag.formats.attributed import gexf, graphml
from depgraph.dag.graph import DependencyGraph
from depgraph.rendering.output import _engine
from tests.gallery.files import traced

READERS: dict[str, Callable[[Path], nx.DiGraph]] = {".graphml": nx.read_graphml, ".gexf": nx.read_gexf}


def by_graphviz(file: Path) -> nx.DiGraph:
    """Return the graph that Graphviz finds in a file, as it says in its JSON."""
    data = json.loads(_engine().render(file.read_text(), format="dot_json"))
    dag = nx.DiGraph()
    kept = ("op", "position", "module", "source", "flops")
    names = {node["_gvid"]: node["name"] for node in data.get("objects", [])}
    for node in data.get("objects", []):
        dag.add_node(node["name"], **{key: node[key] for key in kept if key in node})
    dag.add_edges_from((names[edge["tail"]], names[edge["head"]]) for edge in data.get("edges", []))
    return dag


READERS |= dict.fromkeys((".dot", ".gv"), by_graphviz)


def as_text(graph: DependencyGraph) -> nx.DiGraph:
    """Return the graph with all attributes as these formats have them."""
    dag = nx.relabel_nodes(graph.to_networkx(), str)
    for attributes in dag.nodes.values():
        attributes["position"] = ",".join(map(str, attributes["position"]))
        attributes["flops"] = str(attributes["flops"])
    return dag


@pytest.mark.parametrize("suffix", READERS)
@pytest.mark.parametrize("granularity", ["position", "operation"])
def test_others_read_it(tmp_path: Path, suffix: str, granularity: str) -> None:
    graph = traced("cnn2d", 2)
    graph = graph if granularity == "position" else graph.collapse()
    file = tmp_path / f"graph{suffix}"
    depgraph.save(graph, file)
    found, expected = READERS[suffix](file), as_text(graph)
    assert set(found.nodes) == set(expected.nodes)
    assert set(found.edges) == set(expected.edges)
    for node, attributes in expected.nodes.items():
        given = {key: found.nodes[node].get(key) for key in attributes}
        assert {key: "" if value is None else str(value) for key, value in given.items()} == attributes
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


AWKWARD = ["a:b", "<b>bold</b>", "node", 'say "no"', "&amp;", "-3.5", "", "line\nbreak", "é", "x -> y", "a b:c:d"]


@pytest.mark.parametrize("suffix", READERS)
def test_awkward_names(tmp_path: Path, suffix: str) -> None:
    dag = nx.DiGraph(nx.utils.pairwise(AWKWARD))
    dag.nodes["node"].update(op="<i>", module='"', source="a & b")
    graph = depgraph.from_networkx(dag, AWKWARD[:1])
    depgraph.save(graph, tmp_path / f"graph{suffix}")
    found = READERS[suffix](tmp_path / f"graph{suffix}")
    assert set(found.edges) == set(dag.edges)
    assert found.nodes["node"]["op"] == "<i>"
    assert found.nodes["node"]["module"] == '"'
    assert found.nodes["node"]["source"] == "a & b"


@pytest.mark.parametrize(("write", "read"), [(graphml, nx.read_graphml), (gexf, nx.read_gexf)])
@pytest.mark.parametrize("other", [3, 0.5])
def test_numbers_stay_numbers(
    write: Callable[[nx.DiGraph], bytes], read: Callable[[io.BytesIO], nx.DiGraph], other: float
) -> None:
    dag = nx.DiGraph([(0, 1)])
    dag.nodes[0]["flops"], dag.nodes[1]["flops"] = 2**40, other
    found = dict(read(io.BytesIO(write(dag))).nodes(data="flops"))
    assert found == {"0": 2**40, "1": other}
    assert {type(value) for value in found.values()} == {type(other)}


def test_backslashes_in_dot_are_doubled(tmp_path: Path) -> None:
    depgraph.save(depgraph.from_networkx(nx.DiGraph([("C:\\", '\\"')])), tmp_path / "graph.dot")
    assert set(by_graphviz(tmp_path / "graph.dot").nodes) == {"C:\\\\", '\\\\"'}


@pytest.mark.parametrize("suffix", READERS)
def test_names_that_would_be_the_same(tmp_path: Path, suffix: str) -> None:
    graph = depgraph.from_networkx(nx.DiGraph([(1, "1")]))
    with pytest.raises(depgraph.GraphError, match=r"The nodes 1 and '1' would both be called '1' in .* Rename one"):
        depgraph.save(graph, tmp_path / f"graph{suffix}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", READERS)
@pytest.mark.parametrize("character", ["\0", "\x1b", "\ud800", "\ufffe"])
def test_characters_that_no_file_can_hold(tmp_path: Path, suffix: str, character: str) -> None:
    dag = nx.DiGraph([("x", "y")])
    dag.nodes["y"]["module"] = f"a{character}b"
    with pytest.raises(depgraph.GraphError) as caught:
        depgraph.save(depgraph.from_networkx(dag), tmp_path / f"graph{suffix}")
    assert str(caught.value).startswith(f"The node 'y' has the character {character!r} in its name or an attribute, ")
    assert not list(tmp_path.iterdir())


def test_json_holds_every_character(tmp_path: Path) -> None:
    dag = nx.DiGraph([("x\0", "\ud800")])
    depgraph.save(depgraph.from_networkx(dag), tmp_path / "graph.json")
    assert set(depgraph.load(tmp_path / "graph.json").to_networkx().edges) == set(dag.edges)


GRAPH = depgraph.from_networkx(nx.DiGraph([("x", "y")]))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("graph.svg", "ends in none of .json, .graphml, .gexf, .dot, .gv, the formats a graph is saved in."),
        ("graph", "ends in none of .json"),
        ("missing/graph.json", "No such file or directory."),
        ("folder.json", "Is a directory."),
        ("null\0.json", "embedded null byte."),
    ],
)
def test_files_that_cannot_be_written(tmp_path: Path, path: str, message: str) -> None:
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(depgraph.GraphError) as caught:
        depgraph.save(GRAPH, tmp_path / path)
    assert repr(str(tmp_path / path)) in str(caught.value)
    assert message in str(caught.value)
    assert [file.name for file in tmp_path.iterdir()] == ["folder.json"]


def test_what_was_there_stays_where_saving_fails(tmp_path: Path) -> None:
    file = tmp_path / "graph.json"
    depgraph.save(GRAPH, file)
    before = file.read_bytes()
    with pytest.raises(depgraph.GraphError):
        depgraph.save(depgraph.from_networkx(nx.DiGraph([("x", frozenset())])), file)
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("graph", "path", "message"),
    [
        (nx.DiGraph([(0, 1)]), "graph.json", "A graph is what depgraph.trace or depgraph.from_networkx returns"),
        (GRAPH, None, "path is the name of a file to write, such as 'graph.json'; got None."),
        (GRAPH, 3, "path is the name of a file to write, such as 'graph.json'; got 3."),
    ],
)
def test_wrong_arguments(graph: Any, path: Any, message: str) -> None:
    with pytest.raises(depgraph.GraphError) as caught:
        depgraph.save(graph, path)
    assert str(caught.value).startswith(message)
