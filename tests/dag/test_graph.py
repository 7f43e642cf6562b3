from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest

from depgraph.dag.dag import Dag
from depgraph.dag.graph import DependencyGraph, Node, Operation, Terminal, Terminals
from depgraph.dag.interop import from_networkx
from depgraph.dag.runs import Runs
from depgraph.errors import DepgraphError, GraphError, PositionError


def terminal(name: str, shape: tuple[int, ...], positions: tuple[int, ...], first: int = 0) -> Terminal:
    count = int(np.prod([shape[axis] for axis in positions], dtype=int))
    return Terminal(name, shape, positions, Runs.singletons(np.arange(first, first + count)))


IMAGE = terminal("image", (2, 3, 4, 5), (2, 3))
TOKENS = terminal("tokens", (1, 6, 8), (1,), first=20)
WHOLE = terminal("whole", (7,), (), first=26)


def test_positions_are_row_major_over_the_axes() -> None:
    assert IMAGE.grid == (4, 5)
    assert IMAGE.count == 20
    numbers = [IMAGE.index(where) for where in itertools.product(range(4), range(5))]
    assert numbers == list(range(20))
    assert [IMAGE.index(n) for n in range(20)] == numbers
    assert IMAGE.index([-1, -5]) == 15
    assert IMAGE.index(np.array([1, 2])) == 7


def test_numbers_count_from_the_end_as_well() -> None:
    assert TOKENS.index(-1) == TOKENS.index(np.int64(5)) == TOKENS.index((5,)) == TOKENS.index((-1,)) == 5
    assert WHOLE.index(0) == WHOLE.index(-1) == WHOLE.index(()) == 0


@pytest.mark.parametrize(
    ("where", "position", "message"),
    [
        (TOKENS, 6, "tokens has positions 0 to 5; there is no position 6."),
        (TOKENS, -7, "tokens has positions 0 to 5; there is no position -7."),
        (WHOLE, 1, "whole has positions 0 to 0; there is no position 1."),
        (IMAGE, (4, 0), "image has positions of shape (4, 5); there is no position (4, 0)."),
        (IMAGE, (0, -6), "image has positions of shape (4, 5); there is no position (0, -6)."),
        (
            IMAGE,
            (1, 2, 3),
            "A position of image is 2 number(s), one for each of the axes (2, 3); got (1, 2, 3).",
        ),
        *(
            (
                TOKENS,
                wrong,
                "A position of tokens is a whole number, or a tuple with one for each of the axes (1,); got "
                f"{wrong!r}.",
            )
            for wrong in ("1", 1.0, None, True, (0.5,), ("1",), {1: 2}, np.True_)
        ),
    ],
)
def test_positions_that_are_not_there(where: Terminal, position: object, message: str) -> None:
    with pytest.raises(PositionError) as caught:
        where.index(position)  # type: ignore[arg-type]
    assert str(caught.value) == message
    assert isinstance(caught.value, DepgraphError)
    assert isinstance(caught.value, LookupError)


def test_terminals_answer_to_names_and_aliases() -> None:
    inputs = Terminals("input", [WHOLE, IMAGE], {0: "whole", 1: "image", "batch.1": "image"})
    assert list(inputs) == ["whole", "image"]
    assert len(inputs) == 2
    assert inputs["image"] is inputs[1] is inputs["batch.1"] is IMAGE
    assert "image" in inputs
    assert 1 in inputs
    assert "batch.2" not in inputs
    assert repr(inputs).startswith("{'whole': Terminal(name='whole', shape=(7,), positions=()), 'image': ")
    with pytest.raises(PositionError, match=r"There is no input 'x'. The inputs are: whole, image\."):
        inputs["x"]
    with pytest.raises(PositionError, match=r"There is no output 2. The outputs are: none\."):
        Terminals("output", [])[2]


def test_default_terminals() -> None:
    assert Terminals("input", [WHOLE, IMAGE, TOKENS]).default() is IMAGE
    assert Terminals("input", [WHOLE]).default() is WHOLE
    assert Terminals("output", [WHOLE, IMAGE]).default() is WHOLE
    with pytest.raises(GraphError, match=r"This graph has no outputs; name some when building it\."):
        Terminals("output", []).default()


def two_inputs() -> DependencyGraph:
    """Two inputs (4 × 5 and 6 positions, one that is not tracked), an operation on a grid and one off it."""
    reads = Runs(np.arange(33).clip(27) - 27, np.array([0, 20, 26, 27, 27]), np.array([20, 26, 27, 29, 30]))
    grid = Operation("linear", "head", "model.py:1", True, 27, 29, grid=(1, 2))
    none = Operation("nothing", "", "", False, 29, 29)
    scattered = Operation("gather", "", "", False, 29, 31, coordinates=np.array([[3, 1], [0, 2]]))
    alone = Operation("sum", "", "", False, 31, 32)
    dag = Dag(27, reads, np.array([0, 20, 26, 27, 29, 31, 32]))
    return DependencyGraph(
        dag, [grid, none, scattered, alone], Terminals("input", [IMAGE, TOKENS, WHOLE]), Terminals("output", [])
    )


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, Node(0, "input", (0, 0), "image", "")),
        (19, Node(19, "input", (3, 4), "image", "")),
        (21, Node(21, "input", (1,), "tokens", "")),
        (26, Node(26, "input", (), "whole", "")),
        (28, Node(28, "linear", (0, 1), "head", "model.py:1")),
        (29, Node(29, "gather", (3, 1), "", "")),
        (30, Node(30, "gather", (0, 2), "", "")),
        (31, Node(31, "sum", (), "", "")),
    ],
)
def test_what_is_known_of_a_node(number: int, expected: Node) -> None:
    graph = two_inputs()
    assert graph.node(number) == expected
    operation = graph.operation_of(number)
    assert (operation.name if operation else "input") == expected.op


def test_collapse_of_several_inputs() -> None:
    small = two_inputs().collapse()
    assert [small.node(n)[1:4:2] for n in range(small.dag.nodes)] == [
        ("input", "image"),
        ("input", "tokens"),
        ("input", "whole"),
        ("linear", "head"),
        ("gather", ""),
        ("sum", ""),
    ]
    assert sorted(small.to_networkx().edges) == [(0, 3), (1, 3), (2, 4), (3, 4), (3, 5), (4, 5)]
    assert [small.inputs[name].index(0) for name in small.inputs] == [0, 0, 0]


def test_unused_parameters_are_looked_for_once() -> None:
    calls = []
    graph = two_inputs()
    graph.find_unused_parameters = lambda: calls.append(1) or ["bias"]  # type: ignore[func-returns-value]
    assert graph.unused_parameters == graph.unused_parameters == ["bias"]
    assert calls == [1]


def test_figures_of_a_dag() -> None:
    dag = two_inputs().dag
    assert (dag.nodes, dag.inputs, dag.edges, dag.runs) == (32, 27, 32, 5)
    assert dag.block_of[[0, 19, 20, 26, 27, 31]].tolist() == [0, 0, 1, 2, 3, 5]
    empty = Dag(0, Runs.empty(0), np.array([0]))
    assert (empty.nodes, empty.edges, empty.runs, empty.blocks.tolist()) == (0, 0, 0, [0])


def test_a_graph_is_shown_in_one_line() -> None:
    graph = from_networkx(nx.path_graph(1200, create_using=nx.DiGraph), [0], [1199])
    assert repr(graph) == (
        "<DependencyGraph: 1,199 operations, 1,200 nodes, 1,199 edges; inputs input (1); outputs output (1)>"
    )
    many = Terminals("input", [terminal(name, (3,), (0,)) for name in "abcdef"])
    empty = DependencyGraph(Dag(0, Runs.singletons(np.arange(0)), np.array([0])), [], many, Terminals("output", []))
    assert repr(empty).endswith("; inputs a (3), b (3), c (3), d (3) and 2 more; outputs none>")


def test_operations_show_no_arrays() -> None:
    operation = Operation("add", "", "", False, 0, 900, coordinates=np.zeros((900, 2), np.int64), labels=range(900))
    assert len(repr(operation)) < 120


@pytest.mark.parametrize("number", [-1, 4, 1.0, "a", None])
def test_nodes_that_are_not_there(number: object) -> None:
    graph = from_networkx(nx.path_graph(4, create_using=nx.DiGraph))
    with pytest.raises(GraphError, match=f"The graph has nodes 0 to 3; there is no node {number!r}."):
        graph.node(number)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match=f"The graph has nodes 0 to 3; there is no node {number!r}."):
        graph.operation_of(number)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", [["a"], {"a": 1}, 1.5, True, None])
def test_keys_of_other_types(key: object) -> None:
    terminals = Terminals("input", [TOKENS, WHOLE], {0: "tokens", 1: "whole"})
    with pytest.raises(PositionError, match=r"There is no input .* The inputs are: tokens, whole\."):
        terminals[key]  # type: ignore[index]


@pytest.mark.parametrize(
    ("dag", "options", "message"),
    [
        ("a graph", {}, "from_networkx\\(\\) needs a directed graph"),
        (nx.DiGraph([("a", "b")]), {"sources": "a"}, "sources is a list of nodes of the graph; got 'a'."),
        (nx.DiGraph([("a", "b")]), {"targets": 5}, "targets is a list of nodes of the graph; got 5."),
    ],
)
def test_what_is_no_graph_of_networkx(dag: object, options: dict[str, object], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        from_networkx(dag, **options)  # type: ignore[arg-type]
