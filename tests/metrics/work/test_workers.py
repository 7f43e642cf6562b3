from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from depgraph.metrics.work.workers import assign_workers


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 6)), max_size=30))
def test_as_few_workers_as_run_at_once(intervals: list[tuple[int, int]]) -> None:
    starts, lengths = np.array(intervals, np.int64).reshape(-1, 2).T
    worker = assign_workers(starts, starts + lengths).tolist()
    for number in set(worker):
        mine = sorted((s, s + n) for (s, n), w in zip(intervals, worker, strict=True) if w == number)
        assert all(finish <= start for (_, finish), (start, _) in pairwise(mine))
    at_once = max((sum(s <= t < s + max(n, 1) for s, n in intervals) for t in range(30)), default=0)
    assert max(worker, default=-1) + 1 <= at_once
    if all(n for _, n in intervals):
        assert set(worker) == set(range(at_once))


def test_the_lowest_one_that_is_free() -> None:
    starts, finishes = np.array([0, 0, 0, 1, 2, 2]), np.array([2, 1, 5, 3, 4, 3])
    assert assign_workers(starts, finishes).tolist() == [0, 1, 2, 1, 0, 3]
