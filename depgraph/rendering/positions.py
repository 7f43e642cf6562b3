"""The position graph: columns are positions, rows are depths."""

from __future__ import annotations

import numpy as np

from depgraph.dag.graph import DependencyGraph, Terminal
from depgraph.dag.levels import depths
from depgraph.dag.runs import IntArray, expand, offsets
from depgraph.rendering import style
from depgraph.rendering.critical import Highlight
from depgraph.rendering.layered import FloatArray, Layered
from depgraph.rendering.sheet import Box, layered_sheet, text_width
from depgraph.rendering.style import Attributes
from depgraph.rendering.text import plain, short

DIAMETER = 18.0
NUMBER_SIZE, LONGEST_NUMBER = 7.0, 5
NAME_SIZE, LONGEST_NAME = 9.0, 16
LONGEST_ROW = 44


def position_dot(graph: DependencyGraph, title: str | None, highlight: Highlight) -> str:
    """Return the DOT source of the position graph, coordinates included."""
    dag, outputs = graph.dag, list(graph.outputs.values())
    firsts = dag.nodes + offsets(np.array([terminal.count for terminal in outputs], np.int64))
    read, reader = dag.edge_arrays()
    for terminal, first in zip(outputs, firsts.tolist(), strict=False):
        row, node = terminal.nodes.elements()
        read, reader = np.append(read, node), np.append(reader, first + row)
    depth = depths(dag)
    boxes = [_node(graph, number, highlight) for number in range(dag.nodes)]
    for terminal, first in zip(outputs, firsts.tolist(), strict=False):
        boxes += [_output(f"output{first - dag.nodes + p}", terminal, p) for p in range(terminal.count)]
    column, group = _columns(graph, firsts)
    given = Layered(
        row=np.append(depth, np.full(len(boxes) - dag.nodes, depth.max(initial=0) + 1)),
        column=column,
        group=group,
        width=np.array([box.width for box in boxes]),
        read=read,
        reader=reader,
    )

    def look(u: int, v: int) -> Attributes:
        if v >= dag.nodes:
            return style.GATHER
        return style.CRITICAL_EDGE if (u, v) in highlight.steps else {}

    inputs = f" reading {dag.inputs:,} input position{'s' if dag.inputs > 1 else ''}" if dag.inputs else ""
    size = f"{dag.nodes - dag.inputs:,} nodes{inputs}, each as early as it can run"
    caption = style.caption(title, size, style.legend(highlight.caption(), graph.operations))
    return layered_sheet(caption, boxes, given, look, _row_labels(graph, depth))


def _node(graph: DependencyGraph, number: int, highlight: Highlight) -> Box:
    node, operation = graph.node(number), graph.operation_of(number)
    if operation is None:
        named, look = graph.input_labels is not None, style.INPUT | {"shape": "square"}
    else:
        critical = number in highlight.members
        named = operation.labels is not None
        look = style.operation_style(operation.contraction, critical) | {"shape": "circle"}
    tooltip = (f"{node.op} {_place(node.position)}", node.module, node.source)
    if named:
        label = short(node.id, LONGEST_NAME)
        look |= {"shape": "box" if operation is None else "ellipse", "fontsize": f"{NAME_SIZE:g}"}
        width = text_width([label], NAME_SIZE) + 10
        return Box(f"n{number}", (label,), _lines(str(node.id), *tooltip), max(DIAMETER, width), DIAMETER, look)
    look |= {"fontsize": f"{NUMBER_SIZE:g}"}
    return Box(f"n{number}", _number(node.position), _lines(*tooltip), DIAMETER, DIAMETER, look)


def _output(name: str, terminal: Terminal, number: int) -> Box:
    where = tuple(int(i) for i in np.unravel_index(number, terminal.grid)) if terminal.grid else ()
    look = style.OUTPUT | {"shape": "octagon", "fontsize": f"{NUMBER_SIZE:g}"}
    return Box(name, _number(where), _lines(f"{terminal.name} {_place(where)}"), DIAMETER, DIAMETER, look)


def _number(position: tuple[int, ...]) -> tuple[str, ...]:
    """Return what fits into a small circle: the position, or nothing."""
    text = ",".join(map(str, position))
    return (text,) if len(text) <= LONGEST_NUMBER else ("",)


def _place(position: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, position))}]" if position else ""


def _lines(*lines: str) -> tuple[str, ...]:
    return tuple(line for line in map(plain, lines) if line)


def _columns(graph: DependencyGraph, firsts: IntArray) -> tuple[FloatArray, IntArray]:
    """Return the column of each node and each output position (NaN: none), and which operation or tensor it is of.

    Nodes in row-major order of their positions; an operation with k times fewer positions than the widest one (a
    strided convolution, the rows of an attention score) has one in the middle of every k columns. A node that is alone
    in its operation has no column. An axis along which only few of many indices have a node, as the halves of what both
    directions of a recurrence return, is no axis of positions: its nodes stand side by side.
    """
    terminals = [*graph.inputs.values(), *graph.outputs.values()]
    longest = max((size for terminal in terminals for size in terminal.grid), default=1)
    places: list[tuple[IntArray, IntArray]] = []
    for terminal in graph.inputs.values():
        members = expand(terminal.nodes.starts, terminal.nodes.stops)
        places.append((members, np.arange(len(members))))
    for operation in graph.operations:
        members = np.arange(operation.start, operation.stop)
        grid = operation.coordinates
        flat = np.arange(len(members))
        if grid is not None:
            along = [np.unique(axis, return_inverse=True)[1] if axis.max() >= longest else axis for axis in grid.T]
            flat = np.ravel_multi_index(tuple(along), [int(axis.max()) + 1 for axis in along])
        places.append((members, flat.astype(np.int64)))
    for first, stop in zip(firsts[:-1].tolist(), firsts[1:].tolist(), strict=True):
        places.append((np.arange(first, stop), np.arange(stop - first)))
    column, group = np.full(int(firsts[-1]), np.nan), np.zeros(int(firsts[-1]), np.int64)
    widest = max((int(flat.max()) + 1 for _, flat in places if len(flat)), default=1)
    for number, (members, flat) in enumerate(places):
        group[members] = number
        if len(members) > 1 and not (graph.input_labels is not None and members[0] < graph.dag.inputs):
            share = widest // (int(flat.max()) + 1)
            column[members] = flat * share + (share - 1) / 2
    return column, group


def _row_labels(graph: DependencyGraph, depth: IntArray) -> list[str]:
    """Return the depth of each row, and the operations in it."""
    names: list[dict[str, None]] = [{} for _ in range(int(depth.max(initial=0)) + 1)]
    nodes = np.arange(graph.dag.inputs, graph.dag.nodes)
    numbers = np.searchsorted(graph.operation_starts, nodes, side="right") - 1
    for row, number in np.unique(np.stack([depth[nodes], numbers], 1), axis=0).tolist():
        operation = graph.operations[number]
        if operation.labels is None:
            names[row][operation.name] = None
    if graph.dag.inputs:
        names[0] = dict.fromkeys(f"input {name}" if name != "input" else name for name in graph.inputs)
    labels = [f"{short(' · '.join(row), LONGEST_ROW)}   {number}".lstrip() for number, row in enumerate(names)]
    return labels + ([" · ".join(graph.outputs)] if len(graph.outputs) else [])
