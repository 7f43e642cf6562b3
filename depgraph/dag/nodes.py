"""Some nodes of a graph, looked up only when somebody looks at them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, overload

from depgraph.dag.runs import IntArray

if TYPE_CHECKING:
    from depgraph.dag.graph import DependencyGraph, Node


class Nodes(Sequence["Node"]):
    """A list of nodes that are put together when asked for: a longest path may have thousands that nobody asks for.

    Parameters
    ----------
    graph : DependencyGraph
    numbers : int array, or a function that returns one
        Which nodes, in order.
    """

    def __init__(self, graph: DependencyGraph, numbers: IntArray | Callable[[], IntArray]) -> None:
        self._graph, self._given = graph, numbers

    @cached_property
    def numbers(self) -> IntArray:
        """Their numbers in the graph."""
        return self._given() if callable(self._given) else self._given

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> Node: ...

    @overload
    def __getitem__(self, index: slice) -> list[Node]: ...

    def __getitem__(self, index: int | slice) -> Node | list[Node]:
        if isinstance(index, slice):
            return [self._graph.node(number) for number in self.numbers[index].tolist()]
        return self._graph.node(int(self.numbers[index]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (Nodes, list, tuple)):
            return NotImplemented
        return list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))
