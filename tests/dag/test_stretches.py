"""Stretches: chains are found where they are, and nothing in them reads what is computed together with it."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from depgraph.dag.dag import Dag
from depgraph.dag.interop import from_networkx
from depgraph.dag.levels import depths
from depgraph.dag.runs import Runs
from depgraph.dag.stretches import in_blocks
from tests.metrics.synthetic import recurrent, transformer


@st.composite
def loops(draw: st.DrawFn) -> Dag:
    """Return nodes in blocks of their own, nearly all of which read the one before, and some of which read others."""
    inputs, count = draw(st.integers(1, 3)), draw(st.integers(10, 60))
    pairs = {(v, v - 1) for v in range(inputs + 1, inputs + count) if draw(st.integers(0, 20))}
    for v in draw(st.sets(st.integers(inputs, inputs + count - 1), max_size=8)):
        pairs |= {(v, u) for u in draw(st.sets(st.integers(0, v - 1), max_size=3))}
    row, element = np.array(sorted(pairs) or np.zeros((0, 2)), np.int64).reshape(-1, 2).T
    blocks = np.append(0, np.arange(inputs, inputs + count + 1))
    return Dag(inputs, Runs.from_elements(row, element, inputs + count).split_at(blocks[1:]), blocks)


@given(loops())
@settings(max_examples=60)
def test_stretches_cover_the_graph(dag: Dag) -> None:
    found = dag.stretches
    assert (found.bounds[0], found.bounds[-1]) == (0, dag.nodes)
    assert set(found.bounds) <= set(dag.blocks)
    assert dag.inputs in found.bounds
    linked = np.zeros(dag.nodes, bool)
    for low, high, chained in zip(found.bounds, found.bounds[1:], found.chained, strict=False):
        assert chained == (high - low >= 8) or (not chained and low < dag.inputs)
        linked[low + 1 : high] = chained
        for node in range(low, high):
            assert (found.reads.row(node) < low).all()
            kept = set(found.reads.row(node).tolist())
            assert set(dag.reads.row(node).tolist()) == kept | ({node - 1} if linked[node] else set())


@given(loops(), st.data())
@settings(max_examples=60)
def test_depths_along_chains(dag: Dag, data: st.DataObject) -> None:
    weights = np.array(data.draw(st.lists(st.integers(0, 9), min_size=dag.nodes, max_size=dag.nodes)))
    expected = np.zeros(dag.nodes, np.int64)
    for node in range(dag.inputs, dag.nodes):
        expected[node] = weights[node] + max(expected[dag.reads.row(node)], default=0)
    assert depths(dag, weights).tolist() == expected.tolist()
    assert depths(dag, weights.astype(float)).tolist() == expected.tolist()


@pytest.mark.parametrize(("layers", "both_ways", "chains"), [(1, False, 1), (3, False, 3), (2, True, 4)])
def test_recurrent_layers_are_chains(layers: int, both_ways: bool, chains: int) -> None:
    found = recurrent(layers, 50, both_ways=both_ways).dag.stretches
    assert found.chained.sum() == chains
    sizes = np.diff(found.bounds)[
        found.chained
    ]  # one that ends in what the next one begins with may take its first step
    assert sizes.sum() == 50 * chains
    assert set(sizes) <= {49, 50, 51}


def test_where_nothing_is_chained_blocks_are_left_as_they_are() -> None:
    for dag in (transformer(2, 20, "causal", window=5).dag, from_networkx(nx.path_graph(5, nx.DiGraph)).dag):
        found = dag.stretches
        assert not found.chained.any()
        assert np.array_equal(found.bounds, in_blocks(dag).bounds)
    assert from_networkx(nx.path_graph(50, nx.DiGraph)).dag.stretches.chained.tolist() == [True]


def test_a_chain_that_reads_itself_further_back_is_none() -> None:
    steps = nx.DiGraph((t - k, t) for t in range(40) for k in (1, 3) if t >= k)
    assert not from_networkx(steps).dag.stretches.chained.any()
