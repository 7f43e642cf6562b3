"""Which positions are meant, and what is given in place of a graph or of positions."""

from functools import partial

import networkx as nx
import numpy as np
import pytest

import depgraph
from depgraph.dag.graph import Terminal, Terminals
from depgraph.dag.interop import from_networkx
from depgraph.dag.runs import Runs
from depgraph.errors import GraphError, PositionError
from depgraph.metrics.select import select, select_several

GRAPH = from_networkx(nx.DiGraph([("a", "c"), ("b", "c")]), ["a", "b"], ["c"])


@pytest.mark.parametrize(
    ("selection", "numbers"),
    [
        (None, [0, 1]),
        ("input", [0, 1]),
        (("input", 1), [1]),
        (("input", (-1,)), [1]),
        (("input", slice(1, None)), [1]),
        (("input", [1, 0]), [1, 0]),
        (("input", np.array([1])), [1]),
        (("input", []), []),
    ],
)
def test_forms(selection, numbers):
    assert select(GRAPH.inputs, selection)[1].tolist() == numbers


@pytest.mark.parametrize(
    ("selection", "numbers"),
    [
        (None, {"x": [0, 1, 2]}),
        ("y", {"y": [0, 1]}),
        (("x", [2, 0, -1]), {"x": [0, 2]}),
        (["y", ("x", 1)], {"y": [0, 1], "x": [1]}),
        ([("x", 2), ("x", slice(2)), ("y", [])], {"x": [0, 1, 2], "y": []}),
        ([("x", 2), (0, 2)], {"x": [2]}),
        ([], {}),
    ],
)
def test_several(selection, numbers):
    terminals = Terminals("input", [terminal("x", 3), terminal("y", 2)], {0: "x"})
    found = select_several(terminals, selection)
    assert {terminal.name: numbers.tolist() for terminal, numbers in found} == numbers


def terminal(name, count):
    return Terminal(name, (count,), (0,), Runs.singletons(np.arange(count)))


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (["input", "z"], "There is no input 'z'. The inputs are: input."),
        ([("input", 2)], "input has positions 0 to 1; there is no position 2."),
        ([["input"]], "An input is given as a name, or as (name, positions) like ('x', 0); got ['input']."),
        ({"input"}, "An input is given as a name, or as (name, positions) like ('x', 0); got {'input'}."),
    ],
)
@pytest.mark.parametrize("function", [depgraph.bottleneck, partial(depgraph.state, t=1)])
def test_several_that_are_not_there(function, selection, message):
    with pytest.raises(PositionError) as caught:
        function(GRAPH, source=selection)
    assert str(caught.value) == message


@pytest.mark.parametrize("selection", [["input", 0], {"input": 0}, ("input",), ("input", 0, 1)])
def test_a_name_and_positions_are_a_pair(selection):
    with pytest.raises(PositionError, match=r"An input is given as a name, or as \(name, positions\) like .*; got "):
        depgraph.path_lengths(GRAPH, selection)


@pytest.mark.parametrize("positions", ["1", 0.5, None, True, {1: 2}, ["a"], [0.5], np.array([True, False])])
def test_positions_are_whole_numbers(positions):
    with pytest.raises(PositionError, match="A position of input is a whole number, or a tuple with one for each of"):
        depgraph.path_lengths(GRAPH, ("input", positions))


@pytest.mark.parametrize(
    "function",
    [
        depgraph.path_lengths,
        depgraph.critical_path,
        depgraph.parallelism,
        depgraph.bottleneck,
        depgraph.render,
        lambda graph: depgraph.state(graph, 1),
        lambda graph: depgraph.shortest_path(graph, "input", "output"),
        lambda graph: depgraph.verify(graph, None),
    ],
)
@pytest.mark.parametrize("graph", [None, "x", nx.DiGraph()], ids=["none", "text", "networkx"])
def test_what_is_no_graph(function, graph):
    with pytest.raises(GraphError, match=f"A graph is what depgraph.trace .*; got a {type(graph).__name__}."):
        function(graph)


@pytest.mark.parametrize("t", ["1", 0.5, None, 3])
def test_times_that_are_not_there(t):
    with pytest.raises(PositionError, match=f"t goes from 0 to 1: .*; got {t!r}."):
        depgraph.state(GRAPH, t)
