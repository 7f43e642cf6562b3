from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from depgraph import DependencyGraph, from_networkx, render
from depgraph.rendering.text import plain, short

SVG = "{http://www.w3.org/2000/svg}"
TITLE = "{http://www.w3.org/1999/xlink}title"
anything = st.text(st.characters(codec=None), max_size=40)


@pytest.mark.parametrize(
    ("given_text", "shown"),
    [
        ("conv1d", "conv1d"),
        (" two\n lines\tand\u2028more ", "two lines and more"),
        ("bell\x07 half\ud800 non\uffff", "bell� half� non�"),
        (("a", 1), "('a', 1)"),
        ("", ""),
    ],
)
def test_plain(given_text: object, shown: str) -> None:
    assert plain(given_text) == shown


@pytest.mark.parametrize(("limit", "shown"), [(3, "ab…"), (5, "ab…"), (6, "ab cde"), (9, "ab cde")])
def test_short(limit: int, shown: str) -> None:
    assert short("ab cde", limit) == ("ab c…" if limit == 5 else shown)


@given(anything, st.integers(1, 10))
def test_short_keeps_to_the_limit(text: str, limit: int) -> None:
    assert len(short(text, limit)) <= limit


def drawn(graph: DependencyGraph, folder: Path, **options: Any) -> ET.Element:
    render(graph, folder / "drawn.svg", **options)
    return ET.parse(folder / "drawn.svg").getroot()


def texts(element: ET.Element) -> list[str]:
    """Return the lines of text; Graphviz writes no-break spaces for spaces in a row."""
    return [(line.text or "").replace("\xa0", " ") for line in element.iter(f"{SVG}text")]


@given(text=st.text(st.characters(codec=None), max_size=30))
@example("\\N \\l \\")
@example('"')
@example('\\"')
@example("C:\\new\\model.py:3")
@example("&lt; &#65; &amp;")
@example("<b>bold</b>")
@example("<")
@example("]]> --> <!-- ?>")
@example("% {x|y} $HOME 层 🙂")
@pytest.mark.parametrize("granularity", ["operation", "position"])
def test_a_drawing_shows_exactly_the_text(
    tmp_path_factory: pytest.TempPathFactory, granularity: str, text: str
) -> None:
    dag: nx.DiGraph[str] = nx.DiGraph()
    dag.add_node(text, op=text, source=text)
    folder = tmp_path_factory.getbasetemp()
    root = drawn(from_networkx(dag), folder, granularity=granularity, title=f"Title {text}", highlight=None)
    (node,) = [group for group in root.iter(f"{SVG}g") if (group.findtext(f"{SVG}title") or "") == "n0"]
    shown = plain(text)
    assert texts(node) == ([shown if granularity == "operation" else short(text, 16)] if shown else [])
    told = [(link.get(TITLE) or "").replace("\xa0", " ").split("\n") for link in node.iter(f"{SVG}a")]
    times = 2 if granularity == "operation" else 3
    assert told == ([[shown] * times] if shown else [])
    assert plain(f"Title {text}") in texts(root)
