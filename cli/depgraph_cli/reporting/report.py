"""What `depgraph analyze` tells a person."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from depgraph_cli.reporting.grouping import stretches
from depgraph_cli.reporting.tables import amount, axes, console, print_heading, print_line, print_table, size, title

if TYPE_CHECKING:
    from rich.console import Console

    from depgraph import DependencyGraph

_UNITS = {"ops": "operations", "scalars": "numbers"}
"""Weights that are told by another name than their own."""
_LISTED = 12
"""Rows in a list before it is cut short."""


def report(summary: dict[str, Any], graph: DependencyGraph, kind: str, tracking: str) -> None:
    """Print the numbers of `summarise`, and what else the graph knows."""
    out = console()
    _head(out, summary, graph, kind, tracking)
    _totals(out, summary)
    _paths(out, summary)
    _bottleneck(out, summary)
    _critical_path(out, summary)
    _remarks(out, graph)


def _head(out: Console, summary: dict[str, Any], graph: DependencyGraph, kind: str, tracking: str) -> None:
    print_line(out, title(summary["model"], kind, graph.mode), "bold")
    tracked = [f"{axes(t['positions'])} of {name}" for name, t in summary["inputs"].items() if t["positions"]]
    if tracked:
        print_line(
            out,
            f"Tracked: {', '.join(tracked)}" + (" (inferred; --positions overrides)" if tracking == "inferred" else ""),
        )
    elif tracking == "fixed":
        print_line(out, "Tracked: no axis of any input.")
    else:
        print_line(out, "Tracked: no axis of any input; --positions names some, as in --positions x=1.")
    out.print()
    rows = [
        (side if i == 0 else "", name, size(t["shape"]), axes(t["positions"]), t["count"])
        for side in ("inputs", "outputs")
        for i, (name, t) in enumerate(summary[side].items())
    ]
    print_table(out, ("", "name", "shape", "tracked", "positions"), rows)


def _totals(out: Console, summary: dict[str, Any]) -> None:
    graph, parallelism = summary["graph"], summary["parallelism"]
    weight = summary["weight"]
    unit = "" if weight == "seconds" else f"{_UNITS.get(weight, weight)} "
    rows = [
        ("nodes", graph["nodes"], f"of {_count(graph['operations'], 'operation')}, and the input positions"),
        ("edges", graph["edges"], "each a node that another one reads"),
        ("work", amount(summary["work"], weight), f"{unit}in all"),
        ("critical path", amount(summary["critical_path"]["length"], weight), f"{unit}on the longest chain"),
        ("average parallelism", parallelism["average"], "work / critical path"),
        ("width", parallelism["width"], "nodes that could run at the same moment"),
    ]
    if not parallelism["width_is_exact"]:
        most = f"nodes could run at the same moment, and at most {parallelism['width_upper']:,}"
        rows[-1] = ("width, at least", parallelism["width"], most)
    print_heading(out, "Graph")
    print_table(out, ("", "", ""), rows)


def _paths(out: Console, summary: dict[str, Any]) -> None:
    if not summary["paths"]:
        return
    weight = summary["weight"]
    unit = _UNITS.get(weight, weight)
    print_heading(out, f"Path lengths: {unit} on the shortest path, over all pairs of positions")
    keys = ("min", "mean", "max", "pairs", "unreachable")
    rows = [
        [p["source"], p["target"], *(amount(p[key], weight) for key in keys[:3]), p["pairs"], p["unreachable"]]
        for p in summary["paths"]
    ]
    print_table(out, ("from", "to", *keys), rows)


def _bottleneck(out: Console, summary: dict[str, Any]) -> None:
    cut = summary["bottleneck"]
    if cut["source"] is None:
        return
    print_heading(out, "Bottleneck")
    if not cut["size"]:
        print_line(out, f"Nothing passes from {cut['source']} to {cut['target']}.")
        return
    print_line(out, f"All of {cut['source']} reaches {cut['target']} through {_count(cut['size'], 'vector')}:")
    kinds = Counter((node["module"], node["source"], node["op"]) for node in cut["nodes"])
    rows = [(count, module, _near(source, summary), op) for (module, source, op), count in kinds.items()]
    print_table(out, ("vectors", "module", "source", "operation"), rows[:_LISTED])
    _and_more(out, len(rows), _LISTED)


def _critical_path(out: Console, summary: dict[str, Any]) -> None:
    path = stretches(summary["critical_path"]["nodes"])
    if path:
        print_heading(out, "Where the critical path goes")
        rows = [(s.count, s.module, _near(s.source, summary), ", ".join(s.operations)) for s in path]
        print_table(out, ("nodes", "module", "source", "operation"), rows[: 4 * _LISTED])
        _and_more(out, len(rows), 4 * _LISTED)


def _remarks(out: Console, graph: DependencyGraph) -> None:
    for what, names in (("Parameters", graph.unused_parameters), ("Inputs", graph.unused_inputs)):
        if names:
            print_heading(out, f"{what} that reach no output")
            print_line(out, ", ".join(names[:_LISTED]))
            _and_more(out, len(names), _LISTED)
    # That axes were inferred is said at the top already.
    warnings = [warning for warning in graph.warnings if not warning.endswith("(inferred)")]
    if warnings:
        print_heading(out, "Warnings")
        print_table(out, ("", ""), [("-", warning) for warning in warnings])


def _near(source: str, summary: dict[str, Any]) -> str:
    """Return a source as seen from the folder of the model file, which is what fits into 80 columns."""
    return source.removeprefix(summary["model"].rpartition("/")[0] + "/")


def _and_more(out: Console, count: int, listed: int) -> None:
    if count > listed:
        print_line(out, f"… and {count - listed:,} more", "dim")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
