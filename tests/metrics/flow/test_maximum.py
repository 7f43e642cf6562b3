from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array

from depgraph.metrics.flow.maximum import largest_flow

SIZE = 8


@pytest.mark.parametrize("most", [200, 2**30 - 1])
@given(st.sampled_from([3, 1000, 2**31, 2**50]), st.data())
def test_flows_of_any_size(most: int, largest: int, data: st.DataObject) -> None:
    pairs = st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)).filter(lambda pair: pair[0] != pair[1])
    found = data.draw(st.dictionaries(pairs, st.integers(0, largest), max_size=25))
    edges = {(u, v): size for (u, v), size in found.items() if (v, u) not in found or u < v}
    network = nx.DiGraph()
    network.add_nodes_from(range(SIZE))
    network.add_edges_from((u, v, {"capacity": size}) for (u, v), size in edges.items())
    expected = nx.maximum_flow_value(network, 0, SIZE - 1)
    bound = min(sum(s for (u, _), s in edges.items() if u == 0), sum(s for (_, v), s in edges.items() if v == SIZE - 1))
    ends = np.array(list(edges), np.int64).reshape(-1, 2).T
    limits = csr_array(coo_array((np.array(list(edges.values()), np.int64), tuple(ends)), shape=(SIZE, SIZE)))
    before = limits.toarray()
    flow, left = largest_flow(limits, 0, SIZE - 1, bound, most)
    assert flow == expected
    # What is left there and back is what there was, what has passed goes on, and no more can.
    after = left.toarray()
    assert (after >= 0).all()
    assert np.array_equal(after + after.T, before + before.T)
    passed = before - after
    assert not passed.sum(1)[1:-1].any()
    assert passed.sum(1)[0] == flow
    assert not nx.has_path(nx.from_numpy_array(after, create_using=nx.DiGraph), 0, SIZE - 1)


def test_the_capacities_are_left_alone() -> None:
    limits = csr_array(np.array([[0, 2**40], [0, 0]]))
    flow, left = largest_flow(limits, 0, 1, 2**40)
    assert (flow, left.toarray().tolist()) == (2**40, [[0, 0], [2**40, 0]])
    assert limits.toarray().tolist() == [[0, 2**40], [0, 0]]
