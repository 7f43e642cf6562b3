"""DOT source of a drawing whose coordinates are ours: boxes in rows, curves between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import graphviz
import numpy as np

from depgraph.rendering import style, text
from depgraph.rendering.layered import Layered, place, splines
from depgraph.rendering.style import Attributes

MARGIN, LABEL_SIZE = 16.0, 9.0
WIDEST = 0.62  # of the font size: an average letter, with room to spare


@dataclass(frozen=True)
class Box:
    """A node as drawn.

    Attributes
    ----------
    name : str
        Its identifier in the DOT source.
    label, tooltip : tuple of str
        Lines.
    width, height : float
        In points.
    attributes : dict
        Shape and colours.
    module : str
        Dotted path of the module it belongs to.
    """

    name: str
    label: tuple[str, ...]
    tooltip: tuple[str, ...]
    width: float = 0.0
    height: float = 0.0
    attributes: Attributes = field(default_factory=dict)
    module: str = ""

    def draw(self, on: graphviz.Digraph, **more: str) -> None:
        """Add the box to a drawing."""
        shown = {"tooltip": text.tooltip(*self.tooltip)} | self.attributes | more
        on.node(self.name, text.label(*self.label), **shown)


EdgeStyle = Callable[[int, int], Attributes]


def text_width(lines: Sequence[str], size: float) -> float:
    """Return about how wide the lines are, in points."""
    return max((len(line) for line in lines), default=0) * size * WIDEST


def layered_sheet(caption: str, boxes: Sequence[Box], given: Layered, edges: EdgeStyle, rows: Sequence[str]) -> str:
    """Return the DOT source of boxes placed in rows; ``nop2`` tells any Graphviz to take the places as they are.

    Parameters
    ----------
    caption : str
    boxes : sequence of Box
    given : Layered
        Where they belong, and the edges between them.
    edges : callable
        How the edge between two boxes looks.
    rows : sequence of str
        What to write to the left of each row.
    """
    x, y, pitch = place(given)
    radius = given.width / 2, np.array([box.height / 2 for box in boxes])
    curves = splines(given, x, y, radius, pitch * 2 / 3)
    dot = graphviz.Digraph("depgraph")
    dot.attr("graph", layout="nop2", label=caption, **style.GRAPH)
    dot.attr("node", fixedsize="true", **style.NODE)
    # Every edge leads down: thousands of arrowheads would only hide where.
    dot.attr("edge", **style.EDGE | {"dir": "none", "color": f"{style.LINE}99"})
    left = float((x - given.width / 2).min(initial=0.0)) - MARGIN
    wide = text_width(rows, LABEL_SIZE)
    where = dict(zip(given.row.tolist(), y.tolist(), strict=True))
    for number, label in enumerate(rows):
        if number not in where:
            continue
        dot.node(
            f"row{number}",
            text.label(label, end="\\r"),
            shape="plaintext",
            style="",
            fontsize=f"{LABEL_SIZE:g}",
            fontcolor=style.FAINT,
            tooltip=text.tooltip(text.plain(label)),
            width=_inches(wide),
            height="0.2",
            pos=_point(left - wide / 2, where[number]),
        )
    for number, box in enumerate(boxes):
        size = {"width": _inches(box.width), "height": _inches(box.height)}
        box.draw(dot, pos=_point(x[number], y[number]), **size)
    for u, v, curve in zip(given.read.tolist(), given.reader.tolist(), curves.tolist(), strict=True):
        route = " ".join(_point(*point) for point in curve)
        dot.edge(boxes[u].name, boxes[v].name, pos=route, **edges(u, v))
    return str(dot.source)


def _point(x: float, y: float) -> str:
    return f"{round(x, 1) + 0.0:g},{round(y, 1) + 0.0:g}"


def _inches(points: float) -> str:
    return f"{points / 72:.3f}"
