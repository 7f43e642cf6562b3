"""Which weights of a softmax are certain."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from depgraph.rules.values.weights import weigh

INF = math.inf
NUMBERS = st.sampled_from([-INF, -1e9, -1e4, -300.0, -4096.0, -1.0, 0.0, 2.0, 50.0, 4096.0, 1e9])


def weights(low, high, nan=None, dtype=torch.float64):
    low, high = torch.tensor(low, dtype=dtype), torch.tensor(high, dtype=dtype)
    nan = torch.zeros(len(low), dtype=torch.bool) if nan is None else torch.tensor(nan)
    return weigh(low, high, nan, 0, len(low), dtype)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=4), st.integers(0, 10**6), st.booleans())
def test_what_is_certain_holds_for_all_scores(pairs, seed, narrow):
    dtype = torch.float32 if narrow else torch.float64
    low, high = [min(p) for p in pairs], [max(p) for p in pairs]
    found = weights(low, high, dtype=dtype)
    generator = torch.Generator().manual_seed(seed)
    rows = []
    for _ in range(30):
        share = torch.rand(len(low), generator=generator, dtype=torch.float64).round(decimals=1)
        ends = [torch.tensor(end, dtype=torch.float64) for end in (low, high)]
        scores = ends[0].clamp(min=-1e300) * (1 - share) + ends[1].clamp(min=-1e300) * share
        scores = torch.where((ends[0] == -INF) & (share < 0.5) | (ends[1] == -INF), -INF, scores)
        rows.append(scores.to(dtype).softmax(0))
    table = torch.stack(rows)
    assert not bool(((table != 0) & ~table.isnan() & found.gone).any())
    if bool(found.sure):
        assert bool(((table == table[0]) | (table.isnan() & table[0].isnan())).all())
    assert bool(found.doubtful) or not bool(table.isnan().any()) or bool(found.hidden)
    if bool(found.hidden):
        assert bool(table.isnan().all())


def test_a_lone_key_counts_only_if_it_is_surely_there():
    assert bool(weights([-INF, 0.0], [-INF, 1.0]).sure)
    assert not bool(weights([-INF, -INF], [-INF, 1.0]).sure)
    assert bool(weights([-INF, -INF], [-INF, 1.0]).doubtful)


def test_a_row_of_no_keys_is_no_number_for_sure():
    found = weights([-INF, -INF], [-INF, -INF])
    assert bool(found.hidden)
    assert bool(found.sure)
    assert not bool(found.doubtful)


@pytest.mark.parametrize(("mask", "gone"), [(-1e9, True), (-1e4, True), (-8000.0, False)])
def test_a_low_number_hides_from_ordinary_scores_where_it_is_lower_than_they_can_be(mask, gone):
    found = weights([-4096.0, mask - 4096], [4096.0, mask + 4096])
    assert found.gone.tolist() == [False, gone]


def test_what_may_be_no_number_spoils_its_row_and_is_not_gone():
    found = weights([0.0, -1e9], [1.0, -1e9], nan=[False, True])
    assert found.gone.tolist() == [False, False]
    assert bool(found.doubtful)
    assert bool(weights([math.nan, 0.0], [math.nan, 1.0]).broken)


def test_what_is_lost_changes_no_weight_but_its_own():
    found = weights([0.0, -90.0], [1.0, -80.0])
    assert found.lost.tolist() == [False, True]
    one, other = (torch.tensor([0.5, x], dtype=torch.float64).softmax(0) for x in (-90.0, -80.0))
    assert one[0] == other[0]
    assert one[1] != other[1]
