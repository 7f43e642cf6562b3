from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from depgraph.dag.dag import Dag
from depgraph.dag.graph import DependencyGraph
from depgraph.metrics.flow.quotient import ends, induced, quotient, reader_counts, readers, single_reads
from tests.metrics.antichains import numbered
from tests.metrics.strategies import graphs


def edges(dag: Dag) -> set[tuple[int, int]]:
    return set(zip(*(part.tolist() for part in dag.edge_arrays()), strict=True))


def check_blocks(dag: Dag) -> None:
    assert dag.blocks[-1] == dag.nodes
    assert np.array_equal(dag.reads.split_at(dag.blocks[1:]).starts, dag.reads.starts)
    assert all(dag.block_of[u] < dag.block_of[v] for u, v in edges(dag))


@given(graphs())
def test_readers_and_reads(graph: DependencyGraph) -> None:
    dag, expected = graph.dag, numbered(graph)
    number, sole = readers(dag)
    single, read = single_reads(dag)
    for v in expected:
        after, before = list(expected.successors(v)), list(expected.predecessors(v))
        assert number[v] == reader_counts(dag)[v] == len(after)
        assert sole[v] == (after[0] if len(after) == 1 else v)
        assert single[v] == (len(before) == 1)
        assert read[v] == (before[0] if len(before) == 1 else v)


@given(graphs(), st.data())
def test_some_nodes_only(graph: DependencyGraph, data: st.DataObject) -> None:
    size = graph.dag.nodes
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool)
    found = induced(graph.dag, keep)
    order = np.flatnonzero(keep).tolist()
    expected = nx.relabel_nodes(numbered(graph).subgraph(order), {v: i for i, v in enumerate(order)})
    assert (found.nodes, edges(found)) == (len(order), set(expected.edges))
    assert found.inputs == keep[: graph.dag.inputs].sum()
    check_blocks(found)


@given(graphs(), st.data())
def test_nodes_drawn_together(graph: DependencyGraph, data: st.DataObject) -> None:
    # Each node may go to one that it reads, all of which lie before it.
    dag = graph.dag
    target = np.array([data.draw(st.sampled_from([v, *dag.reads.row(v).tolist()])) for v in range(dag.nodes)])
    moves = target != np.arange(dag.nodes)
    representative = ends(moves, target)
    assert not moves[representative].any()
    found = quotient(dag, representative)
    number = (np.cumsum(~moves) - 1)[representative]
    expected = {(number[u], number[v]) for u, v in edges(dag) if number[u] != number[v]}
    forwards = {(u, v) for u, v in expected if u < v}
    if forwards == expected:  # else the result is no graph in topological order, which is the caller's business
        assert edges(found) == expected
        assert found.nodes == (~moves).sum()
