"""Random graphs for properties, and what they look like to networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from depgraph.dag.graph import DependencyGraph
from depgraph.dag.runs import Runs, union
from tests.metrics.synthetic import Builder


@st.composite
def readings(draw: st.DrawFn, size: int, rows: int) -> Runs:
    """Return what that many nodes read of that many others, numbered from 0: a pattern as models have them, or none."""
    row = np.arange(rows)
    pattern = draw(
        st.sampled_from(["same", "prefix", "suffix", "window", "tiles", "shift", "scattered", "any", "sets"])
    )
    low = draw(st.integers(0, size - 1))
    reach = draw(st.integers(1, size))
    if pattern == "same":
        starts, stops = 0 * row + low, 0 * row + min(low + reach, size)
    elif pattern == "prefix":
        starts, stops = 0 * row + low, np.minimum(low + 1 + row * draw(st.integers(0, 2)), size)
    elif pattern == "suffix":
        starts, stops = np.maximum(low - row, 0), 0 * row + low + 1
    elif pattern == "window":
        stops = np.clip(row + 1 + draw(st.integers(-2, 2)), 1, size)
        starts = np.maximum(stops - reach, 0)
    elif pattern == "tiles":
        starts = row * reach % size
        stops = np.minimum(starts + reach, size)
    elif pattern == "shift":
        starts = (row + low) % size
        stops = starts + 1
    elif pattern == "scattered":
        starts = np.array(draw(st.lists(st.integers(0, size - 1), min_size=rows, max_size=rows)), np.int64)
        stops = starts + 1
    elif pattern == "any":
        ends = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).map(sorted)
        starts, stops = np.array(draw(st.lists(ends, min_size=rows, max_size=rows)), np.int64).T
        stops = stops + 1
    else:
        members = st.frozensets(st.integers(0, size - 1), max_size=4)
        sets = draw(st.lists(members, min_size=rows, max_size=rows))
        pairs = np.array([(r, e) for r, found in enumerate(sets) for e in found], np.int64).reshape(-1, 2)
        return Runs.from_elements(pairs[:, 0], pairs[:, 1], rows)
    return Runs(np.arange(rows + 1), starts, stops)


@st.composite
def graphs(draw: st.DrawFn, blocks: int = 6, width: int = 6) -> DependencyGraph:
    """Return a graph of several blocks that read one to three earlier blocks each, and an output that gathers nodes."""
    sizes = st.integers(1, width)
    build = Builder(draw(sizes))

    def reading(rows: int) -> list[Runs]:
        parts = []
        for _ in range(draw(st.integers(1, 3))):
            block = draw(st.integers(0, len(build.bounds) - 2))
            low, high = build.bounds[block], build.bounds[block + 1]
            part = draw(readings(high - low, rows))
            parts.append(Runs(part.indptr, part.starts + low, part.stops + low))
        return parts

    for number in range(draw(st.integers(0, blocks))):
        build.add(f"op{number}", *reading(draw(sizes)), contraction=draw(st.booleans()))
    return build.graph(union(reading(draw(sizes))))


def as_networkx(graph: DependencyGraph) -> nx.DiGraph:
    """Return the graph with nodes by number, inputs and outputs being nodes ``("x", i)`` and ``("y", j)`` as well."""
    dag = nx.DiGraph()
    dag.add_nodes_from(range(graph.dag.nodes))
    dag.add_edges_from(zip(*(part.tolist() for part in graph.dag.edge_arrays()), strict=True))
    for i, node in enumerate(graph.inputs["x"].nodes.starts.tolist()):
        dag.add_edge(("x", i), node)
    for j in range(graph.outputs["output"].count):
        dag.add_node(("y", j))
        dag.add_edges_from((node, ("y", j)) for node in graph.outputs["output"].nodes.row(j).tolist())
    return dag
