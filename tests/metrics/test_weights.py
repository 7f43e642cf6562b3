from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

import depgraph
from depgraph.dag.graph import DependencyGraph
from depgraph.errors import GraphError
from depgraph.metrics.weights import node_weights
from tests.metrics.synthetic import recurrent, transformer


def chain() -> DependencyGraph:
    return depgraph.from_networkx(nx.DiGraph([("x", "a"), ("a", "b")]), sources=["x"])


def test_names() -> None:
    graph = transformer(1, 3)
    assert node_weights(graph).tolist() == [0] * 3 + [1] * (graph.dag.nodes - 3)
    names = [graph.node(n).op for n in range(graph.dag.nodes)]
    expected = [int(name in ("linear", "attention")) for name in names]
    assert node_weights(graph, "contractions").tolist() == expected
    assert node_weights(recurrent(2, 3), "contractions").sum() == 6


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ((2, 3), np.int64),
        ((True, np.int32(4)), np.int64),
        ((2, 0.5), np.float64),
        ((np.float32(0.25), Fraction(1, 2)), np.float64),
    ],
)
def test_functions_of_a_node(values: tuple[object, object], dtype: type) -> None:
    found = node_weights(chain(), lambda node: dict(zip("ab", values, strict=True))[node.id])
    assert found.dtype == dtype
    assert found.tolist() == [0, *map(float, values)]


@pytest.mark.parametrize("value", [-1, -0.5, float("nan"), float("inf"), None, "1", Decimal(1), 1j])
def test_what_is_no_weight(value: object) -> None:
    with pytest.raises(GraphError) as caught:
        node_weights(chain(), lambda node: value if node.id == "b" else 1)
    assert str(caught.value) == (f"The weight of node 'b' (b) is {value!r}; a weight is a finite number of at least 0.")


@pytest.mark.parametrize("name", ["flops", "bytes", "seconds", "", None])
def test_unknown_names(name: object) -> None:
    with pytest.raises(GraphError) as caught:
        node_weights(chain(), name)  # type: ignore[arg-type]
    assert str(caught.value) == (
        f"There is no weight {name!r}. The weights are: 'ops', 'contractions', or a function of a node."
    )


def test_integers_too_large_to_add() -> None:
    with pytest.raises(GraphError, match="add up to 2⁶¹ or more"):
        node_weights(chain(), lambda node: 2**60)
    assert node_weights(chain(), lambda node: 2**59).tolist() == [0, 2**59, 2**59]
