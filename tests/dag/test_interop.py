from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from depgraph.dag.graph import DependencyGraph, Operation
from depgraph.dag.interop import from_networkx
from depgraph.errors import GraphError
from depgraph.metrics.flow.bottleneck import bottleneck
from depgraph.metrics.paths.lengths import critical_path, path_lengths, shortest_path
from depgraph.metrics.work.parallelism import parallelism
from tests.metrics.synthetic import Builder, eager_attention, one_to_one, recurrent, transformer


@st.composite
def dags(draw: st.DrawFn) -> tuple[nx.DiGraph, list[str], list[str]]:
    count = draw(st.integers(1, 12))
    names = draw(st.permutations([f"n{i}" for i in range(count)]))
    pairs = [(names[u], names[v]) for v in range(count) for u in range(v)]
    dag = nx.DiGraph()
    dag.add_nodes_from(draw(st.permutations(names)))
    dag.add_edges_from(draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else [])
    roots = [v for v in names if not dag.in_degree(v)]
    sources = draw(st.lists(st.sampled_from(roots), unique=True)) if roots else []
    targets = draw(st.lists(st.sampled_from(names), unique=True)) if names else []
    return dag, sources, targets


def assert_blocks_are_sound(graph: DependencyGraph) -> None:
    dag = graph.dag
    assert dag.blocks[0] == 0
    assert dag.blocks[-1] == dag.nodes
    assert (np.diff(dag.blocks) > 0).all()
    assert dag.inputs in dag.blocks
    assert not dag.reads.counts[: dag.inputs].any()
    assert (dag.block_of[dag.reads.starts] == dag.block_of[dag.reads.stops - 1]).all()
    assert (dag.block_of[dag.reads.starts] < dag.block_of[dag.reads.rows]).all()


@given(dags())
def test_there_and_back_changes_nothing(case: tuple[nx.DiGraph, list[str], list[str]]) -> None:
    dag, sources, targets = case
    graph = from_networkx(dag, sources, targets)
    assert_blocks_are_sound(graph)
    back = graph.to_networkx()
    assert set(back.nodes) == set(dag.nodes)
    assert set(back.edges) == set(dag.edges)
    assert graph.dag.edges == dag.number_of_edges()
    assert graph.dag.inputs == len(sources)
    for name, data in back.nodes(data=True):
        assert data["op"] == ("input" if name in sources else name)
    assert [graph.node(i).id for i in range(graph.dag.inputs)] == sources
    ends = [graph.outputs["output"].nodes.row(i).tolist() for i in range(len(targets))] if targets else []
    assert [[graph.node(n).id for n in row] for row in ends] == [[name] for name in targets]


@given(dags())
def test_edge_arrays_and_adjacency_hold_the_edges(case: tuple[nx.DiGraph, list[str], list[str]]) -> None:
    dag, sources, targets = case
    graph = from_networkx(dag, sources, targets)
    names = [graph.node(i).id for i in range(graph.dag.nodes)]
    read, reader = graph.dag.edge_arrays()
    assert {(names[u], names[v]) for u, v in zip(read, reader, strict=True)} == set(dag.edges)
    if names:
        expected = nx.to_numpy_array(dag, nodelist=names).T
        assert np.array_equal(graph.dag.adjacency().toarray(), expected)


def test_attributes_are_kept() -> None:
    dag = nx.DiGraph([("x", "y"), ("y", "z")])
    dag.nodes["y"].update(op="linear", module="encoder.0", source="model.py:3", contraction=True)
    graph = from_networkx(dag, sources=["x"], targets=["z"])
    assert graph.node(1) == ("y", "linear", (), "encoder.0", "model.py:3")
    assert graph.node(2) == ("z", "z", (), "", "")
    assert [operation.contraction for operation in graph.operations] == [True, False]
    assert graph.to_networkx().nodes["y"] == {
        "op": "linear",
        "position": (),
        "module": "encoder.0",
        "source": "model.py:3",
    }


def costly(**attributes: object) -> DependencyGraph:
    dag = nx.DiGraph([("x", "y"), ("y", "z")])
    for name, value in attributes.items():
        dag.nodes["y"][name] = dag.nodes["z"][name] = value
    return from_networkx(dag, sources=["x"], targets=["z"])


@pytest.mark.parametrize("value", [2, 2.5, np.int32(3), Fraction(1, 4), 0])
def test_costs_are_attributes(value: object) -> None:
    graph = costly(flops=value, seconds=value)
    assert graph.costs("flops").tolist() == graph.costs("seconds").tolist() == [0, value, value]
    assert [data["flops"] for _, data in graph.to_networkx().nodes(data=True)] == [0, value, value]
    assert graph.collapse().costs("seconds").tolist() == [0, value, value]
    assert "bytes" not in graph.to_networkx().nodes["y"]


def test_scalars_of_sources_count() -> None:
    dag = nx.DiGraph([("x", "y")])
    dag.nodes["y"]["scalars"] = 3
    with pytest.raises(GraphError, match="The node 'x' has no attribute 'scalars'"):
        from_networkx(dag, sources=["x"]).costs("scalars")
    dag.nodes["x"]["scalars"] = 2
    assert from_networkx(dag, sources=["x"]).costs("scalars").tolist() == [2, 3]


def test_costs_stay_as_they_were_given() -> None:
    dag = nx.DiGraph([("x", "y")])
    nx.set_node_attributes(dag, 7, "bytes")
    graph = from_networkx(dag)
    nx.set_node_attributes(dag, 8, "bytes")
    assert graph.costs("bytes").tolist() == [7, 7]


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "much", None, 1j, Fraction(10**400)])
def test_what_is_no_cost(value: object) -> None:
    graph = costly(seconds=value)
    with pytest.raises(GraphError) as caught:
        graph.costs("seconds")
    assert str(caught.value) == (
        f"The attribute 'seconds' of node 'y' is {value!r}; a weight is a finite number of at least 0."
    )


def test_costs_that_cannot_be_added() -> None:
    with pytest.raises(GraphError, match="The attributes 'flops' add up to 2⁶¹ or more"):
        costly(flops=2**60).costs("flops")
    with pytest.raises(GraphError, match="The attributes 'flops' add up to more than a float can hold"):
        costly(flops=1e308).costs("flops")
    assert costly(flops=2**59).costs("flops").tolist() == [0, 2**59, 2**59]


def test_inputs_and_outputs_have_positions_in_the_order_given() -> None:
    dag = nx.DiGraph([("a", "c"), ("b", "c"), ("c", "d")])
    graph = from_networkx(dag, sources=["b", "a"], targets=["d", "c"])
    assert list(graph.inputs) == ["input"]
    assert list(graph.outputs) == ["output"]
    assert graph.inputs[0].count == graph.outputs["output.0"].count == 2
    assert graph.node(0) == ("b", "input", (0,), "input", "")
    assert graph.node(1) == ("a", "input", (1,), "input", "")
    assert (graph.mode, graph.warnings, graph.unused_inputs, graph.unused_parameters) == ("", [], [], [])


@pytest.mark.parametrize(
    ("dag", "sources", "targets", "message"),
    [
        (
            nx.Graph([(0, 1)]),
            [],
            [],
            "from_networkx() needs a directed graph of networkx: an edge u → v says that v reads u; got an undirected "
            "graph.",
        ),
        (nx.DiGraph(), [], [], "The graph has no nodes: there is nothing to measure."),
        (nx.DiGraph([(0, 1)]), [[0]], [], "The source [0] is not a node of the graph."),
        (nx.DiGraph([(0, 1)]), [7], [], "The source 7 is not a node of the graph."),
        (nx.DiGraph([(0, 1)]), [], ["y"], "The target 'y' is not a node of the graph."),
        (nx.DiGraph([(0, 1)]), [1], [], "The source 1 reads 0; inputs read nothing."),
        (
            nx.DiGraph([("a", "b"), ("b", "a")]),
            [],
            [],
            "The graph has a cycle: 'a' → 'b' → 'a'. A dependency graph has none.",
        ),
        (
            nx.DiGraph([("b", "a"), ("a", "a")]),
            [],
            [],
            "The node 'a' reads itself. A dependency graph has no such edge.",
        ),
        (
            nx.DiGraph([*nx.utils.pairwise(range(100_000), cyclic=True), (0, "end")]),
            [],
            [],
            "The graph has a cycle: 0 → 1 → 2 → 3 → … 99,992 more … → 99996 → 99997 → 99998 → 99999 → 0. A dependency "
            "graph has none.",
        ),
        (
            nx.MultiDiGraph([(0, 1), (1, "b"), (1, "b")]),
            [],
            [],
            "The graph has 2 edges from 1 to 'b'; a node reads another one once. Leave out what is there twice, as "
            "networkx.DiGraph(graph) does.",
        ),
        (
            nx.MultiDiGraph([(0, 1), (1, 0)]),
            [],
            [],
            "The graph has a cycle: 0 → 1 → 0. A dependency graph has none.",
        ),
    ],
)
def test_what_is_no_dependency_graph(dag: nx.Graph, sources: list[object], targets: list[object], message: str) -> None:
    with pytest.raises(GraphError) as caught:
        from_networkx(dag, sources, targets)
    assert str(caught.value) == message


class Opaque:
    """Can be told apart, and not ordered; shown as None is."""

    def __repr__(self) -> str:
        return "None"


def test_names_that_cannot_be_ordered() -> None:
    first, second = Opaque(), Opaque()
    names = [3, "3", (3, "a"), first, 2.5, frozenset([1]), second, b"x", ("a", (None, 4))]
    dag = nx.DiGraph(nx.utils.pairwise(names))
    dag.add_edge(first, b"x")
    graphs = [from_networkx(dag, [3], [second, ("a", (None, 4))]) for _ in range(2)]
    for graph in graphs:
        assert [graph.node(n).id for n in range(graph.dag.nodes)] == names
        assert path_lengths(graph).tolist() == [[6, 5]]
        assert [node.id for node in critical_path(graph).nodes] == names[1:]
        assert set(graph.to_networkx().edges) == set(dag.edges)


def test_a_multigraph_without_parallel_edges() -> None:
    dag = nx.MultiDiGraph([("x", "a"), ("a", "b"), ("x", "b")])
    assert set(from_networkx(dag, ["x"]).to_networkx().edges) == set(dag.edges())


def test_inputs_alone() -> None:
    dag = nx.DiGraph()
    dag.add_nodes_from("ab")
    graph = from_networkx(dag, ["a", "b"], ["b"])
    assert path_lengths(graph).tolist() == [[-1], [0]]
    assert critical_path(graph) == (0, [])
    assert shortest_path(graph, ("input", 0), "output") == (-1, [])
    assert bottleneck(graph) == (1, [("b", "input", (1,), "input", "")])
    assert bottleneck(graph, ("input", 0)) == (0, [])
    found = parallelism(graph)
    assert (found.work, found.span, found.average, found.width, found.level_widths) == (0, 0, 0.0, 0, [])


def groups_of(graph: DependencyGraph) -> dict[object, object]:
    """Return, for each node, the input or the operation it belongs to."""
    groups: dict[object, object] = {}
    for name, terminal in graph.inputs.items():
        groups |= dict.fromkeys(terminal.nodes.starts.tolist(), ("input", name))
    for number, operation in enumerate(graph.operations):
        groups |= dict.fromkeys(range(operation.start, operation.stop), ("operation", number))
    return groups


@pytest.mark.parametrize(
    "graph", [transformer(2, 5), transformer(1, 4, "full"), recurrent(2, 4, both_ways=True), eager_attention(1, 3)]
)
def test_collapse_draws_the_nodes_of_an_operation_together(graph: DependencyGraph) -> None:
    groups = groups_of(graph)
    small = graph.collapse("operation")
    assert_blocks_are_sound(small)
    order = list(dict.fromkeys(groups[n] for n in range(graph.dag.nodes)))
    read, reader = graph.dag.edge_arrays()
    expected = {(groups[u], groups[v]) for u, v in zip(read.tolist(), reader.tolist(), strict=True)}
    found = {(order[u], order[v]) for u, v in small.to_networkx().edges}
    assert found == {(u, v) for u, v in expected if u != v}
    assert [o.name for o in small.operations] == [o.name for o in graph.operations]
    assert (small.dag.inputs, small.inputs["x"].count, small.inputs[0].positions) == (1, 1, ())
    gathered = {order[n] for n in small.outputs["output"].nodes.row(0)}
    assert gathered == {groups[n] for n in graph.outputs["output"].nodes.elements()[1].tolist()}


@given(dags())
def test_collapse_changes_nothing_but_the_inputs_where_every_node_is_an_operation(
    case: tuple[nx.DiGraph, list[str], list[str]],
) -> None:
    dag, sources, targets = case
    graph = from_networkx(dag, sources, targets)
    small = graph.collapse()
    assert_blocks_are_sound(small)
    names = [small.node(i).op for i in range(small.dag.nodes)]
    found = {(names[u], names[v]) for u, v in small.to_networkx().edges}
    assert found == {("input" if u in sources else u, v) for u, v in dag.edges}
    assert names == ["input"] * bool(sources) + [graph.node(i).op for i in range(len(sources), len(dag))]
    if targets:
        gathered = {names[n] for n in small.outputs["output"].nodes.row(0)}
        assert gathered == {"input" if name in sources else name for name in targets}


def test_collapse_leaves_out_operations_that_became_no_nodes() -> None:
    build = Builder(2)
    first = build.add("one", one_to_one(np.arange(2)))
    build.operations.append(Operation("none", "", "", False, build.nodes, build.nodes))
    graph = build.graph(one_to_one(build.add("two", one_to_one(first))))
    graph.operations.append(Operation("none", "", "", False, build.nodes, build.nodes))
    small = graph.collapse()
    assert [operation.name for operation in small.operations] == ["one", "two"]
    assert [small.node(i).op for i in range(small.dag.nodes)] == ["input", "one", "two"]
    assert set(small.to_networkx().edges) == {(0, 1), (1, 2)}


def test_collapse_knows_one_granularity() -> None:
    with pytest.raises(GraphError, match=r"collapse\(\) takes 'operation'; got 'module'\."):
        transformer(1, 2).collapse("module")
