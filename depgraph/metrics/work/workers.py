"""Which worker runs which node."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from depgraph.dag.levels import NumberArray
from depgraph.dag.runs import IntArray


def assign_workers(starts: NumberArray, finishes: NumberArray) -> IntArray:
    """Share intervals out to workers, none of which runs two at once: each goes to the lowest one that is free.

    That takes no more workers than there are intervals at any one moment.

    Parameters
    ----------
    starts, finishes : (intervals,) arrays
        An interval may begin when another ends.

    Returns
    -------
    (intervals,) int64
    """
    # An interval so short that it is lost in rounding comes before others that begin at its moment.
    order = np.lexsort((finishes > starts, starts))
    busy: list[tuple[int | float, int]] = []
    idle: list[int] = []
    worker = []
    for start, finish in zip(starts[order].tolist(), finishes[order].tolist(), strict=True):
        while busy and busy[0][0] <= start:
            heappush(idle, heappop(busy)[1])
        number = heappop(idle) if idle else len(busy)
        heappush(busy, (finish, number))
        worker.append(number)
    result = np.empty(len(order), np.int64)
    result[order] = worker
    return result
