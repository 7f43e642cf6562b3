from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import depgraph
from depgraph.dag.graph import DependencyGraph, Node
from depgraph.errors import GraphError, PositionError
from depgraph.metrics.flow.bottleneck import Cut, bottleneck, state
from tests.metrics.strategies import as_networkx, graphs
from tests.metrics.synthetic import eager_attention, recurrent, transformer


def expected_size(graph: DependencyGraph, sources: list[int], targets: list[int]) -> int:
    """Return the maximum flow through the graph with every vertex split in two."""
    network = nx.DiGraph()
    for v in (dag := as_networkx(graph)):
        network.add_edge((v, "in"), (v, "out"), capacity=1)
    for u, v in dag.edges:
        network.add_edge((u, "out"), (v, "in"))
    for i in sources:
        network.add_edge("source", (("x", i), "in"))
    for j in targets:
        network.add_edge((("y", j), "out"), "sink")
    if "source" not in network or "sink" not in network:
        return 0
    return nx.maximum_flow_value(network, "source", "sink")


def vertices_of(cut: Cut) -> set[object]:
    return {("y", node.position[0]) if node.op == "output" else node.id for node in cut.nodes}


def assert_separates(graph: DependencyGraph, cut: Cut, sources: list[int], targets: list[int]) -> None:
    assert len(cut.nodes) == cut.size
    dag = as_networkx(graph)
    assert len(vertices_of(cut)) == cut.size
    dag.remove_nodes_from(vertices_of(cut))
    for i in sources:
        reached = nx.descendants(dag, ("x", i))
        assert not reached & {("y", j) for j in targets}


@given(graphs(), st.data())
def test_size_is_the_maximum_flow_and_the_nodes_separate(graph: DependencyGraph, data: st.DataObject) -> None:
    inputs, outputs = graph.inputs["x"].count, graph.outputs["output"].count
    some = st.booleans()
    sources = data.draw(st.lists(st.integers(0, inputs - 1), unique=True)) if data.draw(some) else list(range(inputs))
    targets = data.draw(st.lists(st.integers(0, outputs - 1), unique=True)) if data.draw(some) else list(range(outputs))
    cut = bottleneck(graph, ("x", sources), ("output", targets))
    assert cut.size == expected_size(graph, sources, targets)
    assert_separates(graph, cut, sources, targets)


@given(graphs(blocks=4), st.data())
@settings(max_examples=40)
def test_state_is_the_bottleneck_between_past_and_future(graph: DependencyGraph, data: st.DataObject) -> None:
    inputs, outputs = graph.inputs["x"].count, graph.outputs["output"].count
    t = data.draw(st.integers(0, min(inputs, outputs)))
    cut = state(graph, t)
    past, future = list(range(t)), list(range(t, outputs))
    assert cut.size == expected_size(graph, past, future)
    assert_separates(graph, cut, past, future)


@pytest.mark.parametrize("tokens", [1, 8, 21, 150])
@pytest.mark.parametrize("attention", ["causal", "full", "window", "centred"])
def test_attention_is_as_wide_as_its_input(attention: str, tokens: int) -> None:
    graph = transformer(3, tokens, attention, window=3)
    cut = bottleneck(graph)
    assert cut.size == len(cut.nodes) == tokens


@pytest.mark.parametrize("tokens", [8, 21, 150])
def test_memory_of_causal_attention_grows_with_what_it_has_read(tokens: int) -> None:
    graph = transformer(2, tokens)
    for t in (0, 1, 3, tokens // 2, tokens - 1, tokens):
        assert state(graph, t).size == min(t, tokens - t)


@pytest.mark.parametrize("steps", [3, 40])
@pytest.mark.parametrize("layers", [1, 3])
def test_a_recurrent_layer_carries_one_vector(layers: int, steps: int) -> None:
    graph = recurrent(layers, steps)
    for t in (1, steps // 2, steps - 1):
        assert state(graph, t).size == min(layers, t, steps - t)
    assert bottleneck(graph).size == steps


def test_all_through_the_scores() -> None:
    graph = eager_attention(2, 12)
    assert bottleneck(graph).size == 12
    assert bottleneck(graph, ("x", [1, 2, 3]), ("output", [0, 5])).size == 2


def test_a_fixed_vector_between_encoder_and_decoder() -> None:
    dag = nx.DiGraph()
    for layer in range(2):
        for t in range(5):
            dag.add_edge(("x", t) if not layer else ("h", layer - 1, t), ("h", layer, t))
            dag.add_edge(("s", layer, t), ("y", t) if layer else ("s", 1, t))
            if t:
                dag.add_edge(("h", layer, t - 1), ("h", layer, t))
                dag.add_edge(("s", layer, t - 1), ("s", layer, t))
        dag.add_edge(("h", layer, 4), ("s", layer, 0))
    inputs, outputs = [("x", t) for t in range(5)], [("y", t) for t in range(5)]
    cut = bottleneck(depgraph.from_networkx(dag, inputs, outputs))
    assert cut.size == 2
    dag.remove_nodes_from(node.id for node in cut.nodes)
    assert not any(nx.has_path(dag, x, y) for x in inputs if x in dag for y in outputs if y in dag)


def test_an_output_that_gathers_nodes_may_be_the_narrowest_place() -> None:
    graph = recurrent(1, 4, both_ways=True)
    ends = graph.outputs["output"]
    cut = bottleneck(graph, target=("output", [1]))
    assert ends.nodes.counts[1] == 2
    assert cut == (1, [Node(("output", 1), "output", (1,), "output", "")])


def test_an_input_may_be_the_narrowest_place() -> None:
    cut = bottleneck(transformer(1, 4, "full"), ("x", [2]))
    assert cut == (1, [Node(2, "input", (2,), "x", "")])
    graph = depgraph.from_networkx(nx.empty_graph(3, create_using=nx.DiGraph), [0, 1, 2], [2, 1])
    assert bottleneck(graph).size == 2
    assert sorted(node.id for node in bottleneck(graph).nodes) == [1, 2]


def test_where_there_is_no_path() -> None:
    graph = depgraph.from_networkx(nx.DiGraph([("a", "b"), ("c", "d")]), ["a", "c"], ["b"])
    assert bottleneck(graph, ("input", 1)) == (0, [])
    assert bottleneck(graph, ("input", [])) == (0, [])
    assert bottleneck(graph, target=("output", [])) == (0, [])


def test_the_operation_graph() -> None:
    assert bottleneck(transformer(2, 9).collapse()).size == 1


def test_state_lies_between_positions() -> None:
    for t in (-1, 5):
        with pytest.raises(PositionError) as caught:
            state(transformer(1, 4), t)
        assert str(caught.value) == (f"t goes from 0 to 4: x has 4 positions, output has 4; got {t}.")


def test_graphs_without_inputs_or_outputs() -> None:
    chain = nx.path_graph(3, create_using=nx.DiGraph)
    with pytest.raises(GraphError, match="This graph has no inputs"):
        bottleneck(depgraph.from_networkx(chain, targets=[2]))
    with pytest.raises(GraphError, match="This graph has no outputs"):
        bottleneck(depgraph.from_networkx(chain, sources=[0]))


def test_long_runs_share_a_tree() -> None:
    # Windows of 100 over 400 nodes: an edge for each of them would be 40,000.
    from depgraph.metrics.flow.network import run_arcs

    dag = transformer(1, 400, "window", window=100).dag
    arcs = run_arcs(dag)
    assert dag.edges > 36_000
    assert len(arcs.tail) < dag.runs + 2 * 400 * 8 + 2 * dag.nodes
    assert arcs.vertices <= 2 * dag.nodes + 400
    network = nx.DiGraph(zip(arcs.tail.tolist(), arcs.head.tolist(), strict=True))
    reader = int(np.flatnonzero(dag.reads.sizes == 100)[0])
    inner = nx.ancestors(network.subgraph([*range(dag.nodes, arcs.vertices), reader]), reader)
    read = {v for u in [reader, *inner] for v in network.predecessors(u) if v < dag.nodes}
    assert read == set(dag.reads.row(reader).tolist())
