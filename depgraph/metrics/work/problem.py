"""What list scheduling needs to know of a graph, whatever the number of workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from depgraph.dag.dag import Dag
from depgraph.dag.levels import NumberArray, tails
from depgraph.dag.runs import IntArray, offsets
from depgraph.metrics.work.readiness import Successions


@dataclass(frozen=True, eq=False)
class Problem:
    """The jobs of a graph, in order of priority: the nodes that take time, by longest remaining path, then by number.

    Jobs next to each other in that order with the same remaining path and the same weight are a class.

    Attributes
    ----------
    nodes : (jobs,) int64
        The node of each job.
    successions : Successions
    kind : (jobs,) int64
        The class of each job.
    ends : list of int
        Where each class ends.
    weights, levels, tails : lists of numbers
        Of each class: what a job costs; its remaining path, the job included; and the longest remaining path of what
        follows it, so that finishing it can make nothing ready that is more urgent.
    dtype : numpy.dtype
        The type of the weights.
    """

    nodes: IntArray
    successions: Successions
    kind: IntArray
    ends: list[int]
    weights: list[int] | list[float]
    levels: list[int] | list[float]
    tails: list[int] | list[float]
    dtype: np.dtype[Any]

    @property
    def jobs(self) -> int:
        """How many jobs there are."""
        return len(self.nodes)

    @classmethod
    def of(cls, dag: Dag, weights: NumberArray) -> Problem:
        """Return the problem of a graph whose nodes have these weights, inputs 0."""
        tail = tails(dag, weights)
        working = np.flatnonzero(weights > 0)
        level = tail[working] + weights[working]
        order = np.argsort(-level, kind="stable")
        nodes, level = working[order], level[order]
        weight, tail = weights[nodes], tail[nodes]
        fresh = np.ones(len(nodes), np.bool_)
        fresh[1:] = (level[1:] != level[:-1]) | (weight[1:] != weight[:-1])
        first = np.flatnonzero(fresh)
        sizes = np.diff(np.append(first, len(nodes)))
        return cls(
            nodes,
            Successions.of(dag, nodes),
            np.repeat(np.arange(len(first)), sizes),
            offsets(sizes)[1:].tolist(),
            weight[first].tolist(),
            level[first].tolist(),
            (np.maximum.reduceat(tail, first) if len(first) else tail).tolist(),
            weights.dtype,
        )
