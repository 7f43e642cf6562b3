"""What a number of workers would make of it: greedy list scheduling."""

from __future__ import annotations

import operator
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from depgraph.dag.formats.whole import reason, write_whole
from depgraph.dag.graph import DependencyGraph, check_graph
from depgraph.dag.levels import NumberArray, depths, settle
from depgraph.dag.runs import IntArray
from depgraph.errors import GraphError, RenderError
from depgraph.metrics.weights import Weight, node_weights
from depgraph.metrics.work.problem import Problem
from depgraph.metrics.work.simulation import Simulation
from depgraph.metrics.work.trace import as_json, trace_events, unit_of, whole_trace
from depgraph.metrics.work.workers import assign_workers

_MOST_WORKERS = 2**31 - 1


class Bounds(NamedTuple):
    """Between what the makespan of any greedy schedule lies.

    Attributes
    ----------
    lower : int or float
        max(T₁ / p, T∞), the quotient rounded up where weights are integers: no schedule whatever is shorter.
    upper : float
        (T₁ − T∞) / p + T∞ (Brent): no schedule that leaves no worker idle without need is longer.
    """

    lower: int | float
    upper: float


class Point(NamedTuple):
    """What so many workers make of it: ``workers``, ``makespan``, ``speedup`` and ``utilisation`` as in `Schedule`."""

    workers: int
    makespan: int | float
    speedup: float
    utilisation: float

    @classmethod
    def of(cls, work: int | float, workers: int, makespan: int | float) -> Point:
        """Return the figures of a schedule."""
        speedup = work / makespan if makespan else 0.0
        return cls(workers, makespan, speedup, speedup / workers)


@dataclass(frozen=True, eq=False)
class Schedule:
    """Who runs what, and when. Made by `depgraph.schedule`.

    Times are in units of the weight. With weights that are no integers they are sums of rounded numbers, as are T₁
    and what is computed from it.

    Attributes
    ----------
    makespan : int or float
        T_p: when the last node finishes.
    speedup : float
        T₁ / T_p; 0 where there is no work.
    utilisation : float
        T₁ / (p · T_p): the share of their time that the workers work; 0 where there is no work.
    bounds : Bounds
        ``lower`` and ``upper``.
    workers : int
        p.
    work, span : int or float
        T₁ and T∞.
    weight : str
        The name of the weight.
    starts : (nodes,) array
        When each node starts, 0 for inputs. Of the type of the weights. It finishes its weight later.
    """

    makespan: int | float
    speedup: float
    utilisation: float
    bounds: Bounds
    workers: int
    work: int | float
    span: int | float
    weight: str
    starts: NumberArray = field(repr=False)
    _graph: DependencyGraph = field(repr=False)
    _weights: NumberArray = field(repr=False)
    _problem: Problem = field(repr=False)

    @property
    def guarantee(self) -> float:
        """2 − 1/p (Graham): how many times the makespan of the best schedule this one may take at most.

        The best schedule is not known: it takes at least ``bounds.lower``, and may take more.
        """
        return 2 - 1 / self.workers

    @cached_property
    def worker(self) -> IntArray:
        """The worker that runs each node, from 0 on, as a (nodes,) array; -1 for inputs and what takes no time."""
        result = np.full(self._graph.dag.nodes, -1, np.int64)
        nodes = np.sort(self._problem.nodes)
        starts = self.starts[nodes]
        result[nodes] = assign_workers(starts, starts + self._weights[nodes])
        return result

    @cached_property
    def curve(self) -> list[Point]:
        """The same for 1, 2, 4, … workers, up to as many as here: records with their figures.

        Computed when first asked for: a schedule for each of them, up to the number from which on nothing ever waits
        for a worker. More workers may take longer: greedy schedules have such anomalies [1]_.

        References
        ----------
        .. [1] R. L. Graham, "Bounds on multiprocessing timing anomalies", SIAM Journal on Applied Mathematics 17, 1969.
        """
        points = []
        enough: int | float | None = None
        for workers in _powers(self.workers):
            makespan = self.makespan if workers == self.workers else enough
            if makespan is None:
                run = Simulation(self._problem, workers)
                makespan, enough = run.makespan, None if run.waited else run.makespan
            points.append(Point.of(self.work, workers, makespan))
        return points

    def trace(self) -> dict[str, Any]:
        """Return the schedule in Chrome's trace event format.

        Returns
        -------
        dict
            ``traceEvents``: the name of each worker's row, and an event for each node with its operation, position,
            module and source line. With the weight ``"seconds"`` times are real; with any other a unit of weight is
            shown as a microsecond, which ``otherData`` says. Nodes that take no time are left out.
        """
        return whole_trace(list(self._events()), self._facts())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace to a JSON file, to be opened in https://ui.perfetto.dev or ``chrome://tracing``.

        Parameters
        ----------
        path : path
            It ends in ``.json``. What was there stays until the new file is complete.

        Raises
        ------
        RenderError
            Where it ends in something else, or cannot be written.
        """
        if not isinstance(path, (str, os.PathLike)) or Path(path).suffix.lower() != ".json":
            raise RenderError(f"A trace is written to a file whose name ends in .json; got {str(path)!r}.")
        try:
            write_whole(as_json(self._events(), self._facts()), Path(path))
        except (OSError, ValueError) as error:
            raise RenderError(f"Cannot write the trace to {str(path)!r}: {reason(error)}.") from error

    def _events(self) -> Any:
        return trace_events(self._graph, self.starts, self._weights, self.worker, self.weight)

    def _facts(self) -> dict[str, Any]:
        dag = self._graph.dag
        return {
            "weight": self.weight,
            "unit": unit_of(self.weight),
            "workers": self.workers,
            "makespan": self.makespan,
            "nodes_that_take_no_time": dag.nodes - dag.inputs - self._problem.jobs,
        }


def schedule(graph: DependencyGraph, workers: int = 8, weight: Weight = "ops") -> Schedule:
    """Return the schedule that a number of identical workers would follow, each taking what is most urgent.

    Greedy list scheduling: whenever a worker is idle and a node is ready, it takes the ready node with the longest
    remaining path (its own weight included), the one with the lowest number among several. A node is ready once
    everything it reads has finished; inputs are there from the start. What one worker hands to another costs nothing.
    A node of weight 0 runs in no time, as soon as it is ready, and takes no worker.

    Such a schedule takes at most (T₁ − T∞) / p + T∞ [1]_, and at most 2 − 1/p times as long as the best one [2]_.
    The best one itself is NP-hard to find.

    Parameters
    ----------
    graph : DependencyGraph
    workers : int, optional
        p, at least 1.
    weight : str or callable, optional
        How long a node takes; see `node_weights`.

    Returns
    -------
    Schedule

    Raises
    ------
    GraphError
        Where ``workers`` is no whole number of at least 1, the weight is unknown or no weight, or the weights add up to
        more than can be added.

    References
    ----------
    .. [1] R. P. Brent, "The parallel evaluation of general arithmetic expressions", Journal of the ACM 21, 1974.
    .. [2] R. L. Graham, "Bounds for certain multiprocessing anomalies", Bell System Technical Journal 45, 1966.

    Examples
    --------
    Two chains, and a node that can run at any time, on two workers:

    >>> import networkx as nx
    >>> import depgraph
    >>> dag = nx.DiGraph([("a0", "a1"), ("a1", "a2"), ("b0", "b1"), ("b1", "b2"), ("b2", "b3")])
    >>> dag.add_node("c")
    >>> found = depgraph.schedule(depgraph.from_networkx(dag), workers=2)
    >>> found.makespan, found.speedup, found.bounds
    (4, 2.0, Bounds(lower=4, upper=6.0))
    >>> [(point.workers, point.makespan) for point in found.curve]
    [(1, 8), (2, 4)]
    """
    check_graph(graph)
    workers = _checked(workers)
    weights = node_weights(graph, weight)
    with np.errstate(over="ignore"):
        work = weights.sum().item()
    if not np.isfinite(work):
        raise GraphError("The weights add up to more than a float can hold; give smaller ones.")
    problem = Problem.of(graph.dag, weights)
    run = Simulation(problem, workers)
    starts = np.zeros(graph.dag.nodes, weights.dtype)
    starts[problem.nodes] = run.starts
    timeless = graph.dag.inputs + np.flatnonzero(weights[graph.dag.inputs :] == 0)
    finishes = starts + weights
    settle(graph.dag, finishes, timeless)
    starts[timeless] = finishes[timeless]
    span = depths(graph.dag, weights).max(initial=0).item()
    _, makespan, speedup, utilisation = Point.of(work, workers, run.makespan)
    name = weight if isinstance(weight, str) else getattr(weight, "__name__", type(weight).__name__)
    bounds = _bounds(work, span, workers)
    return Schedule(makespan, speedup, utilisation, bounds, workers, work, span, name, starts, graph, weights, problem)


def _bounds(work: int | float, span: int | float, workers: int) -> Bounds:
    if isinstance(work, int) and isinstance(span, int):  # rounded once
        return Bounds(max(-(-work // workers), span), (work + (workers - 1) * span) / workers)
    return Bounds(max(work / workers, span), (work - span) / workers + span)


def _checked(workers: Any) -> int:
    """Return the number of workers as an int."""
    try:
        number = None if isinstance(workers, (bool, np.bool_)) else operator.index(workers)
    except TypeError:
        number = None
    if number is None or not 1 <= number <= _MOST_WORKERS:
        raise GraphError(f"workers is a whole number from 1 to {_MOST_WORKERS:,}; got {workers!r}.")
    return number


def _powers(most: int) -> list[int]:
    """Return 1, 2, 4, … up to a number, and the number itself."""
    powers = [1 << exponent for exponent in range(most.bit_length())]
    return powers if powers[-1] == most else [*powers, most]
