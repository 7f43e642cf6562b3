"""Node-link JSON out: a graph with all that `depgraph.load` needs to make it again."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from depgraph.dag.graph import DependencyGraph, Operation, Terminal
from depgraph.errors import GraphError

VERSION = 1
"""Of what the graph attributes of such a file hold."""


def node_link(graph: DependencyGraph) -> bytes:
    """Return a graph as node-link JSON: what `networkx.node_link_data` makes of it, and graph attributes.

    Raises
    ------
    GraphError
        Where the name of a node cannot be written as JSON.
    """
    dag = graph.to_networkx()
    names = [_plain(node) for node in dag]
    read, reader = graph.dag.edge_arrays()
    costs = _costs(graph)
    data = {
        "directed": True,
        "multigraph": False,
        "graph": {
            "depgraph": VERSION,
            "inputs": [_terminal(terminal, names) for terminal in graph.inputs.values()],
            "outputs": [_terminal(terminal, names) for terminal in graph.outputs.values()],
            "aliases": {"inputs": _aliases(graph.inputs.aliases), "outputs": _aliases(graph.outputs.aliases)},
            "operations": [_operation(operation) for operation in graph.operations],
            "blocks": np.diff(graph.dag.blocks).tolist(),
            "named": graph.input_labels is not None or any(o.labels is not None for o in graph.operations),
            "mode": graph.mode,
            "warnings": list(graph.warnings),
            "unused_inputs": list(graph.unused_inputs),
            "unused_parameters": list(graph.unused_parameters),
            "known_inputs": list(graph.known_inputs),
            "user_rules": list(graph.user_rules),
        },
        "nodes": [
            {**data, **{cost: found[number] for cost, found in costs.items()}, "id": name}
            for number, (name, data) in enumerate(zip(names, dag.nodes.values(), strict=True))
        ],
        "edges": [
            {"source": names[u], "target": names[v]} for u, v in zip(read.tolist(), reader.tolist(), strict=True)
        ],
    }
    return json.dumps(data, allow_nan=False).encode()


def _costs(graph: DependencyGraph) -> dict[str, list[int | float]]:
    """Return what each node costs besides flops, as far as that is known without measuring."""
    costs: dict[str, list[int | float]] = {}
    for name in ("bytes", "scalars"):
        with suppress(GraphError):  # who wants them by name is told why there are none
            costs[name] = graph.costs(name).tolist()
    return costs


def _terminal(terminal: Terminal, names: Sequence[Any]) -> dict[str, Any]:
    return {
        "name": terminal.name,
        "shape": list(terminal.shape),
        "positions": list(terminal.positions),
        "nodes": [[names[node] for node in terminal.nodes.row(position)] for position in range(terminal.count)],
    }


def _aliases(aliases: Mapping[Hashable, str]) -> list[list[Any]]:
    return [[key, name] for key, name in aliases.items()]


def _operation(operation: Operation) -> dict[str, Any]:
    return {
        "name": operation.name,
        "module": operation.module,
        "source": operation.source,
        "contraction": operation.contraction,
        "nodes": operation.stop - operation.start,
        "grid": list(operation.grid) if operation.coordinates is None else None,
    }


def _plain(name: Any) -> Any:
    """Return the name of a node as JSON can hold it: a tuple becomes a list, as `networkx.node_link_graph` expects."""
    if isinstance(name, tuple):
        return [_plain(part) for part in name]
    if isinstance(name, np.generic):
        name = name.item()
    if type(name) in (str, int, bool) or (type(name) is float and np.isfinite(name)):
        return name
    raise GraphError(
        f"The node {name!r} is a {type(name).__name__}, and the name of a node in JSON is a string, a finite number or "
        "a tuple of these. Rename it first (networkx.relabel_nodes)."
    )
