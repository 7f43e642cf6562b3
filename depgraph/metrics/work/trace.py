"""A schedule as a trace that Perfetto and ``chrome://tracing`` show: a row for each worker.

The format is Chrome's Trace Event Format, in its JSON object form.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from depgraph.dag.graph import DependencyGraph, Operation
from depgraph.dag.levels import NumberArray
from depgraph.dag.runs import IntArray

_PROCESS = 0
_MICROSECONDS = 1_000_000


def trace_events(
    graph: DependencyGraph, starts: NumberArray, durations: NumberArray, worker: IntArray, weight: str
) -> Iterator[dict[str, Any]]:
    """Yield the events of a trace: the names of its rows, then a complete event for each node that a worker runs.

    Parameters
    ----------
    graph : DependencyGraph
    starts, durations : (nodes,) arrays
        In seconds if that is the weight, else in units of the weight, each of which becomes a microsecond.
    worker : (nodes,) int64
        -1 for those that no worker runs.
    weight : str
    """
    yield _named("process_name", 0, {"name": "depgraph schedule"})
    for number in range(int(worker.max(initial=-1)) + 1):
        yield _named("thread_name", number, {"name": f"worker {number}"})
        yield _named("thread_sort_index", number, {"sort_index": number})
    scale = _MICROSECONDS if weight == "seconds" else 1
    for operation in graph.operations:
        nodes = operation.start + np.flatnonzero(worker[operation.start : operation.stop] >= 0)
        columns = (starts[nodes] * scale, durations[nodes] * scale, worker[nodes], nodes, _positions(operation, nodes))
        for start, duration, number, node, position in zip(*(part.tolist() for part in columns), strict=True):
            yield {
                "name": operation.name,
                "ph": "X",
                "ts": start,
                "dur": duration,
                "pid": _PROCESS,
                "tid": number,
                "args": {
                    "node": node if operation.labels is None else str(operation.labels[node - operation.start]),
                    "position": position,
                    "module": operation.module,
                    "source": operation.source,
                },
            }


def as_json(events: Iterable[dict[str, Any]], other: dict[str, Any]) -> bytes:
    """Return a trace as the text of a JSON file, a line for each event: the object of `whole_trace`."""
    lines = ",\n".join(json.dumps(event, allow_nan=False) for event in events)
    rest = json.dumps(whole_trace([], other), allow_nan=False)
    return rest.replace("[]", f"[\n{lines}\n]", 1).encode()


def whole_trace(events: list[dict[str, Any]], other: dict[str, Any]) -> dict[str, Any]:
    """Return a trace as an object: its events, and what else is to be known."""
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": other}


def unit_of(weight: str) -> str:
    """Return in words what the times of a trace stand for."""
    return "times are in seconds of the schedule" if weight == "seconds" else f"1 microsecond is 1 unit of {weight}"


def _named(kind: str, worker: int, args: dict[str, Any]) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": _PROCESS, "tid": worker, "args": args}


def _positions(operation: Operation, nodes: IntArray) -> IntArray:
    """Return the positions of some of an operation's nodes, one a row: `Operation.position` of many at once."""
    where = nodes - operation.start
    if operation.coordinates is not None:
        return operation.coordinates[where]
    axes = np.unravel_index(where, operation.grid) if operation.grid else ()
    return np.array(axes, np.int64).reshape(len(axes), len(where)).T
