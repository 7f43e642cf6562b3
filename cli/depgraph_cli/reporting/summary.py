"""The numbers of one model as the object that ``analyze --json`` prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from depgraph_cli.progress import Step

if TYPE_CHECKING:
    from depgraph import DependencyGraph, Node, Terminal

STEPS = 4
"""Steps of work that `summarise` announces."""


def summarise(name: str, graph: DependencyGraph, weight: str, exact_width: str, step: Step) -> dict[str, Any]:
    """Return every metric of a graph, in the shape that is written as JSON."""
    import depgraph

    step("Critical path")
    longest = depgraph.critical_path(graph, weight)
    step("Parallelism")
    parallelism = depgraph.parallelism(graph, weight, exact_width)
    step("Path lengths")
    paths = [_paths(graph, s.name, t.name, weight) for s in tracked(graph) for t in graph.outputs.values()]
    step("Bottleneck")
    return {
        "model": name,
        "inputs": _terminals(graph.inputs),
        "outputs": _terminals(graph.outputs),
        "graph": {"operations": len(graph.operations), "nodes": graph.dag.nodes, "edges": graph.dag.edges},
        "work": plain(parallelism.work),
        "critical_path": {"length": plain(longest.length), "nodes": nodes(longest.nodes)},
        "paths": paths,
        "parallelism": {
            "average": float(parallelism.average),
            "width": int(parallelism.width),
            "width_is_exact": bool(parallelism.width_is_exact),
            "width_upper": int(parallelism.width_upper),
            "level_widths": [int(width) for width in parallelism.level_widths],
        },
        "bottleneck": _bottleneck(graph),
        "weight": weight,
        "warnings": list(graph.warnings),
    }


def tracked(graph: DependencyGraph) -> list[Terminal]:
    """Return the inputs with tracked axes; all inputs, where none is tracked."""
    inputs = list(graph.inputs.values())
    return [terminal for terminal in inputs if terminal.positions] or inputs


def nodes(path: Iterable[Node]) -> list[dict[str, Any]]:
    """Return nodes as they are written in JSON."""
    return [
        {"op": node.op, "position": [int(p) for p in node.position], "module": node.module, "source": node.source}
        for node in path
    ]


def plain(number: Any) -> int | float:
    """Return a number as Python's own, an integer where it is one and can be told apart from its neighbours."""
    value = number.item() if hasattr(number, "item") else number
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def _terminals(terminals: Mapping[str, Terminal]) -> dict[str, Any]:
    return {
        name: {"shape": list(terminal.shape), "positions": list(terminal.positions), "count": terminal.count}
        for name, terminal in terminals.items()
    }


def _paths(graph: DependencyGraph, source: str, target: str, weight: str) -> dict[str, Any]:
    import depgraph

    found = depgraph.path_statistics(graph, source, target, weight)
    return {
        "source": source,
        "target": target,
        "max": None if found.maximum is None else plain(found.maximum),
        "mean": found.mean,
        "min": None if found.minimum is None else plain(found.minimum),
        "pairs": found.pairs,
        "unreachable": found.unreachable,
    }


def _bottleneck(graph: DependencyGraph) -> dict[str, Any]:
    import depgraph

    if not (graph.inputs and graph.outputs):
        return {"source": None, "target": None, "size": 0, "nodes": []}
    source, target = graph.inputs.default().name, graph.outputs.default().name
    cut = depgraph.bottleneck(graph, source, target)
    return {"source": source, "target": target, "size": int(cut.size), "nodes": nodes(cut.nodes)}
