"""Which nodes become ready as others finish: counted down over the runs, not over the edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array

from depgraph.dag.dag import Dag
from depgraph.dag.runs import IntArray, ragged_arange
from depgraph.metrics.flow.network import run_arcs

#: Jobs by their numbers: a list where there are few, else an array.
Jobs = Sequence[int] | IntArray

#: Up to this many at a time are handled one by one, which is faster for so few than whole arrays are.
FEW = 24


@dataclass(frozen=True, eq=False)
class Successions:
    """What has to finish before what.

    Vertices are the jobs, from 0 on; then what takes no time, and is finished as soon as it is ready.

    Attributes
    ----------
    jobs : int
        How many jobs there are.
    indptr, heads : int arrays
        Vertex v is followed by ``heads[indptr[v]:indptr[v + 1]]``.
    """

    jobs: int
    indptr: IntArray
    heads: IntArray

    @classmethod
    def of(cls, dag: Dag, nodes: IntArray) -> Successions:
        """Return those of a graph, the jobs being the given nodes in the given order."""
        arcs = run_arcs(dag)
        number = np.full(arcs.vertices, -1, np.int64)
        number[nodes] = np.arange(len(nodes))
        rest = np.flatnonzero(number < 0)
        number[rest] = len(nodes) + np.arange(len(rest))
        ends = number[arcs.tail], number[arcs.head]
        followed = coo_array((np.ones(len(arcs.tail), np.bool_), ends), shape=(arcs.vertices, arcs.vertices)).tocsr()
        return cls(len(nodes), followed.indptr.astype(np.int64), followed.indices.astype(np.int64))

    @cached_property
    def at_first(self) -> tuple[IntArray, IntArray]:
        """The jobs that are ready at first, and how many vertices each vertex then still waits for."""
        waiting = np.bincount(self.heads, minlength=len(self.indptr) - 1)
        roots = np.flatnonzero(waiting == 0)
        count = Countdown(self, waiting)
        freed = np.asarray(count.finish(roots[roots >= self.jobs]), np.int64)
        return np.sort(np.concatenate([roots[roots < self.jobs], freed])), waiting


class Countdown:
    """How many vertices each vertex still waits for.

    Parameters
    ----------
    successions : Successions
    waiting : (vertices,) int64
        The numbers to begin with; counted down in place.
    """

    def __init__(self, successions: Successions, waiting: IntArray) -> None:
        self._jobs, self._indptr, self._heads = successions.jobs, successions.indptr, successions.heads
        self._waiting = waiting
        # Views of the same numbers that hand out Python's own integers, for one at a time.
        self._each = successions.indptr.data, successions.heads.data, waiting.data

    def finish(self, vertices: Jobs) -> Jobs:
        """Count down what follows these vertices; return the jobs that have become ready, in order."""
        return self._one_by_one(vertices) if len(vertices) <= FEW else self._together(np.asarray(vertices, np.int64))

    def _one_by_one(self, vertices: Jobs) -> list[int]:
        jobs, (indptr, heads, waiting) = self._jobs, self._each
        left = vertices.tolist() if isinstance(vertices, np.ndarray) else list(vertices)
        ready: list[int] = []
        while left:
            vertex = left.pop()
            for head in heads[indptr[vertex] : indptr[vertex + 1]]:
                still = waiting[head] - 1
                waiting[head] = still
                if not still:
                    (ready if head < jobs else left).append(head)
        ready.sort()
        return ready

    def _together(self, vertices: IntArray) -> IntArray:
        found = []
        while len(vertices):
            first = self._indptr[vertices]
            counts = self._indptr[vertices + 1] - first
            heads = self._heads[np.repeat(first, counts) + ragged_arange(counts)]
            np.subtract.at(self._waiting, heads, 1)
            ready = np.sort(heads[self._waiting[heads] == 0], kind="stable")  # stretches of it are in order already
            ready = np.concatenate([ready[:1], ready[1:][ready[1:] > ready[:-1]]])
            jobs = int(np.searchsorted(ready, self._jobs))
            found.append(ready[:jobs])
            vertices = ready[jobs:]
        return np.sort(np.concatenate(found))
