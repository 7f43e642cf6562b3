"""Pairs that are made when they are looked at, and positions as bundles of elements."""

import numpy as np
import pytest
import torch

from depgraph.dag.graph import Terminal
from depgraph.dag.runs import Runs
from depgraph.verification.bundles import block, changed, replaced, rows
from depgraph.verification.values import dense, laid_out
from depgraph.verification.verdict import Pair, Pairs


def terminal(name, *shape, axes=()):
    count = int(np.prod([shape[axis] for axis in axes]))
    return Terminal(name, shape, axes, Runs.singletons(np.arange(count)))


PAIRS = Pairs(
    [
        (terminal("x", 2, 3, axes=(1, 0)), terminal("y"), np.array([[0, 0], [3, 0]])),
        (terminal("x", 2, 3, axes=(1, 0)), terminal("none", 4), np.zeros((0, 2), np.int64)),
        (terminal("z", 5, axes=(0,)), terminal("w", 2, 2, axes=(0, 1)), np.array([[4, 3]])),
    ]
)
LISTED = [Pair("x", (0, 0), "y", ()), Pair("x", (1, 1), "y", ()), Pair("z", (4,), "w", (1, 1))]


def test_pairs():
    assert len(PAIRS) == 3
    assert list(PAIRS) == PAIRS[:] == LISTED
    assert PAIRS[-1] == PAIRS[2] == LISTED[2]
    assert PAIRS[::2] == LISTED[::2]
    assert LISTED[1] in PAIRS
    with pytest.raises(IndexError, match="there are 3 pairs"):
        PAIRS[3]


def test_no_pairs():
    assert len(Pairs([])) == 0
    assert not Pairs([])
    assert repr(Pairs([])) == "[]"


def test_shown():
    assert str(LISTED[1]) == "x[1, 1] → y"
    assert repr(PAIRS) == "[x[0, 0] → y, x[1, 1] → y, z[4] → w[1, 1]]"
    many = Pairs([(terminal("z", 9, axes=(0,)), terminal("y"), np.stack([np.arange(9), np.zeros(9, int)], 1))])
    assert repr(many) == "[z[0] → y, z[1] → y, z[2] → y, … 6 more]"


@pytest.mark.parametrize("axes", [(), (0,), (2, 0), (0, 1, 2)])
def test_positions_are_rows(axes):
    tensor = torch.arange(24.0).reshape(2, 3, 4)
    table = rows(tensor, axes)
    for number, position in enumerate(np.ndindex(*(tensor.shape[a] for a in axes))):
        index = [slice(None)] * 3
        for axis, place in zip(axes, position, strict=True):
            index[axis] = place
        there = tensor[tuple(index)]
        assert sorted(table[number].tolist()) == sorted(there.reshape(-1).tolist())
        assert torch.equal(block(tensor, axes, position), there)
        other = replaced(tensor, axes, position, there + 100)
        assert np.flatnonzero(changed(tensor, other, axes).numpy()).tolist() == [number]
        assert torch.equal(other.reshape(-1) > 50, torch.isin(tensor.reshape(-1), there.reshape(-1)))


def test_what_counts_as_a_change():
    one = torch.tensor([1.0, 1.0, 1.0, torch.nan, torch.nan, torch.inf, torch.inf, 0.0, 1e300], dtype=torch.float64)
    two = torch.tensor([1.0, 1 + 1e-15, 1 + 1e-12, torch.nan, 1.0, torch.inf, -torch.inf, 1e-300, 1.0]).double()
    two[1:3] = torch.tensor([1 + 1e-15, 1 + 1e-12], dtype=torch.float64)
    two[7] = 1e-300
    assert changed(one, two, (0,)).tolist() == [False, False, True, False, True, False, True, True, True]
    assert changed(torch.tensor([1, 2]), torch.tensor([1, 3]), (0,)).tolist() == [False, True]
    assert changed(torch.tensor([True, False]), torch.tensor([True, True]), ()).tolist() == [True]
    half = torch.tensor([1.0, 1.0], dtype=torch.bfloat16)
    assert changed(half, half + torch.tensor([0, 0.0079]).bfloat16(), (0,)).tolist() == [False, True]


@pytest.mark.parametrize("form", [
    {"layout": torch.sparse_coo}, {"layout": torch.sparse_csr}, {"layout": torch.sparse_csc},
    {"layout": torch.sparse_bsr, "blocksize": (2, 3)}, {"layout": torch.sparse_bsc, "blocksize": (2, 1)},
    {"sparse_dim": 1}, {"layout": torch.sparse_csr, "dense_dim": 1},
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:Sparse ... tensor support is in beta")
def test_layouts(form):
    shape = (4, 6, 2) if "dense_dim" in form else (4, 6)
    tensor, other = torch.randn(shape).relu(), torch.randn(shape).relu()
    sparse = tensor.to_sparse(form["sparse_dim"]) if "sparse_dim" in form else tensor.to_sparse(**form)
    again = laid_out(other, sparse)
    assert again.layout == sparse.layout
    assert (again.sparse_dim(), again.dense_dim()) == (sparse.sparse_dim(), sparse.dense_dim())
    assert torch.equal(dense(again), other)
    assert laid_out(other, tensor) is dense(other) is other
