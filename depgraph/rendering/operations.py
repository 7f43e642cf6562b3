"""The operation graph: one box an operation, grouped by module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import graphviz
import numpy as np

from depgraph.dag.graph import DependencyGraph, Terminal
from depgraph.dag.levels import depths
from depgraph.dag.runs import BoolArray, IntArray
from depgraph.rendering import style
from depgraph.rendering.critical import Highlight
from depgraph.rendering.layered import Layered
from depgraph.rendering.modules import Frame
from depgraph.rendering.sheet import Box, EdgeStyle, layered_sheet, text_width
from depgraph.rendering.style import Attributes
from depgraph.rendering.text import plain, short, tooltip

LONGEST_NAME, FONT_SIZE, LINE = 36, 11.0, 14.0
MANY_RANKS, MOST_RANKS = 2_000, 10_000
"""Ranks that edges may cross, all together, for dot to lay a graph out within seconds; from how many on in a hurry."""

SHEET: Attributes = {"rankdir": "TB", "nodesep": "0.2", "ranksep": "0.28"}
HURRY: Attributes = {"nslimit": "2", "nslimit1": "2", "mclimit": "0.3"}
"""Limits on dot's iterations: edges cross more often, and a large graph takes a tenth of the time."""


def operation_dot(graph: DependencyGraph, title: str | None, highlight: Highlight) -> str:
    """Return the DOT source of the operation graph.

    Graphviz's ``dot`` lays it out, with a frame around each module. Its time grows with the ranks that edges cross: on
    a recurrence written as a loop of a hundred steps it would take minutes. Then the coordinates are ours.
    """
    drawn = graph.collapse("operation")
    dag = drawn.dag
    read, reader = dag.edge_arrays()
    for number, terminal in enumerate(drawn.outputs.values()):
        members = terminal.nodes.row(0)
        read, reader = np.append(read, members), np.append(reader, np.full(len(members), dag.nodes + number))
    boxes = [
        *(_terminal(f"n{n}", "input", graph.inputs[name]) for n, name in enumerate(drawn.inputs)),
        *_operations(graph, highlight, dag.inputs),
        *(_terminal(f"output{n}", "output", graph.outputs[name]) for n, name in enumerate(drawn.outputs)),
    ]
    critical = {(u + dag.inputs, v + dag.inputs) for u, v in highlight.operation_steps}

    def look(u: int, v: int) -> Attributes:
        if v >= dag.nodes:
            return style.GATHER
        return style.CRITICAL_EDGE if (u, v) in critical else {}

    caption = style.caption(title, _size(graph), style.legend(highlight.caption(), graph.operations))
    depth = depths(dag)
    depth = np.append(depth, np.full(len(boxes) - dag.nodes, depth.max(initial=0) + 1))
    ranks = int((depth[reader] - depth[read]).sum())
    if ranks <= MOST_RANKS:
        effort = HURRY if ranks > MANY_RANKS else {}
        return _framed_sheet(caption, boxes, read, reader, look, effort)
    boxes = [replace(box, label=(*box.label, short(box.module, LONGEST_NAME))) if box.module else box for box in boxes]
    boxes = [replace(b, width=text_width(b.label, FONT_SIZE) + 12, height=LINE * len(b.label) + 6) for b in boxes]
    given = Layered(
        row=depth,
        column=np.full(len(boxes), np.nan),
        group=np.arange(len(boxes)),
        width=np.array([box.width for box in boxes]),
        read=read,
        reader=reader,
    )
    return layered_sheet(caption, boxes, given, look, [str(row) for row in range(int(depth.max(initial=0)) + 1)])


def _framed_sheet(
    caption: str, boxes: Sequence[Box], read: IntArray, reader: IntArray, look: EdgeStyle, effort: Attributes
) -> str:
    dot = graphviz.Digraph("depgraph")
    dot.attr("graph", label=caption, **style.GRAPH, **SHEET, **effort)
    dot.attr("node", margin="0.14,0.05", height="0.3", **style.NODE)
    dot.attr("edge", **style.EDGE)
    frame = Frame()
    for box in boxes:
        frame.add(box)
    frame.draw(dot)
    for u, v in zip(read.tolist(), reader.tolist(), strict=True):
        ends = tooltip(f"{boxes[u].label[0]} → {boxes[v].label[0]}")
        dot.edge(boxes[u].name, boxes[v].name, tooltip=ends, **look(u, v))
    return str(dot.source)


def _size(graph: DependencyGraph) -> str:
    operations, nodes = len(graph.operations), graph.dag.nodes - graph.dag.inputs
    return f"{operations:,} operations" + (f", ×n: n nodes, {nodes:,} in all" if nodes > operations else "")


def _times(count: int) -> str:
    return f" ×{count:,}" if count != 1 else ""


def _terminal(name: str, kind: str, terminal: Terminal) -> Box:
    look = style.INPUT | {"shape": "ellipse"} if kind == "input" else style.OUTPUT | {"shape": "octagon"}
    title = terminal.name if terminal.name.startswith(kind) else f"{kind} {terminal.name}"
    label = [short(title, LONGEST_NAME)] + ([f"{terminal.count:,} positions"] if terminal.count != 1 else [])
    axes = f", positions along {terminal.positions}" if terminal.positions else ""
    return Box(name, tuple(label), (plain(title), f"shape {terminal.shape}{axes}"), attributes=look)


def _operations(graph: DependencyGraph, highlight: Highlight, first: int) -> Iterator[Box]:
    recurrent = _reads_itself(graph)
    for number, operation in enumerate(graph.operations):
        count, share = operation.stop - operation.start, int(highlight.shares[number])
        label = short(operation.name, LONGEST_NAME) + _times(count) + (" ↻" if recurrent[number] else "")
        told = (
            plain(operation.name) + _times(count),
            plain(operation.module),
            plain(operation.source),
            f"critical path: {share:,} of {len(highlight.nodes):,} steps" if share else "",
            "its nodes read each other" if recurrent[number] else "",
        )
        look = style.operation_style(operation.contraction, share > 0) | {"shape": "box"}
        look["style"] = "rounded,filled"
        lines = tuple(line for line in told if line)
        yield Box(f"n{first + number}", (label,), lines, attributes=look, module=plain(operation.module))


def _reads_itself(graph: DependencyGraph) -> BoolArray:
    """Return of each operation whether some of its nodes read others of its nodes, as recurrent layers do."""
    reads = graph.dag.reads
    reader = np.searchsorted(graph.operation_starts, reads.rows, side="right")
    read = np.searchsorted(graph.operation_starts, reads.starts, side="right")
    result = np.zeros(len(graph.operations) + 1, bool)
    result[reader[reader == read]] = True
    return result[1:]
