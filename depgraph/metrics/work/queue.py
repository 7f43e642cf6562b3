"""Jobs that wait for a worker, the most urgent ones first."""

from __future__ import annotations

from bisect import bisect_left
from heapq import heappop, heappush, heapreplace

import numpy as np

from depgraph.metrics.work.readiness import FEW, Jobs


class Queue:
    """A queue of jobs by their numbers, lowest first: a heap of sorted stretches of them.

    What becomes ready at the same moment comes as one stretch, however long, and is used piece by piece.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, Jobs]] = []  # no job is in two stretches: no two begin with the same number

    def __bool__(self) -> bool:
        return bool(self._heap)

    @property
    def first(self) -> int:
        """The most urgent job."""
        return self._heap[0][0]

    def add(self, jobs: Jobs) -> None:
        """Add jobs, in ascending order."""
        if len(jobs):
            heappush(self._heap, (int(jobs[0]), jobs))

    def head(self, stop: int) -> Jobs:
        """Return most urgent jobs below ``stop``: the first one, and as many after it as are at hand."""
        _, jobs = self._heap[0]
        if len(jobs) == 1:
            return jobs
        found, limit = self._until(stop)
        if found < min(len(jobs), FEW) and limit < stop and self._merge():
            jobs = self._heap[0][1]
            found, _ = self._until(stop)
        return jobs[:found]

    def drop(self, count: int) -> None:
        """Take away that many of the jobs that `head` returned, the first ones."""
        jobs = self._heap[0][1]
        if count == len(jobs):
            heappop(self._heap)
        else:
            heapreplace(self._heap, (int(jobs[count]), jobs[count:]))

    def _until(self, stop: int) -> tuple[int, int]:
        limit = min([stop, *(first for first, _ in self._heap[1:3])])
        return bisect_left(self._heap[0][1], limit), limit

    def _merge(self) -> bool:
        """Merge the first two stretches where they interlace and are about as long, so that it stays worth it."""
        heap = self._heap
        _, jobs = heappop(heap)
        _, others = heap[0]
        if not FEW < len(others) <= 8 * len(jobs) or not FEW < len(jobs) <= 8 * len(others):
            heappush(heap, (int(jobs[0]), jobs))
            return False
        merged = np.sort(np.concatenate([jobs, others]), kind="stable")
        heapreplace(heap, (int(merged[0]), merged))
        return True
