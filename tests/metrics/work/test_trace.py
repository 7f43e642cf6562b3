from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import depgraph
from depgraph.dag.graph import DependencyGraph
from depgraph.errors import RenderError
from depgraph.metrics.work.schedule import Schedule, schedule
from depgraph.metrics.work.trace import trace_events
from tests.metrics.synthetic import transformer


def diamond() -> DependencyGraph:
    dag = nx.DiGraph([("x", "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    nx.set_node_attributes(dag, {"b": "left"}, "op")
    nx.set_node_attributes(dag, {"b": "net.left"}, "module")
    nx.set_node_attributes(dag, {"b": "net.py:7"}, "source")
    return depgraph.from_networkx(dag, ["x"])


def complete(trace: dict[str, Any]) -> list[dict[str, Any]]:
    return [event for event in trace["traceEvents"] if event["ph"] == "X"]


def test_events() -> None:
    trace = schedule(diamond(), 2).trace()
    named = [event for event in trace["traceEvents"] if event["ph"] == "M"]
    assert [(event["tid"], event["args"]["name"]) for event in named if event["name"] == "thread_name"] == [
        (0, "worker 0"),
        (1, "worker 1"),
    ]
    assert len({event["pid"] for event in trace["traceEvents"]}) == 1
    assert [(event["name"], event["ts"], event["dur"], event["tid"]) for event in complete(trace)] == [
        ("a", 0, 1, 0),
        ("left", 1, 1, 0),
        ("c", 1, 1, 1),
        ("d", 2, 1, 0),
    ]
    assert complete(trace)[1]["args"] == {"node": "b", "position": [], "module": "net.left", "source": "net.py:7"}
    assert trace["otherData"] == {
        "weight": "ops",
        "unit": "1 microsecond is 1 unit of ops",
        "workers": 2,
        "makespan": 3,
        "nodes_that_take_no_time": 0,
    }


def test_every_node_of_a_model_stands_where_its_node_says() -> None:
    graph = transformer(1, 5)
    found = schedule(graph, 3)
    events = complete(found.trace())
    assert [event["args"]["node"] for event in events] == list(range(5, graph.dag.nodes))
    for number, event in enumerate(events, 5):
        node = graph.node(number)
        assert (event["name"], tuple(event["args"]["position"])) == (node.op, node.position)
        assert (event["ts"], event["tid"]) == (found.starts[number], found.worker[number])


def test_positions_that_fill_no_grid() -> None:
    graph = transformer(1, 3)
    operation = graph.operations[0]
    object.__setattr__(operation, "coordinates", np.array([[0, 7], [1, 5], [2, 9]]))
    assert [event["args"]["position"] for event in complete(schedule(graph).trace())[:3]] == [[0, 7], [1, 5], [2, 9]]


def test_nodes_that_take_no_time_are_left_out() -> None:
    trace = schedule(diamond(), 2, lambda node: node.id != "c").trace()
    assert [event["args"]["node"] for event in complete(trace)] == ["a", "b", "d"]
    assert trace["otherData"]["nodes_that_take_no_time"] == 1


def test_seconds_are_shown_as_they_are() -> None:
    starts, durations = np.array([0.0, 0.0, 0.25]), np.array([0.0, 0.25, 0.5])
    graph = depgraph.from_networkx(nx.DiGraph([("x", "a"), ("a", "b")]), ["x"])
    worker = np.array([-1, 0, 0])
    for weight, unit in (("seconds", 1_000_000), ("watts", 1)):
        events = [e for e in trace_events(graph, starts, durations, worker, weight) if e["ph"] == "X"]
        assert [(event["ts"], event["dur"]) for event in events] == [(0, 0.25 * unit), (0.25 * unit, 0.5 * unit)]


@pytest.mark.parametrize("weight", ["ops", lambda node: 0.5, lambda node: 0])
def test_the_file_holds_the_trace(tmp_path: Path, weight: Any) -> None:
    found = schedule(transformer(1, 5), 3, weight)
    found.save(tmp_path / "trace.JSON")
    assert json.loads((tmp_path / "trace.JSON").read_text()) == found.trace()
    found.save(str(tmp_path / "trace.json"))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["trace.JSON", "trace.json"]


@pytest.mark.parametrize("path", ["trace", "trace.txt", "trace.json.gz", ".json", 7, None])
def test_other_names_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RenderError) as caught:
        schedule(diamond()).save(path)
    assert str(caught.value) == f"A trace is written to a file whose name ends in .json; got {str(path)!r}."
    assert not list(tmp_path.iterdir())


def test_unwritable(tmp_path: Path) -> None:
    with pytest.raises(
        RenderError, match=r"Cannot write the trace to '.*missing.t\.json': No such file or directory\."
    ):
        schedule(diamond()).save(tmp_path / "missing" / "t.json")


def test_what_was_there_stays_where_the_trace_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Schedule) -> None:
        raise MemoryError

    (tmp_path / "t.json").write_text("before")
    monkeypatch.setattr(Schedule, "_events", fail)
    with pytest.raises(MemoryError):
        schedule(diamond()).save(tmp_path / "t.json")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("t.json", "before")]
