"""A ledger for tests, and tables of expressions."""

from collections.abc import Callable
from typing import Any

from torch import fx

from depgraph.tracing.python.numbers import Number, symbolic


class Book:
    """A ledger that keeps everything, and computes everything once more."""

    def __init__(self) -> None:
        self.graph = fx.Graph()
        self.settled: list[tuple[str, Any]] = []
        self.given: dict[str, Any] = {}

    def compute(self, function: Callable[..., Any], args: tuple[Any, ...], value: Any) -> fx.Node:
        node = self.graph.call_function(function, args)
        node.meta["val"] = value
        return node

    def settle(self, number: Number, kind: str) -> Any:
        self.settled.append((kind, number.value))
        return number.value

    def read(self, value: Any) -> Any:
        node = self.graph.placeholder("given")
        node.meta["val"] = value
        return symbolic(value, node, self)

    def again(self) -> None:
        """Compute every node from those before it, and compare."""
        values: dict[fx.Node, Any] = {}
        for node in self.graph.nodes:
            if node.op == "placeholder":
                values[node] = node.meta["val"]
            else:
                values[node] = node.target(*fx.map_arg(node.args, values.__getitem__))
            assert same(values[node], node.meta["val"])


def same(value: Any, other: Any) -> bool:
    return type(value) is type(other) and repr(value) == repr(other)


def rows(table: str) -> list[str]:
    """Return the cells of a table, which stand between strokes."""
    return [cell.strip() for cell in table.replace("\n", " | ").split(" | ") if cell.strip()]
