from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

import depgraph
from depgraph.dag.graph import DependencyGraph, Node
from depgraph.errors import GraphError
from depgraph.metrics.flow.capacities import capacities
from tests.metrics.synthetic import transformer


def chain() -> DependencyGraph:
    return depgraph.from_networkx(nx.DiGraph([("x", "a"), ("a", "b")]), ["x"], ["b"])


def weighing(value: object) -> object:
    return lambda node: {"x": 2, "a": value, "b": 1}[node.id]


def test_one_a_node() -> None:
    graph = transformer(1, 3)
    assert capacities(graph).tolist() == [1] * graph.dag.nodes


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3), 3.0, np.float32(3), Fraction(6, 2)])
def test_functions_are_asked_of_inputs_too(value: object) -> None:
    found = capacities(chain(), weighing(value))
    assert found.dtype == np.int64
    assert found.tolist() == [2, 3, 1]
    assert capacities(chain(), weighing(np.bool_(True))).tolist() == [2, 1, 1]


@pytest.mark.parametrize(
    "value", [-1, 0.5, -0.5, np.float64(1.5), Fraction(1, 2), float("nan"), float("inf"), None, "1", Decimal(1), 1j]
)
def test_what_is_no_whole_number(value: object) -> None:
    with pytest.raises(GraphError) as caught:
        depgraph.bottleneck(chain(), weight=weighing(value))
    assert str(caught.value) == (
        f"The weight of node 'a' (a) is {value!r}; the weights of a cut are whole numbers of at least 0, so that it is "
        "exact: multiply fractions by what makes them whole."
    )


def test_numbers_too_large_to_add() -> None:
    with pytest.raises(GraphError, match="add up to 2⁶¹ or more"):
        capacities(chain(), weighing(2**61))
    assert depgraph.bottleneck(chain(), weight=weighing(2**60)).size == 1
    # Nodes of weight 0 are counted below the last digit of the others.
    wide, empty = {"a": 2**58 + 1, "b": 2**58, "c": 2**58, "d": 2**58}, range(6)
    dag = nx.DiGraph([(u, v) for u in "ab" for v in empty] + [(u, v) for u in empty for v in "cd"])
    graph = depgraph.from_networkx(dag, ["a", "b"], ["c", "d"])
    with pytest.raises(GraphError, match="add up to 2⁶¹ or more"):
        depgraph.bottleneck(graph, weight=lambda node: wide.get(node.id, 0))
    assert depgraph.bottleneck(graph, weight=lambda node: wide.get(node.id, 0) // 2**20).size == 0


def test_unknown_names() -> None:
    for name in ("", "vectors", None):
        with pytest.raises(GraphError, match=f"There is no weight {name!r}."):
            depgraph.bottleneck(chain(), weight=name)  # type: ignore[arg-type]


def test_what_nodes_cost_is_not_what_they_carry() -> None:
    with pytest.raises(GraphError) as caught:
        depgraph.bottleneck(chain(), weight="contractions")
    assert str(caught.value) == (
        "'contractions' is what a node costs; a cut is measured in what nodes carry: 'ops', 'scalars', or a function "
        "of a node."
    )


def test_scalars() -> None:
    dag = chain().to_networkx()
    nx.set_node_attributes(dag, {"x": 4, "a": 3.0, "b": 2}, "scalars")
    graph = depgraph.from_networkx(dag, ["x"], ["b"])
    assert capacities(graph, "scalars").tolist() == [4, 3, 2]
    assert depgraph.bottleneck(graph, weight="scalars").size == 2
    dag.nodes["a"]["scalars"] = 7.5
    with pytest.raises(GraphError, match=r"The weight of node 'a' \(a\) is 7\.5; the weights of a cut are whole"):
        capacities(depgraph.from_networkx(dag, ["x"], ["b"]), "scalars")


def test_cut_of_nodes() -> None:
    assert depgraph.bottleneck(chain(), weight=weighing(0)) == (0, [Node("a", "a", (), "", "")])
