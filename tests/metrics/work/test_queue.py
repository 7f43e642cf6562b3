from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from depgraph.metrics.work import queue
from depgraph.metrics.work.queue import Queue


@given(st.lists(st.sets(st.integers(0, 60)), max_size=6), st.integers(0, 61), st.data())
@settings(deadline=None)
@pytest.mark.parametrize("few", [0, 1, 3])
def test_the_most_urgent_first(few: int, stretches: list[set[int]], stop: int, data: st.DataObject) -> None:
    waiting: set[int] = set()
    jobs = Queue()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queue, "FEW", few)
        for stretch in stretches:
            fresh = sorted(stretch - waiting)
            jobs.add(np.array(fresh) if data.draw(st.booleans()) else fresh)
            waiting |= stretch
        while waiting:
            assert jobs.first == min(waiting)
            head = list(jobs.head(max(stop, jobs.first + 1)))
            assert head == sorted(waiting)[: len(head)]
            assert head == [job for job in head if job < stop] or len(head) == 1
            taken = data.draw(st.integers(1, len(head)))
            jobs.drop(taken)
            waiting -= set(head[:taken])
    assert not jobs


def test_long_stretches_that_interlace_become_one() -> None:
    jobs = Queue()
    jobs.add(np.arange(0, 200, 2))
    jobs.add(np.arange(1, 200, 2))
    assert len(jobs.head(150)) == 150
    assert len(jobs.head(1000)) == 200
