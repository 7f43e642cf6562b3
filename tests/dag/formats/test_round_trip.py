"""What is saved and loaded again is the same graph to every metric."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import depgraph
from depgraph.dag.formats.node_link import node_link
from depgraph.dag.formats.reading import from_node_link
from depgraph.dag.graph import DependencyGraph, Terminals
from tests.gallery.files import traced
from tests.metrics.strategies import graphs
from tests.metrics.synthetic import eager_attention, recurrent, transformer


def measured(graph: DependencyGraph) -> dict[str, Any]:
    """Return what every metric says of a graph, nodes included."""
    ends = [(s, t) for s in graph.inputs for t in graph.outputs]
    lengths = {pair: depgraph.path_lengths(graph, *pair) for pair in ends}
    reached = {pair: np.argwhere(found >= 0)[:1].tolist() for pair, found in lengths.items()}
    return {
        "critical": [depgraph.critical_path(graph, weight) for weight in ("ops", "contractions")],
        "parallelism": [depgraph.parallelism(graph, weight) for weight in ("ops", "contractions")],
        "lengths": {pair: (found.shape, found.tolist()) for pair, found in lengths.items()},
        "shortest": [depgraph.shortest_path(graph, (s, i), (t, j)) for (s, t), at in reached.items() for i, j in at],
        "bottleneck": [depgraph.bottleneck(graph, *pair) for pair in ends],
    }


def assert_same(graph: DependencyGraph, again: DependencyGraph) -> None:
    for before, after in zip(graph.dag.edge_arrays(), again.dag.edge_arrays(), strict=True):
        assert np.array_equal(before, after)
    assert np.array_equal(graph.dag.blocks, again.dag.blocks)
    assert graph.dag.inputs == again.dag.inputs
    assert [graph.node(n) for n in range(graph.dag.nodes)] == [again.node(n) for n in range(graph.dag.nodes)]
    assert [(o.name, o.contraction, o.start, o.stop, o.grid) for o in graph.operations] == [
        (o.name, o.contraction, o.start, o.stop, o.grid) for o in again.operations
    ]
    assert (graph.warnings, graph.mode, graph.unused_inputs, graph.unused_parameters) == (
        again.warnings,
        again.mode,
        again.unused_inputs,
        again.unused_parameters,
    )
    assert (graph.known_inputs, graph.user_rules) == (again.known_inputs, again.user_rules)
    for before, after in ((graph.inputs, again.inputs), (graph.outputs, again.outputs)):
        assert isinstance(before, Terminals)
        assert isinstance(after, Terminals)
        assert before.aliases == after.aliases
        assert [(t.name, t.shape, t.positions) for t in before.values()] == [
            (t.name, t.shape, t.positions) for t in after.values()
        ]


def assert_survives(graph: DependencyGraph) -> None:
    """Check that both graphs, and the operation graph of what was loaded, are what they were."""
    again = from_node_link(node_link(graph))
    assert_same(graph, again)
    small = graph.collapse()
    assert_same(small, from_node_link(node_link(small)))
    for before, after in ((graph, again), (small, again.collapse())):
        assert measured(before) == measured(after)


@settings(max_examples=50)
@given(graphs())
def test_random_graphs(graph: DependencyGraph) -> None:
    assert_survives(graph)


@pytest.mark.parametrize("graph", [transformer(2, 5), recurrent(2, 4, both_ways=True), eager_attention(1, 3)])
def test_shaped_like_models(graph: DependencyGraph) -> None:
    assert_survives(graph)


@pytest.mark.parametrize(("name", "n"), [("lstm", 4), ("causal_attention", 4), ("unet", 8), ("seq2seq", 3)])
def test_models(name: str, n: int) -> None:
    assert_survives(traced(name, n))


def test_collapse_after_loading_is_collapse_before() -> None:
    graph = traced("lstm", 4)
    assert_same(graph.collapse(), from_node_link(node_link(graph)).collapse())


NAMES = st.recursive(
    st.text(max_size=3) | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans(),
    lambda names: st.lists(names, max_size=2).map(tuple),
    max_leaves=3,
)


@given(st.lists(NAMES, min_size=2, max_size=6, unique=True), st.data())
def test_names_of_all_kinds(names: list[Any], data: st.DataObject) -> None:
    pairs = [(u, v) for i, v in enumerate(names) for u in names[:i]]
    dag = nx.DiGraph(data.draw(st.lists(st.sampled_from(pairs), unique=True)))
    dag.add_nodes_from(names)
    graph = depgraph.from_networkx(dag, names[:1], names[-2:])
    again = from_node_link(node_link(graph))
    assert_same(graph, again)
    assert set(again.to_networkx().edges) == set(dag.edges)


def test_numbers_of_numpy_are_numbers() -> None:
    dag = nx.DiGraph([(np.int64(1), np.float32(0.5)), (np.float32(0.5), np.str_("a"))])
    again = from_node_link(node_link(depgraph.from_networkx(dag)))
    assert list(again.to_networkx()) == [1, 0.5, "a"]


@pytest.mark.parametrize("name", [None, float("nan"), float("inf"), frozenset([1]), (1, object)])
def test_names_that_json_does_not_have(name: object) -> None:
    dag = nx.DiGraph([("x", name if name is not None else b"x")])
    with pytest.raises(depgraph.GraphError, match=r"is a .*, and the name of a node in JSON is"):
        node_link(depgraph.from_networkx(dag))


def test_networkx_reads_it(tmp_path: Path) -> None:
    graph = traced("lstm", 3)
    depgraph.save(graph, tmp_path / "graph.json")
    data = json.loads((tmp_path / "graph.json").read_text())
    found = nx.node_link_graph(data, edges="edges")
    expected = graph.to_networkx()
    assert set(found.edges) == set(expected.edges)
    costs = {name: graph.costs(name).tolist() for name in ("bytes", "scalars")}
    for number, (node, attributes) in enumerate(expected.nodes.items()):
        more = {name: cost[number] for name, cost in costs.items()}
        assert found.nodes[node] == attributes | more | {"position": list(attributes["position"])}


def test_what_nodes_cost_is_kept(tmp_path: Path) -> None:
    graph = traced("lstm", 5)
    depgraph.save(graph, tmp_path / "graph.json")
    again = depgraph.load(tmp_path / "graph.json")
    for name in ("flops", "bytes", "scalars"):
        assert again.costs(name).tolist() == graph.costs(name).tolist()
    assert depgraph.state(again, 2, weight="scalars").size == depgraph.state(graph, 2, weight="scalars").size > 1
    with pytest.raises(depgraph.GraphError, match="no attribute 'seconds'"):
        again.costs("seconds")


def test_a_graph_taken_up_by_networkx_and_given_back() -> None:
    graph = traced("lstm", 3)
    data = json.loads(node_link(graph))
    data = nx.node_link_data(nx.node_link_graph(data, edges="edges"), edges="edges")
    assert_same(graph, from_node_link(json.dumps(data).encode()))
