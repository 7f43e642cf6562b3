from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import depgraph
from depgraph.dag.graph import DependencyGraph, Node
from depgraph.dag.runs import union
from depgraph.errors import GraphError, PositionError
from depgraph.metrics.flow.bottleneck import Cut, bottleneck, state
from tests.metrics.strategies import as_networkx, graphs
from tests.metrics.synthetic import Builder, eager_attention, one_to_one, recurrent, transformer


def expected_size(
    graph: DependencyGraph, sources: list[int], targets: list[int], weights: list[int] | None = None
) -> int:
    """Return the maximum flow through the graph with every vertex split in two; only nodes have weights."""
    network = nx.DiGraph()
    for v in (dag := as_networkx(graph)):
        network.add_edge((v, "in"), (v, "out"))
        if weights is None or isinstance(v, int):
            network[v, "in"][v, "out"]["capacity"] = 1 if weights is None else weights[v]
    for u, v in dag.edges:
        network.add_edge((u, "out"), (v, "in"))
    for i in sources:
        network.add_edge("source", (("x", i), "in"))
    for j in targets:
        network.add_edge((("y", j), "out"), "sink")
    if "source" not in network or "sink" not in network:
        return 0
    return nx.maximum_flow_value(network, "source", "sink")


def separating_sets(
    graph: DependencyGraph, sources: list[int], targets: list[int], weights: list[int] | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the summed weight, and the number of nodes of weight 0, of every set of vertices that separates."""
    dag = as_networkx(graph)
    order = [v for v in nx.topological_sort(dag) if v not in {("x", i) for i in range(graph.inputs["x"].count)}]
    place = {v: k for k, v in enumerate(order)}
    sets = (np.arange(2 ** len(order))[:, None] >> np.arange(len(order))) & 1
    reached = np.zeros(sets.shape, bool)
    for v in order:
        for u in dag.predecessors(v):
            reached[:, place[v]] |= u[1] in sources if isinstance(u, tuple) else reached[:, place[u]]
        reached[:, place[v]] &= sets[:, place[v]] == 0
    separates = ~reached[:, [place["y", j] for j in targets]].any(1)

    def weigh(v: object) -> int:
        return 1 if weights is None else weights[v] if isinstance(v, int) else sum(weights) + 1

    weighed = np.array([weigh(v) for v in order])
    return (sets @ weighed)[separates], (sets @ (weighed == 0))[separates]


def some_of(count: int) -> st.SearchStrategy[list[int]]:
    """Return a strategy for some numbers below the count, often all of them."""
    return st.just(list(range(count))) | st.lists(st.integers(0, count - 1), unique=True)


def vertices_of(cut: Cut) -> set[object]:
    return {("y", node.position[0]) if node.op == "output" else node.id for node in cut.nodes}


def assert_separates(
    graph: DependencyGraph, cut: Cut, sources: list[int], targets: list[int], weights: list[int] | None = None
) -> None:
    assert len(vertices_of(cut)) == len(cut.nodes)
    assert cut.size == sum(1 if weights is None else weights[node.id] for node in cut.nodes)
    dag = as_networkx(graph)
    dag.remove_nodes_from(vertices_of(cut))
    for i in sources:
        reached = nx.descendants(dag, ("x", i))
        assert not reached & {("y", j) for j in targets}


@given(graphs(), st.data())
def test_size_is_the_maximum_flow_and_the_nodes_separate(graph: DependencyGraph, data: st.DataObject) -> None:
    inputs, outputs = graph.inputs["x"].count, graph.outputs["output"].count
    sources, targets = data.draw(some_of(inputs)), data.draw(some_of(outputs))
    cut = bottleneck(graph, ("x", sources), ("output", targets))
    assert cut.size == expected_size(graph, sources, targets)
    assert_separates(graph, cut, sources, targets)


@given(graphs(), st.sampled_from([1, 4, 10**6, 2**40]), st.data())
def test_weights_that_nodes_let_through(graph: DependencyGraph, most: int, data: st.DataObject) -> None:
    nodes, inputs, outputs = graph.dag.nodes, graph.inputs["x"].count, graph.outputs["output"].count
    weights = data.draw(st.lists(st.integers(0, most), min_size=nodes, max_size=nodes))
    sources, targets = data.draw(some_of(inputs)), data.draw(some_of(outputs))
    cut = bottleneck(graph, ("x", sources), ("output", targets), lambda node: weights[node.id])
    assert cut.size == expected_size(graph, sources, targets, weights)
    assert_separates(graph, cut, sources, targets, weights)


@given(graphs(blocks=3, width=3), st.booleans(), st.data())
@settings(max_examples=60)
def test_no_set_of_nodes_is_smaller(graph: DependencyGraph, weighted: bool, data: st.DataObject) -> None:
    nodes, inputs, outputs = graph.dag.nodes, graph.inputs["x"].count, graph.outputs["output"].count
    weights = data.draw(st.lists(st.integers(0, 4), min_size=nodes, max_size=nodes)) if weighted else None
    sources, targets = data.draw(some_of(inputs)), data.draw(some_of(outputs))
    weight = "ops" if weights is None else lambda node: weights[node.id]
    cut = bottleneck(graph, ("x", sources), ("output", targets), weight)
    sizes, counts = separating_sets(graph, sources, targets, weights)
    assert cut.size == sizes.min()
    assert_separates(graph, cut, sources, targets, weights)
    empty = sum(weights is not None and not weights[node.id] for node in cut.nodes)
    assert empty == counts[sizes == sizes.min()].min()


@given(st.integers(1, 12), st.booleans(), st.data())
@settings(max_examples=60)
def test_no_set_of_nodes_of_any_graph_is_smaller(size: int, weighted: bool, data: st.DataObject) -> None:
    dag = nx.empty_graph(size, create_using=nx.DiGraph)
    pairs = [(u, v) for v in range(size) for u in range(v)]
    dag.add_edges_from(data.draw(st.lists(st.sampled_from(pairs), max_size=3 * size)) if pairs else [])
    roots = [v for v in dag if not dag.in_degree(v)]
    sources = data.draw(st.lists(st.sampled_from(roots), min_size=1, unique=True))
    targets = data.draw(st.lists(st.sampled_from(range(size)), min_size=1, unique=True))
    weights = data.draw(st.lists(st.integers(0 if weighted else 1, 5 if weighted else 1), min_size=size, max_size=size))
    graph = depgraph.from_networkx(dag, sources, targets)
    cut = bottleneck(graph, weight=lambda node: weights[node.id])
    sets = (np.arange(2**size)[:, None] >> np.arange(size)) & 1
    reached = np.zeros((2**size, size), bool)
    for v in nx.topological_sort(dag):
        reached[:, v] = v in sources
        for u in dag.predecessors(v):
            reached[:, v] |= reached[:, u]
        reached[:, v] &= sets[:, v] == 0
    separates = ~reached[:, targets].any(1)
    assert cut.size == (sets @ weights)[separates].min()
    number = sum(1 << node.id for node in cut.nodes)
    assert separates[number]
    assert (sets @ weights)[number] == cut.size
    if not weighted:
        assert bottleneck(graph).size == cut.size


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
    for t in (-1, 5, True):
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


@pytest.mark.parametrize("seed", [2, 3])
def test_flows_beyond_32_bits_through_a_model(seed: int) -> None:
    graph = transformer(4, 64)
    everything = list(range(64))
    weights = np.random.default_rng(seed).integers(1, 2**33, graph.dag.nodes).tolist()
    cut = bottleneck(graph, weight=lambda node: weights[node.id])
    assert cut.size == expected_size(graph, everything, everything, weights)
    assert_separates(graph, cut, everything, everything, weights)


def test_weights_of_operations() -> None:
    # A model reads ids, one number each, and has 8 or 24 numbers at each position inside.
    graph = transformer(2, 12)
    widths = {"input": 1, "mul": 24, "pow": 24, "tanh": 24}

    def width(node: Node) -> int:
        return widths.get(node.op, 8)

    assert bottleneck(graph, weight=width).size == 12
    for j in range(12):
        cut = bottleneck(graph, target=("output", j), weight=width)
        assert cut.size == min(j + 1, 8)
        assert j == 7 or len(cut.nodes) == (j + 1 if j < 7 else 1)  # all read so far, or one node inside
    assert state(graph, 9, weight=width).size == min(9, 8 * 3)
    assert state(graph, 11, weight=width).size == min(11, 8)


def test_several_outputs_together() -> None:
    build = Builder(4)
    first = build.add("first", one_to_one(np.arange(4)))
    second = build.add("second", one_to_one(first[:1].repeat(3)))
    graph = build.graph(one_to_one(first), one_to_one(second), union([one_to_one(first[:2]), one_to_one(second[:2])]))
    assert bottleneck(graph, target="output").size == 4
    assert bottleneck(graph, target="output.1").size == 1
    assert bottleneck(graph, target=["output", "output.1"]).size == 4
    assert bottleneck(graph, target=["output.1", ("output", [2, 3]), ("output", 3)]).size == 3
    cut = bottleneck(graph, target=["output.1", ("output.2", 1)])
    assert cut.nodes == [Node(0, "input", (0,), "x", ""), Node(("output.2", 1), "output", (1,), "output.2", "")]
    assert bottleneck(graph, [], "output") == bottleneck(graph, target=[]) == (0, [])
    assert state(graph, 2, target="output").size == 0
    assert state(graph, 2, target=["output", "output.1"]).size == 1
    with pytest.raises(PositionError) as caught:
        state(graph, 3, target="output.2")
    assert str(caught.value) == "t goes from 0 to 2: x has 4 positions, output.2 has 2; got 3."
    with pytest.raises(PositionError) as caught:
        state(graph, 5, target=["output", "output.1"])
    assert str(caught.value) == "t goes from 0 to 4: x has 4 positions, output has 4, output.1 has 3; got 5."


def test_state_of_some_positions() -> None:
    graph = transformer(1, 9)
    assert state(graph, 4, ("x", [0, 2, 8])).size == 2
    assert state(graph, 4, target=("output", slice(0, 5))).size == 1
    assert state(graph, 4, ("x", slice(5, None))).size == 0
