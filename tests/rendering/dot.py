"""Reads back the DOT source that depgraph writes: one statement a line."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

STATEMENT = re.compile(r"^\s*(\w+)(?: -> (\w+))? \[(.*)\]$")
ATTRIBUTE = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|[^\s"]+)')
DEFAULTS = {"graph", "node", "edge"}


@dataclass
class Dot:
    """Nodes and edges with their attributes, defaults left out; and the labels of the frames around each node."""

    nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    edges: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    frames: dict[str, tuple[str, ...]] = field(default_factory=dict)
    graph: dict[str, str] = field(default_factory=dict)

    def labelled(self, label: str) -> str:
        """Return the one node with that label."""
        (name,) = [name for name, attributes in self.nodes.items() if attributes["label"] == label]
        return name

    def critical(self) -> set[str]:
        """Return the nodes outlined in orange."""
        return {name for name, attributes in self.nodes.items() if attributes.get("color") == "#c2410c"}


def unquote(value: str) -> str:
    return value[1:-1].replace('\\"', '"') if value.startswith('"') else value


def parse(source: str) -> Dot:
    """Return what the source says; every line of it must be understood."""
    dot, frames = Dot(), [""]
    for line in source.splitlines():
        if line.startswith("digraph ") or re.match(r"\s*subgraph cluster\d+ {$", line):
            frames.append("")
            continue
        if line.strip() == "}":
            frames.pop()
            continue
        match = STATEMENT.match(line)
        assert match, line
        name, reader, listed = match.groups()
        attributes = {key: unquote(value) for key, value in ATTRIBUTE.findall(listed)}
        assert "".join(ATTRIBUTE.sub("", listed).split()) == "", line
        if name == "graph" and len(frames) > 2:
            frames[-1] = attributes["label"].removesuffix("\\l")
        elif name == "graph":
            dot.graph = attributes
        elif reader:
            assert (name, reader) not in dot.edges, line
            dot.edges[name, reader] = attributes
        elif name not in DEFAULTS:
            assert name not in dot.nodes, line
            dot.nodes[name] = attributes
            dot.frames[name] = tuple(frames[2:])
    assert frames == [""], "unbalanced braces"
    return dot
