"""Whole drawings, compared to the letter. After a change that is meant: ``python -m tests.rendering.test_golden``."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import pytest

from depgraph import DependencyGraph, from_networkx, render
from tests.rendering import traced

GOLDEN = Path(__file__).parent / "golden"


def awkward() -> DependencyGraph:
    """Names that mean something to Graphviz, SVG or Python."""
    dag: nx.DiGraph[object] = nx.DiGraph()
    names = ['say "hi"', "back\\slash \\N", "two\nlines", "<b>bold</b>", "a & b &lt;", "层 🙂", "bell\x07", ("t", 1)]
    nx.add_path(dag, names)
    dag.add_node("node", module="graph", source="C:\\models\\new.py:3")
    dag.add_edge("node", ("t", 1))
    return from_networkx(dag, sources=['say "hi"'], targets=[("t", 1)])


DRAWINGS = {
    "convolution_position": (traced.convolution(), "position", "Two convolutions"),
    "lstm_position": (traced.stacked_lstm(4, 2), "position", None),
    "bidirectional_operation": (traced.stacked_lstm(4, 1, bidirectional=True), "operation", None),
    "attention_position": (traced.eager_attention(3), "position", None),
    "encoder_operation": (traced.encoder(100, 2), "operation", "Transformer encoder"),
    "transformer_operation": (traced.transformer(5, 4, 1), "operation", None),
    "awkward_operation": (awkward(), "operation", 'Title "\\N" <i>'),
    "awkward_position": (awkward(), "position", None),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_golden(name: str) -> None:
    graph, granularity, title = DRAWINGS[name]
    source = render(graph, granularity=granularity, title=title)
    assert source == (GOLDEN / f"{name}.dot").read_text(encoding="utf-8")


def test_every_file_is_compared() -> None:
    assert {file.name for file in GOLDEN.iterdir()} == {f"{name}.dot" for name in DRAWINGS}


if __name__ == "__main__":
    for drawing, (drawn, by, heading) in DRAWINGS.items():
        render(drawn, GOLDEN / f"{drawing}.dot", granularity=by, title=heading)
