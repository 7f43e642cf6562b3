from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given

import depgraph
from depgraph.dag.graph import DependencyGraph
from depgraph.dag.runs import Runs
from depgraph.errors import GraphError, PositionError
from depgraph.metrics.paths import dependence, passage
from depgraph.metrics.paths.dependence import dependence_matrix
from depgraph.metrics.paths.lengths import path_lengths
from tests.metrics.strategies import as_networkx, graphs
from tests.metrics.synthetic import Builder, eager_attention, one_to_one, recurrent, transformer


@given(graphs())
def test_it_is_the_transitive_closure(graph: DependencyGraph) -> None:
    dag, found = as_networkx(graph), dependence_matrix(graph)
    expected = [
        [("y", j) in reached for j in range(graph.outputs["output"].count)]
        for i in range(graph.inputs["x"].count)
        for reached in (nx.descendants(dag, ("x", i)),)
    ]
    assert isinstance(found, scipy.sparse.csr_array)
    assert found.dtype == bool
    assert found.nnz == np.sum(expected)
    assert found.has_canonical_format
    assert np.array_equal(found.toarray(), expected)


MODELS = [
    transformer(2, 130),
    transformer(2, 64, "window", 5),
    transformer(1, 63, "full"),
    recurrent(2, 70, both_ways=True),
    recurrent(3, 70),
    eager_attention(2, 9),
]


@pytest.mark.parametrize("graph", MODELS)
@pytest.mark.parametrize(("memory", "pairs"), [(None, None), (1, 1), (None, 64 * 70)])
def test_where_there_are_paths(
    graph: DependencyGraph, memory: int | None, pairs: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = path_lengths(graph) >= 0
    if memory:
        monkeypatch.setattr(passage, "_MEMORY", memory)  # 64 sources at a time
    if pairs:
        monkeypatch.setattr(dependence, "_PAIRS", pairs)
    assert np.array_equal(dependence_matrix(graph).toarray(), expected)


def test_selections() -> None:
    graph = transformer(1, 200, "window", 3)
    whole = path_lengths(graph) >= 0
    some = [199, 0, 7, 7, *range(100, 180)]
    assert np.array_equal(
        dependence_matrix(graph, ("x", some), ("output", [5, 0, 5, 9])).toarray(), whole[some][:, [5, 0, 5, 9]]
    )
    assert dependence_matrix(graph, ("x", [])).shape == (0, 200)
    assert dependence_matrix(graph, target=("output", [])).shape == (200, 0)


def test_no_path_and_no_operation() -> None:
    build = Builder(2)
    build.add("a", one_to_one(np.array([0, 1])))
    assert dependence_matrix(build.graph(Runs.singletons(np.array([-1, 2])))).toarray().tolist() == [[0, 1], [0, 0]]
    assert dependence_matrix(build.graph(Runs.singletons(np.array([-1, -1])))).nnz == 0
    assert dependence_matrix(build.graph(Runs.singletons(np.array([1, 0])))).toarray().tolist() == [[0, 1], [1, 0]]


def test_more_pairs_than_could_be_looked_at() -> None:
    # 160,000 positions each: 25.6 thousand million pairs, of which three a position depend on each other.
    count = 160_000
    build, where = Builder(count), np.arange(count)
    x = build.add("window", Runs(np.arange(count + 1), np.maximum(where - 2, 0), where + 1))
    graph = build.graph(one_to_one(x))
    some = ("x", range(0, count, 1000))
    found = dependence_matrix(graph, some)
    assert found.shape == (160, count)
    assert found.nnz == 3 * 160
    assert found.indices[:3].tolist() == [0, 1, 2]


def test_what_is_refused() -> None:
    graph = transformer(1, 5)
    with pytest.raises(PositionError, match=r"There is no output 'logits'\. The outputs are: output\."):
        dependence_matrix(graph, target="logits")
    with pytest.raises(GraphError, match=r"A graph is what depgraph\.trace"):
        dependence_matrix("graph")  # type: ignore[arg-type]
    with pytest.raises(GraphError, match=r"This graph has no inputs; name some when building it\."):
        dependence_matrix(depgraph.from_networkx(nx.path_graph(3, create_using=nx.DiGraph), targets=[2]))
