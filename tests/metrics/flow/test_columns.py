from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from depgraph.dag.graph import DependencyGraph
from depgraph.metrics.flow.columns import columns
from tests.metrics.antichains import executed_part, expected_width
from tests.metrics.strategies import graphs
from tests.metrics.synthetic import Builder, eager_attention, one_to_one, transformer, windows


@given(graphs())
def test_no_antichain_is_larger(graph: DependencyGraph) -> None:
    assert expected_width(executed_part(graph)) <= columns(graph.dag) <= graph.dag.nodes - graph.dag.inputs


@pytest.mark.parametrize("attention", ["causal", "full", "window", "centred"])
def test_a_transformer_has_two_columns(attention: str) -> None:
    assert columns(transformer(3, 9, attention, window=4).dag) == 2 * 9


def test_blocks_of_other_sizes_are_columns_of_their_own() -> None:
    # One of n² scores; and in those of n nodes, queries, keys, values and shares do not follow each other.
    assert columns(eager_attention(1, 4).dag) == 16 + 4 * 4


def test_a_column_goes_on_where_every_node_reads_its_own() -> None:
    def chains(starts: list[int], stops: list[int]) -> int:
        build = Builder(1)
        first = build.add("first", one_to_one(np.zeros(3, np.int64)))
        build.add("second", windows(first, np.array(starts), np.array(stops)))
        return columns(build.graph().dag)

    assert chains([0, 1, 2], [1, 2, 3]) == 3
    assert chains([0, 0, 0], [3, 3, 3]) == 3
    assert chains([0, 0, 1], [1, 1, 3]) == 6
    assert chains([0, 1, 1], [1, 2, 2]) == 6
