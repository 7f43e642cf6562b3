from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import depgraph
from depgraph.dag.graph import DependencyGraph
from depgraph.dag.runs import Runs
from depgraph.errors import GraphError, PositionError
from depgraph.metrics.paths.fields import Field, feeds, reads
from tests.metrics.strategies import as_networkx, graphs
from tests.metrics.synthetic import Builder, one_to_one, recurrent, transformer


@given(graphs(), st.data())
def test_fields_are_those_of_networkx(graph: DependencyGraph, data: st.DataObject) -> None:
    dag = as_networkx(graph)
    rows, columns = graph.inputs["x"].count, graph.outputs["output"].count
    some = data.draw(st.lists(st.integers(0, columns - 1)))
    above = {i for j in some for i in range(rows) if ("x", i) in nx.ancestors(dag, ("y", j))}
    field = reads(graph, ("output", some))
    assert field.terminal == "x"
    assert field.positions == set(field.numbers.tolist()) == above
    some = data.draw(st.lists(st.integers(0, rows - 1)))
    below = {j for i in some for j in range(columns) if ("y", j) in nx.descendants(dag, ("x", i))}
    field = feeds(graph, ("x", some))
    assert field.terminal == "output"
    assert field.positions == set(field.numbers.tolist()) == below


@given(st.frozensets(st.integers(0, 30)))
def test_a_field_is_a_set_and_intervals(numbers: frozenset[int]) -> None:
    field = Field("x", (31,), np.array(sorted(numbers), np.int64))
    assert field.positions == numbers
    assert list(field) == sorted(numbers)
    assert len(field) == len(numbers)
    assert [n for n in range(-1, 40) if n in field] == sorted(numbers)
    assert [n for n in range(-1, 40) if (n,) in field] == sorted(numbers)
    assert [n for start, stop in field.intervals for n in range(start, stop)] == sorted(numbers)
    assert all(start < stop for start, stop in field.intervals)
    assert all(a[1] < b[0] for a, b in zip(field.intervals, field.intervals[1:], strict=False))
    assert field.box == ((min(numbers), max(numbers) + 1) if numbers else (0, 0),)


def test_on_several_axes() -> None:
    field = Field("x", (3, 4), np.array([1, 2, 5, 6, 8]))
    assert field.positions == {(0, 1), (0, 2), (1, 1), (1, 2), (2, 0)}
    assert list(field)[-1] == (2, 0)
    assert field.intervals == [(1, 3), (5, 7), (8, 9)]
    assert field.box == ((0, 3), (0, 3))
    assert 5 in field
    assert (1, 1) in field
    assert np.int64(5) in field
    absent = [(1, 3), (0, 9), (-3, 1), (1,), (1, 1, 0), (1, 1.5), 0, 99, -1, "x", None, 5.5, (1, "x")]
    assert not [position for position in absent if position in field]
    assert repr(field) == "<Field: 5 of 12 positions of x: 1–2, 5–6, 8>"


def test_nothing_and_no_axis() -> None:
    assert repr(Field("x", (4,), np.zeros(0, np.int64))) == "<Field: 0 of 4 positions of x: none>"
    whole = Field("x", (), np.array([0]))
    assert (whole.positions, whole.intervals, whole.box, len(whole)) == ({0}, [(0, 1)], (), 1)
    assert () in whole
    assert 0 in whole
    assert () not in Field("x", (), np.zeros(0, np.int64))


def test_models() -> None:
    graph = transformer(3, 40, "window", 8)
    for j in (0, 20, 21, 22, 39):
        assert reads(graph, ("output", j)).intervals == [(max(0, j - 21), j + 1)]
        assert feeds(graph, ("x", j)).intervals == [(j, min(40, j + 22))]
    graph = recurrent(1, 9)
    assert reads(graph, ("output", 4)).intervals == [(0, 5)]
    assert feeds(graph, ("x", [4, -1])).intervals == [(4, 9)]


@pytest.mark.parametrize(("layers", "window", "expected"), [(3, 8, 22), (32, 4096, 131_041)])
def test_stacks_of_windows(layers: int, window: int, expected: int) -> None:
    assert expected == layers * (window - 1) + 1
    count = expected + 31
    build, where = Builder(count), np.arange(count)
    x = where
    for _ in range(layers):
        x = build.add(
            "attention", Runs(np.arange(count + 1), x[0] + np.maximum(where - window + 1, 0), x[0] + where + 1)
        )
    graph = build.graph(one_to_one(x))
    assert reads(graph, ("output", -1)).intervals == [(31, count)]
    assert feeds(graph, ("x", 0)).intervals == [(0, expected)]


def test_selections() -> None:
    graph = transformer(1, 6)
    assert reads(graph).positions == set(range(6))
    assert reads(graph, "output.0", 0).positions == set(range(6))
    assert reads(graph, ("output", 3), ("x", [5, 2, 2])).intervals == [(2, 3)]
    assert reads(graph, ("output", [])).positions == set()
    assert reads(graph, ("output", slice(1, 2)), ("x", [])).positions == set()
    assert feeds(graph, 0, ("output", [3, 5, 3])).numbers.tolist() == [3, 5]
    assert feeds(graph, ("x", 4), "output").numbers.tolist() == [4, 5]
    assert feeds(graph, ("x", [])).positions == set()


def test_an_output_that_gathers_across_blocks_of_nodes() -> None:
    build = Builder(3)
    a = build.add("a", one_to_one(np.arange(3)))
    b = build.add("b", one_to_one(a[::-1]))
    # One run from the last node of a to the first of b, another over the edge of the inputs.
    graph = build.graph(Runs(np.array([0, 1, 2, 2]), np.array([a[2], 1]), np.array([b[0] + 1, a[0] + 1])))
    assert [reads(graph, ("output", j)).numbers.tolist() for j in range(3)] == [[2], [0, 1, 2], []]
    assert [feeds(graph, ("x", i)).numbers.tolist() for i in range(3)] == [[1], [1], [0, 1]]


def test_what_is_refused() -> None:
    graph = transformer(1, 5)
    with pytest.raises(PositionError) as caught:
        reads(graph, 4)
    assert str(caught.value) == (
        "There is no output 4. The outputs are: output. A position goes with a name, like ('output', 4)."
    )
    with pytest.raises(PositionError, match=r"The inputs are: x\. A position goes with a name, like \('x', 4\)\."):
        feeds(graph, np.int64(4))
    with pytest.raises(PositionError, match=r"^There is no input True\. The inputs are: x\.$"):
        feeds(graph, True)
    with pytest.raises(PositionError, match=r"output has positions 0 to 4; there is no position 5\."):
        reads(graph, ("output", 5))
    with pytest.raises(PositionError, match=r"There is no input 'y'\. The inputs are: x\.$"):
        reads(graph, ("output", 1), "y")
    for call in (reads, feeds):
        with pytest.raises(GraphError, match=r"A graph is what depgraph\.trace"):
            call(5, graph)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match=r"This graph has no outputs; name some when building it\."):
        reads(depgraph.from_networkx(nx.path_graph(3, create_using=nx.DiGraph), sources=[0]))
