"""Every public function of a graph, given what it does not take: an error of ours that names the value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest

import depgraph
from depgraph import DependencyGraph, DepgraphError, GraphError, PositionError, RenderError

DAG = nx.DiGraph([("x", "a"), ("a", "b"), ("b", "y"), ("x", "y")])
GRAPH = depgraph.from_networkx(DAG, ["x"], ["y"])

Call = Callable[[Any], object]
TAKE_A_GRAPH: dict[str, Call] = {
    "path_lengths": depgraph.path_lengths,
    "shortest_path": lambda graph: depgraph.shortest_path(graph, "input", "output"),
    "critical_path": depgraph.critical_path,
    "parallelism": depgraph.parallelism,
    "bottleneck": depgraph.bottleneck,
    "state": lambda graph: depgraph.state(graph, 0),
    "render": depgraph.render,
    "save": lambda graph: depgraph.save(graph, "never.json"),
}


@pytest.mark.parametrize("call", TAKE_A_GRAPH.values(), ids=TAKE_A_GRAPH)
@pytest.mark.parametrize("given", [None, 5, "graph", DAG, GRAPH.dag, [GRAPH], DependencyGraph])
def test_what_is_no_graph(call: Call, given: object) -> None:
    with pytest.raises(GraphError, match=f"comes first; got a {type(given).__name__}\\."):
        call(given)


TAKE_A_SELECTION: dict[str, Call] = {
    "path_lengths source": lambda wrong: depgraph.path_lengths(GRAPH, wrong),
    "path_lengths target": lambda wrong: depgraph.path_lengths(GRAPH, None, wrong),
    "shortest_path source": lambda wrong: depgraph.shortest_path(GRAPH, wrong, "output"),
    "shortest_path target": lambda wrong: depgraph.shortest_path(GRAPH, "input", wrong),
    "bottleneck source": lambda wrong: depgraph.bottleneck(GRAPH, wrong),
    "bottleneck target": lambda wrong: depgraph.bottleneck(GRAPH, None, wrong),
}
WRONG_SELECTIONS: list[tuple[Any, str]] = [
    ("q", "'q'"),
    (5, "5"),
    (1.5, "1.5"),
    (True, "True"),
    (float("nan"), "nan"),
    (b"x", "b'x'"),
    (["x"], "'x'"),
    ({"x": 1}, r"\{'x': 1\}"),
    (np.array([1, 2]), r"array\(\[1, 2\]\)"),
    ((), r"\(\)"),
    ((0,), r"\(0,\)"),
    ((0, 0, 1), r"\(0, 0, 1\)"),
    (("q", 0), "'q'"),
    (([], 0), r"\[\]"),
    ((([],), 0), r"\(\[\],\)"),
    ((0, "0"), "'0'"),
    ((0, 99), "99"),
    ((0, -99), "-99"),
    ((0, 10**30), str(10**30)),
    ((0, 0.5), "0.5"),
    ((0, None), "None"),
    ((0, True), "True"),
    ((0, [0, 99]), "99"),
    ((0, [[0.5]]), r"\[0.5\]"),
    ((0, {0: 1}), r"\{0: 1\}"),
    ((0, np.array([0.0])), "0.0"),
    ((0, np.array([True])), "True"),
    ((0, slice("a")), "'a'"),
    ((0, slice(None, None, 0)), "step cannot be zero"),
]


@pytest.mark.parametrize("call", TAKE_A_SELECTION.values(), ids=TAKE_A_SELECTION)
@pytest.mark.parametrize(("wrong", "named"), WRONG_SELECTIONS)
def test_what_is_no_selection(call: Call, wrong: object, named: str) -> None:
    with pytest.raises(PositionError, match=named):
        call(wrong)


KEYS = ["q", 5, 1.5, True, None, b"x", ["x"], {"x"}, (["x"], 0), ("input", 0), np.array([0]), slice(0, 1)]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_what_is_no_key(key: Any) -> None:
    assert key not in GRAPH.inputs
    with pytest.raises(PositionError) as caught:
        GRAPH.inputs[key]
    assert str(caught.value) == f"There is no input {key!r}. The inputs are: input."


@pytest.mark.parametrize("t", [-1, 2, 0.5, "1", None, [0]])
def test_what_is_no_place_between_positions(t: Any) -> None:
    with pytest.raises(PositionError, match=r"t goes from 0 to 1: .*; got "):
        depgraph.state(GRAPH, t)


@pytest.mark.parametrize("wrong", [5, 1.5, None, "module", b"operation", ["operation"], np.array([1, 2])])
def test_what_is_no_granularity(wrong: Any) -> None:
    with pytest.raises(GraphError) as caught:
        GRAPH.collapse(wrong)
    assert str(caught.value) == f"collapse() takes 'operation'; got {wrong!r}."


OPTIONS = [
    ("granularity", wrong, "granularity is one of auto, position, operation; got")
    for wrong in (5, None, "module", ["auto"], np.array([1, 2]))
]
OPTIONS += [
    ("format", wrong, "Drawings come as dot, svg or png; got format") for wrong in (5, "pdf", b"svg", ["svg"], {})
]
OPTIONS += [("title", wrong, "title is a line of text or None; got") for wrong in (5, b"a", ["a"], np.array([1, 2]))]
OPTIONS += [("path", wrong, "path is the name of a file to write, such as 'graph.svg'; got") for wrong in (5, b"a", [])]
OPTIONS += [
    ("highlight", wrong, "highlight is 'critical path' or None; got")
    for wrong in (5, True, "all", [], np.array([1, 2]))
]


@pytest.mark.parametrize(("option", "wrong", "message"), OPTIONS)
def test_what_is_no_option_of_a_drawing(option: str, wrong: Any, message: str) -> None:
    with pytest.raises(RenderError) as caught:
        depgraph.render(GRAPH, **{option: wrong})
    assert str(caught.value) == f"{message} {wrong!r}."


def unconnected() -> DependencyGraph:
    dag = nx.DiGraph([("x0", "a"), ("x1", "a"), ("b", "y0")])
    dag.add_node("y1")
    return depgraph.from_networkx(dag, ["x0", "x1"], ["y0", "y1"])


@pytest.mark.parametrize("collapsed", [False, True])
def test_no_path(collapsed: bool) -> None:
    graph = unconnected().collapse() if collapsed else unconnected()
    shape = (1, 1) if collapsed else (2, 2)
    assert depgraph.path_lengths(graph).tolist() == np.full(shape, -1).tolist()
    assert depgraph.path_lengths(graph, weight=lambda node: 0.5).tolist() == np.full(shape, -1.0).tolist()
    assert depgraph.shortest_path(graph, ("input", 0), ("output", 0)) == (-1, [])
    assert depgraph.bottleneck(graph) == (0, [])
    assert [depgraph.state(graph, t) for t in range(shape[0] + 1)] == [(0, [])] * (shape[0] + 1)
    assert depgraph.critical_path(graph).length == 2
    assert depgraph.parallelism(graph).width == 3
    assert "digraph" in depgraph.render(graph)


NEED_ENDS: list[Call] = [
    depgraph.path_lengths,
    depgraph.bottleneck,
    lambda graph: depgraph.state(graph, 0),
    lambda graph: depgraph.shortest_path(graph, None, None),
]


@pytest.mark.parametrize("call", NEED_ENDS)
def test_without_inputs_or_outputs(call: Call) -> None:
    with pytest.raises(GraphError, match=r"This graph has no inputs; name some when building it\."):
        call(depgraph.from_networkx(DAG, [], ["y"]))
    with pytest.raises(GraphError, match=r"This graph has no outputs; name some when building it\."):
        call(depgraph.from_networkx(DAG, ["x"]))


def test_without_either_there_is_still_work() -> None:
    graph = depgraph.from_networkx(DAG)
    for one in (graph, graph.collapse()):
        assert depgraph.critical_path(one).length == 4
        assert depgraph.parallelism(one).work == 4
        assert "digraph" in depgraph.render(one)


WEIGHTS = [-1, -0.5, float("nan"), float("inf"), -float("inf"), 1j, "1", b"1", None, [1], np.array([1]), np.int64(-1)]
WEIGH: list[Callable[[Any], object]] = [
    lambda weight: depgraph.path_lengths(GRAPH, weight=weight),
    lambda weight: depgraph.shortest_path(GRAPH, "input", "output", weight),
    lambda weight: depgraph.critical_path(GRAPH, weight),
    lambda weight: depgraph.parallelism(GRAPH, weight),
]


@pytest.mark.parametrize("call", WEIGH)
@pytest.mark.parametrize("wrong", WEIGHTS, ids=repr)
def test_what_is_no_weight_of_a_node(call: Call, wrong: object) -> None:
    with pytest.raises(
        GraphError, match=r"^The weight of node 'a' \(a\) is .*; a weight is a finite number of at least 0"
    ):
        call(lambda node: wrong)


@pytest.mark.parametrize("call", WEIGH)
@pytest.mark.parametrize("wrong", [5, None, "seconds of arc", ["ops"]])
def test_what_is_no_weight(call: Call, wrong: Any) -> None:
    with pytest.raises(DepgraphError, match="There is no weight"):
        call(wrong)
