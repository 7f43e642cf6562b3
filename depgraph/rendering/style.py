"""What drawings look like: one colour a kind, legible in print and to colour-blind readers."""

from __future__ import annotations

from collections.abc import Iterable

from depgraph.dag.graph import Operation
from depgraph.rendering.text import label, plain

FONT = "Helvetica"  # a lone name: of a list, Graphviz does not know how wide its letters are
TEXT, FAINT, LINE = "#0f172a", "#475569", "#64748b"
CRITICAL = "#c2410c"

Attributes = dict[str, str]

GRAPH: Attributes = {
    "fontname": FONT,
    "fontsize": "13",
    "fontcolor": TEXT,
    "labelloc": "t",
    "labeljust": "l",
    "outputorder": "edgesfirst",
    "pad": "0.2",
    "bgcolor": "white",
}
NODE: Attributes = {
    "fontname": FONT,
    "fontsize": "11",
    "fontcolor": TEXT,
    "color": LINE,
    "fillcolor": "white",
    "style": "filled",
    "penwidth": "0.8",
}
EDGE: Attributes = {"color": LINE, "penwidth": "0.8", "arrowsize": "0.6"}
CLUSTER: Attributes = {
    "fontname": FONT,
    "fontsize": "10",
    "fontcolor": FAINT,
    "color": "#cbd5e1",
    "style": "rounded",
    "labeljust": "l",
    "labelloc": "t",
    "margin": "8",
}

INPUT: Attributes = {"fillcolor": "#dbeafe", "color": "#1d4ed8"}
OUTPUT: Attributes = {"fillcolor": "#dcfce7", "color": "#15803d"}
CONTRACTION: Attributes = {"fillcolor": "#e2e8f0"}
CRITICAL_NODE: Attributes = {"fillcolor": "#ffedd5", "color": CRITICAL, "penwidth": "1.8"}
CRITICAL_CONTRACTION: Attributes = CRITICAL_NODE | {"fillcolor": "#fdba74"}
CRITICAL_EDGE: Attributes = {"color": CRITICAL, "penwidth": "1.8"}
GATHER: Attributes = {"style": "dashed", "color": "#15803d"}


def operation_style(contraction: bool, critical: bool) -> Attributes:
    """Return how a node or an operation is filled and outlined."""
    if critical:
        return CRITICAL_CONTRACTION if contraction else CRITICAL_NODE
    return CONTRACTION if contraction else {}


def legend(critical: str, operations: Iterable[Operation]) -> str:
    """Return what colours mean, of those that the drawing has."""
    shaded = "shaded: multiplies and sums" if any(operation.contraction for operation in operations) else ""
    return " · ".join(part for part in (critical, shaded) if part)


def caption(title: str | None, *lines: str) -> str:
    """Return the graph's label: its title, and below it what the drawing shows."""
    return label(*(plain(line) for line in (title, *lines) if line), end="\\l")
