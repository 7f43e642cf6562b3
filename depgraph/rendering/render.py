"""`depgraph.render`: what is drawn, and how."""

from __future__ import annotations

import os
from pathlib import Path

from depgraph.dag.graph import DependencyGraph, check_graph
from depgraph.errors import RenderError
from depgraph.rendering.critical import Highlight
from depgraph.rendering.operations import operation_dot
from depgraph.rendering.output import format_of, write
from depgraph.rendering.positions import position_dot

GRANULARITIES = ("auto", "position", "operation")
SMALL_NODES, SMALL_EDGES = 600, 3_000
"""Up to here, the position graph is what is drawn by default."""
MOST_NODES, MOST_EDGES = 2_000, 10_000
"""Up to here, it is drawn when asked for."""
MOST_OPERATIONS = 5_000


def render(
    graph: DependencyGraph,
    path: str | os.PathLike[str] | None = None,
    *,
    granularity: str = "auto",
    format: str | None = None,  # noqa: A002 - the name that users of such functions expect
    title: str | None = None,
    highlight: str | None = "critical path",
) -> str:
    r"""Draw a dependency graph, and write the drawing to a file.

    The *operation graph* has a box for each operation, with a frame around each module. The *position graph* has a
    column for each position and a row for each depth: the step at which a node runs when every node runs as early as it
    can. Pointing at a node shows its operation, position, module and source line.

    Parameters
    ----------
    graph : DependencyGraph
    path : path, optional
        Where to write: ``.dot`` or ``.gv`` for DOT source, ``.svg``, ``.png``. An SVG needs no Graphviz on the system,
        a PNG does.
    granularity : {"auto", "position", "operation"}
        By default the position graph while it is small, else the operation graph.
    format : {"dot", "svg", "png"}, optional
        In place of the suffix of the path.
    title : str, optional
        Shown above the drawing.
    highlight : {"critical path", None}
        What stands out in orange. In the operation graph: the operations on the critical path of the position graph.

    Returns
    -------
    str
        The DOT source.

    Raises
    ------
    RenderError
        Where the graph is too large to be drawn, a value is not one of those above, or the file cannot be written.

    Examples
    --------
    >>> import networkx as nx
    >>> from depgraph import from_networkx, render
    >>> ladder = nx.DiGraph([("read", "left"), ("read", "right"), ("left", "join"), ("right", "join")])
    >>> source = render(from_networkx(ladder))
    >>> print(*[line.strip() for line in source.splitlines() if "->" in line], sep="\n")
    n0 -> n1 [color="#c2410c" penwidth=1.8 tooltip="read → left"]
    n0 -> n2 [tooltip="read → right"]
    n1 -> n3 [color="#c2410c" penwidth=1.8 tooltip="left → join"]
    n2 -> n3 [tooltip="right → join"]
    """
    check_graph(graph)
    if not isinstance(granularity, str) or granularity not in GRANULARITIES:
        raise RenderError(f"granularity is one of {', '.join(GRANULARITIES)}; got {granularity!r}.")
    if highlight is not None and not (isinstance(highlight, str) and highlight == "critical path"):
        raise RenderError(f"highlight is 'critical path' or None; got {highlight!r}.")
    if title is not None and not isinstance(title, str):
        raise RenderError(f"title is a line of text or None; got {title!r}.")
    if path is not None and not isinstance(path, (str, os.PathLike)):
        raise RenderError(f"path is the name of a file to write, such as 'graph.svg'; got {path!r}.")
    target = None if path is None else Path(path)
    wanted = format_of(target, format)
    draw = position_dot if _by_position(graph, granularity) else operation_dot
    source = draw(graph, title, Highlight.of(graph, highlight is not None))
    if target is not None:
        write(source, target, wanted)
    return source


def _by_position(graph: DependencyGraph, granularity: str) -> bool:
    """Decide between the two graphs; refuse the one that would be too large."""
    nodes = graph.dag.nodes + sum(terminal.count for terminal in graph.outputs.values())
    edges = graph.dag.edges
    if granularity == "position" and (nodes > MOST_NODES or edges > MOST_EDGES):
        raise RenderError(
            f"The position graph has {nodes:,} nodes (inputs and outputs included) and {edges:,} edges; at most "
            f"{MOST_NODES:,} and {MOST_EDGES:,} can be drawn. Take a smaller n, or draw the operation graph "
            "(--granularity operation)."
        )
    if granularity == "position":
        return True
    several = any(operation.stop - operation.start > 1 for operation in graph.operations)
    if granularity == "auto" and several and nodes <= SMALL_NODES and edges <= SMALL_EDGES:
        return True
    operations = len(graph.operations)
    if operations > MOST_OPERATIONS:
        raise RenderError(
            f"The operation graph has {operations:,} operations; at most {MOST_OPERATIONS:,} can be drawn. "
            "Take a smaller n."
        )
    return False
