"""Node-link JSON in: a graph that `depgraph.save` wrote, or anybody else's."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import networkx as nx
import numpy as np

from depgraph.dag.costs import from_attributes
from depgraph.dag.dag import Dag
from depgraph.dag.formats.node_link import VERSION
from depgraph.dag.graph import DependencyGraph, Operation, Terminal, Terminals
from depgraph.dag.interop import from_networkx
from depgraph.dag.runs import IntArray, Runs
from depgraph.errors import GraphError

Record = Mapping[str, Any]


def from_node_link(text: bytes) -> DependencyGraph:
    """Return the graph that node-link JSON holds.

    Raises
    ------
    GraphError
        Where it holds none, saying what is wrong.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GraphError(f"it is no JSON: {error or 'nested too deeply'}") from error
    if not isinstance(data, dict):
        raise GraphError(f"it is no node-link JSON: a {type(data).__name__}, not an object with nodes and edges")
    if data.get("directed") is not True:
        raise GraphError('it is no directed graph: there is no "directed": true')
    if "links" in data and "edges" in data:
        raise GraphError('it has both "edges" and "links"')
    given = _typed(data.get("graph", {}), dict, 'its "graph"')
    nodes = [_record(node, "id", f"node {i}") for i, node in enumerate(_list(data, "nodes"))]
    names = [_name(node["id"]) for node in nodes]
    numbers = {name: number for number, name in enumerate(names)}
    if len(numbers) < len(names):
        seen = next(name for number, name in enumerate(names) if numbers[name] != number)
        raise GraphError(f"two of its nodes are called {seen!r}")
    edges = np.empty((len(_list(data, "links" if "links" in data else "edges")), 2), np.int64)
    for i, edge in enumerate(_list(data, "links" if "links" in data else "edges")):
        for side, key in enumerate(("source", "target")):
            name = _name(_record(edge, key, f"edge {i}")[key])
            if name not in numbers:
                raise GraphError(f"edge {i} has the {key} {name!r}, which is no node of it")
            edges[i, side] = numbers[name]
    if "depgraph" in given:
        return _own(given, nodes, names, numbers, edges)
    return _foreign(given, nodes, names, edges)


def _foreign(given: Record, nodes: Sequence[Record], names: Sequence[Hashable], edges: IntArray) -> DependencyGraph:
    dag: nx.MultiDiGraph[Hashable] = nx.MultiDiGraph()
    dag.add_nodes_from(zip(names, nodes, strict=True))
    dag.add_edges_from((names[u], names[v]) for u, v in edges.tolist())
    ends = [[_name(name) for name in _list(given, key, "its graph attribute")] for key in ("sources", "targets")]
    return from_networkx(dag, *ends)


def _own(
    given: Record,
    nodes: Sequence[Record],
    names: Sequence[Hashable],
    numbers: Mapping[Hashable, int],
    edges: IntArray,
) -> DependencyGraph:
    """Return a graph that `depgraph.save` wrote; what others have changed in it must still fit together."""
    if given["depgraph"] != VERSION:
        raise GraphError(
            f'its graph attribute "depgraph" is {given["depgraph"]!r}, and this version reads {VERSION}: it was '
            "written by another version of depgraph"
        )
    sides = {key: [_terminal(record, key, numbers) for record in _list(given, key)] for key in ("inputs", "outputs")}
    count = sum(terminal.count for terminal in sides["inputs"])
    _check_inputs(sides["inputs"], count)
    blocks = np.cumsum([0, *(_whole(size, "a block") for size in _list(given, "blocks"))], dtype=np.int64)
    if blocks[-1] != len(names) or (np.diff(blocks) <= 0).any() or count not in blocks:
        raise _unfitting("blocks")
    block_of = np.repeat(np.arange(len(blocks) - 1), np.diff(blocks))
    wrong = np.flatnonzero((block_of[edges[:, 0]] >= block_of[edges[:, 1]]) | (edges[:, 1] < count))
    if len(wrong):
        u, v = edges[wrong[0]].tolist()
        what = "an input, which reads nothing" if v < count else "not in a later block"
        raise GraphError(f"it has an edge from {names[u]!r} to {names[v]!r}, which is {what}")
    reads = Runs.from_elements(edges[:, 1], edges[:, 0], len(names)).split_at(blocks[1:])
    if len(edges) != (reads.stops - reads.starts).sum():
        raise GraphError("one of its edges is there twice")
    labels = names if given.get("named") else None
    aliases = _typed(given.get("aliases", {}), dict, 'its graph attribute "aliases"')
    unused = _strings(given, "unused_parameters")
    return DependencyGraph(
        Dag(count, reads, blocks),
        _operations(given, nodes, count, labels),
        _terminals("input", sides["inputs"], aliases),
        _terminals("output", sides["outputs"], aliases),
        input_labels=None if labels is None else labels[:count],
        mode=_typed(given.get("mode", ""), str, "its mode"),
        warnings=_strings(given, "warnings"),
        unused_inputs=_strings(given, "unused_inputs"),
        find_unused_parameters=lambda: unused,
        known_inputs=_strings(given, "known_inputs"),
        user_rules=_strings(given, "user_rules"),
        find_costs=from_attributes(names, nodes, count),
    )


def _terminals(kind: str, terminals: Sequence[Terminal], aliases: Record) -> Terminals:
    known = {terminal.name for terminal in terminals}
    pairs = [_typed(pair, list, "an alias") for pair in _list(aliases, f"{kind}s")]
    if len(known) < len(terminals) or any(
        len(pair) != 2 or not isinstance(pair[1], str) or pair[1] not in known for pair in pairs
    ):
        raise _unfitting(f"names of its {kind}s")
    return Terminals(kind, terminals, {_name(key): name for key, name in pairs})


def _terminal(given: Any, key: str, numbers: Mapping[Hashable, int]) -> Terminal:
    what = f"one of its {key}"
    record = _record(given, "name", what)
    name = _typed(record["name"], str, f"the name of {what}")
    shape = tuple(_whole(size, f"a size of {name}") for size in _list(record, "shape"))
    axes = tuple(_whole(axis, f"an axis of {name}") for axis in _list(record, "positions"))
    rows = [_typed(row, list, f"a position of {name}") for row in _list(record, "nodes")]
    if any(axis not in range(len(shape)) for axis in axes) or len(rows) != math.prod(shape[axis] for axis in axes):
        raise _unfitting(f"positions of {name}")
    pairs = [(row, _name(node)) for row, members in enumerate(rows) for node in members]
    for _, node in pairs:
        if node not in numbers:
            raise GraphError(f"{name} has the node {node!r}, which is no node of it")
    members = np.array([(row, numbers[node]) for row, node in pairs], np.int64).reshape(-1, 2)
    return Terminal(name, shape, axes, Runs.from_elements(members[:, 0], members[:, 1], len(rows)))


def _check_inputs(inputs: Sequence[Terminal], count: int) -> None:
    """Raise where the inputs are not the first nodes, one a position, each input's in their order."""
    members = [terminal.nodes.elements()[1] for terminal in inputs]
    for terminal, nodes in zip(inputs, members, strict=True):
        if (terminal.nodes.sizes != 1).any() or (np.diff(nodes) != 1).any():
            raise _unfitting(f"nodes of the input {terminal.name}")
    if members and not np.array_equal(np.sort(np.concatenate(members)), np.arange(count)):
        raise _unfitting("nodes of its inputs")


def _operations(
    given: Record, nodes: Sequence[Record], inputs: int, labels: Sequence[Hashable] | None
) -> list[Operation]:
    records = [_record(record, "nodes", "one of its operations") for record in _list(given, "operations")]
    sizes = [_whole(record["nodes"], "the nodes of an operation") for record in records]
    ends = list(accumulate(sizes, initial=inputs))
    if min(sizes, default=0) < 0 or ends[-1] != len(nodes):
        raise _unfitting("operations")
    return [
        _operation(record, nodes[start:stop], start, None if labels is None else labels[start:stop])
        for record, start, stop in zip(records, ends[:-1], ends[1:], strict=True)
    ]


def _operation(record: Record, nodes: Sequence[Record], start: int, labels: Sequence[Hashable] | None) -> Operation:
    name, module, source = (
        _typed(record.get(key, ""), str, f"the {key} of an operation") for key in ("name", "module", "source")
    )
    contraction = _typed(record.get("contraction", False), bool, "the contraction of an operation")
    grid, coordinates = record.get("grid"), None
    if grid is None:
        places = [_list(node, "position") for node in nodes]
        axes = len(places[0]) if places else 0
        if any(len(place) != axes for place in places):
            raise _unfitting("positions of its nodes")
        numbers = [_whole(index, "an index of a position") for place in places for index in place]
        coordinates = np.array(numbers, np.int64).reshape(len(nodes), axes)
    else:
        grid = [_whole(size, "a size of a grid") for size in _typed(grid, list, "the grid of an operation")]
        if grid and math.prod(grid) != len(nodes):
            raise _unfitting("grids of its operations")
    stop = start + len(nodes)
    return Operation(name, module, source, contraction, start, stop, tuple(grid or ()), coordinates, labels)


def _unfitting(what: str) -> GraphError:
    return GraphError(
        f"the {what} do not fit the rest of it. Where it was changed on purpose, leave out its graph attribute "
        '"depgraph": it is then read as any other graph, with the graph attributes "sources" and "targets"'
    )


def _typed(value: Any, kind: type, what: str) -> Any:
    if not isinstance(value, kind):
        raise GraphError(f"{what} is {value!r}, not a {kind.__name__}")
    return value


def _whole(value: Any, what: str) -> int:
    if type(value) is not int or abs(value) >= 2**62:
        raise GraphError(f"{what} is {value!r}, not a whole number")
    return value


def _list(record: Record, key: str, what: str = "its") -> list[Any]:
    if key not in record and what == "its":
        raise GraphError(f'it has no "{key}"')
    value: list[Any] = _typed(record.get(key, []), list, f'{what} "{key}"')
    return value


def _strings(record: Record, key: str) -> list[str]:
    return [_typed(text, str, f'one of its "{key}"') for text in _list(record, key, "its graph attribute")]


def _record(value: Any, key: str, what: str) -> Record:
    record: Record = _typed(value, dict, what)
    if key not in record:
        raise GraphError(f'{what} has no "{key}"')
    return record


def _name(value: Any) -> Hashable:
    """Return the name of a node: JSON has lists in place of tuples."""
    if isinstance(value, list):
        return tuple(map(_name, value))
    if value is None or isinstance(value, dict):
        raise GraphError(f"a node is called {value!r}; the name of a node is a string, a number or a list of these")
    return value  # type: ignore[no-any-return]
