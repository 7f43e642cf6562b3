"""depgraph against its peers on the same graphs: longest paths, and the lengths of all shortest paths."""

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

import depgraph
from benchmarks.apart import Outcome, apart, timed
from benchmarks.graphs import CASES, Case
from benchmarks.peers import PEERS, Task

#: A peer may take this many seconds in all, its own graph included; distances are begun for so many of them.
_LIMIT, _PATIENCE = 200.0, 5.0
_GIGABYTES = 14.0


@dataclass(frozen=True)
class Size:
    """How large a graph is."""

    nodes: int
    edges: int


@dataclass
class Row:
    """One measure of one graph: what depgraph took, and each peer."""

    case: str
    graph: Size
    ours: Outcome
    peers: dict[str, Outcome] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """How many times as long the fastest peer takes; None where none has an answer."""
        seconds = [outcome.seconds for outcome in self.peers.values() if not outcome.reason]
        return min(seconds) / self.ours.seconds if seconds else None


def compare(cases: tuple[Case, ...] = CASES) -> Iterator[tuple[str, Row]]:
    """Yield (measure, row) for each graph; every answer is checked against ours.

    Raises
    ------
    AssertionError
        Where an answer differs.
    """
    for case in cases:
        graph = case.build()
        sources = middle_out(graph.inputs.default().count)
        task = Task(graph, graph.inputs.default().nodes.starts[sources], _PATIENCE)
        size, length = Size(graph.dag.nodes, graph.dag.edges), depgraph.critical_path(graph).length
        row = Row(case.name, size, limited(partial(timed, partial(longest, graph))))
        for peer in PEERS:
            outcome = row.peers[peer.name] = limited(partial(peer.longest, task))
            assert outcome.reason or outcome.answer == length, (case.name, peer.name, outcome.answer, length)
        yield "longest", row
        lengths = depgraph.path_lengths(graph)
        row = Row(case.name, size, limited(partial(timed, partial(distances, graph))))
        for peer in PEERS:
            outcome = row.peers[peer.name] = limited(partial(peer.distances, task))
            if not outcome.reason:
                expected = lengths[sources[: len(outcome.answer)]]
                assert np.array_equal(outcome.answer, expected), (case.name, peer.name)
        yield "distances", row
        del graph, task, lengths, row
        gc.collect()


def longest(graph: depgraph.DependencyGraph) -> int:
    """Return the length of a longest path, found anew each time: what is kept of the last time is thrown away."""
    graph.dag.__dict__.pop("levels", None)
    return depgraph.critical_path(graph).length


def distances(graph: depgraph.DependencyGraph) -> None:
    """Find the lengths of all shortest paths; the table is not passed on from one process to another."""
    depgraph.path_lengths(graph)


def limited(measurement: Callable[[], tuple[float, Any]]) -> Outcome:
    """Run a measurement apart, within the limits that hold for all."""
    return apart(measurement, _LIMIT, _GIGABYTES)


def middle_out(count: int) -> np.ndarray:
    """Return 0 … count - 1 from the middle outwards, so that the first few stand for all."""
    numbers = np.arange(count)
    return numbers[np.argsort(np.abs(2 * numbers - count + 1), kind="stable")]
