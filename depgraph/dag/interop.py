"""Dependency graphs from and to networkx, and the operation graph."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np

from depgraph.dag.costs import from_attributes
from depgraph.dag.dag import Dag
from depgraph.dag.foreign import check_networkx, cycle_in
from depgraph.dag.graph import DependencyGraph, Operation, Terminal, Terminals
from depgraph.dag.runs import IntArray, Runs
from depgraph.errors import GraphError


def from_networkx(
    dag: nx.DiGraph[Any], sources: Iterable[Hashable] = (), targets: Iterable[Hashable] = ()
) -> DependencyGraph:
    """Return any directed acyclic graph as a `DependencyGraph`, so that every metric works on it.

    Parameters
    ----------
    dag : networkx.DiGraph
        An edge u → v where v reads u. Nodes may have any names. Their attributes ``op``, ``module``, ``source`` and
        ``contraction`` are kept; without ``op``, a node's name serves. Attributes ``flops``, ``bytes``, ``seconds`` and
        ``scalars`` are the weights of these names; those of sources count for ``scalars`` only.
    sources : iterable of nodes, optional
        Inputs: left out of work and span. They may read nothing. None by default.
    targets : iterable of nodes, optional
        Outputs, in the order of the columns of `path_lengths`.

    Returns
    -------
    DependencyGraph
        With one input ``"input"`` (if there are sources) and one output ``"output"`` (if there are targets).

    Raises
    ------
    GraphError
        Where the graph is undirected, empty or has a cycle or parallel edges, a source or target is not in it, or a
        source reads something.

    Examples
    --------
    >>> import networkx as nx
    >>> import depgraph
    >>> ladder = nx.DiGraph([(0, 1), (1, 2), (0, 3), (3, 2)])
    >>> depgraph.critical_path(depgraph.from_networkx(ladder)).length
    3
    """
    check_networkx(dag)
    sources, targets = _members(dag, "source", sources), _members(dag, "target", targets)
    for name in sources:
        if dag.in_degree(name):
            raise GraphError(f"The source {name!r} reads {next(iter(dag.predecessors(name)))!r}; inputs read nothing.")
    given = set(sources)
    try:
        layers = [[v for v in layer if v not in given] for layer in nx.topological_generations(dag)]
    except nx.NetworkXUnfeasible:
        raise GraphError(cycle_in(dag)) from None
    layers = [layer for layer in layers if layer]
    order = sources + [v for layer in layers for v in layer]
    number = {name: i for i, name in enumerate(order)}
    edges = np.array([(number[v], number[u]) for u, v in dag.edges()], np.int64).reshape(-1, 2)
    boundaries = np.cumsum([0, *([len(sources)] if sources else []), *map(len, layers)]).astype(np.int64)
    reads = Runs.from_elements(edges[:, 0], edges[:, 1], len(order)).split_at(boundaries[1:])
    operations = [
        Operation(
            str(data.get("op", name)),
            str(data.get("module", "")),
            str(data.get("source", "")),
            bool(data.get("contraction", False)),
            len(sources) + i,
            len(sources) + i + 1,
            labels=(name,),
        )
        for i, name in enumerate(order[len(sources) :])
        for data in (dag.nodes[name],)
    ]

    def terminal(name: str, members: list[Hashable]) -> list[Terminal]:
        ids = np.array([number[m] for m in members], np.int64)
        return [Terminal(name, (len(members),), (0,), Runs.singletons(ids))] if members else []

    return DependencyGraph(
        Dag(len(sources), reads, boundaries),
        operations,
        Terminals("input", terminal("input", sources), {0: "input"} if sources else {}),
        Terminals("output", terminal("output", targets), {"output.0": "output", 0: "output"} if targets else {}),
        input_labels=sources,
        find_costs=from_attributes(order, [dag.nodes[name] for name in order], len(sources)),
    )


def _members(dag: nx.DiGraph[Any], kind: str, names: Iterable[Hashable]) -> list[Hashable]:
    """Return the sources or targets, each of them once."""
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise GraphError(f"{kind}s is a list of nodes of the graph; got {names!r}.")
    listed = list(names)
    for name in listed:
        if name not in dag:
            raise GraphError(f"The {kind} {name!r} is not a node of the graph.")
    return list(dict.fromkeys(listed))


def to_networkx(graph: DependencyGraph) -> nx.DiGraph[Hashable]:
    """Return the graph as a `networkx.DiGraph`; see `DependencyGraph.to_networkx`."""
    names: list[Any] = []
    result: nx.DiGraph[Hashable] = nx.DiGraph()
    flops: list[dict[str, Any]] = [{}] * graph.dag.nodes
    with suppress(GraphError):  # who wants them by name is told why there are none
        flops = [{"flops": number} for number in graph.costs("flops").tolist()]
    for number in range(graph.dag.nodes):
        node = graph.node(number)
        names.append(node.id)
        result.add_node(
            node.id, op=node.op, position=node.position, module=node.module, source=node.source, **flops[number]
        )
    read, reader = graph.dag.edge_arrays()
    result.add_edges_from((names[u], names[v]) for u, v in zip(read.tolist(), reader.tolist(), strict=True))
    return result


def collapse(graph: DependencyGraph) -> DependencyGraph:
    """Return the operation graph: one node an operation, one an input; see `DependencyGraph.collapse`.

    Operations that became no nodes are not drawn. Two operations whose nodes read each other's would make a cycle;
    that cannot happen, since all nodes of an operation are numbered before those of the next.
    """
    dag = graph.dag
    drawn = [operation for operation in graph.operations if operation.stop > operation.start]
    first = [int(t.nodes.starts[0]) for t in graph.inputs.values()]
    starts = np.array([*first, *(operation.start for operation in drawn)], np.int64)
    order = np.argsort(starts[: len(first)], kind="stable")
    starts[: len(first)] = starts[order]
    cuts = np.append(starts[1:], dag.nodes)  # a run may lie in several operations of one node each

    def of(nodes: IntArray) -> IntArray:
        return np.searchsorted(starts, nodes, side="right") - 1

    pieces = dag.reads.split_at(cuts)
    reader, read = of(pieces.rows), of(pieces.starts)
    pair = np.unique(np.stack([reader, read], 1)[reader != read], axis=0)
    count = len(starts)
    reads = Runs.from_sorted(pair[:, 0], pair[:, 1], count)
    boundaries = np.arange(count + 1, dtype=np.int64)
    names = list(graph.inputs)
    inputs = [
        replace(graph.inputs[names[k]], positions=(), nodes=Runs.singletons(np.array([i], np.int64)))
        for i, k in enumerate(order)
    ]
    outputs = []
    for terminal in graph.outputs.values():
        members = np.unique(of(terminal.nodes.split_at(cuts).starts))
        nodes = Runs.from_sorted(np.zeros(len(members), np.int64), members, 1)
        outputs.append(replace(terminal, positions=(), nodes=nodes))
    return DependencyGraph(
        Dag(len(first), reads.split_at(boundaries[1:]), boundaries),
        [
            replace(o, start=len(first) + i, stop=len(first) + i + 1, grid=(), coordinates=None, labels=None)
            for i, o in enumerate(drawn)
        ],
        Terminals("input", inputs, graph.inputs.aliases),
        Terminals("output", outputs, graph.outputs.aliases),
        list(graph.warnings),
        list(graph.unused_inputs),
        graph.mode,
        find_unused_parameters=lambda: graph.unused_parameters,
        known_inputs=list(graph.known_inputs),
        find_costs=lambda name: np.add.reduceat(graph.costs(name), starts) if len(starts) else np.zeros(0, np.int64),
    )
