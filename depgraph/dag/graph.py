"""What `depgraph.trace` returns: the nodes with their operations, and the inputs and outputs with their names."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from depgraph.dag.costs import NAMES
from depgraph.dag.dag import Dag
from depgraph.dag.levels import NumberArray
from depgraph.dag.runs import IntArray
from depgraph.dag.terminals import Terminal, Terminals
from depgraph.errors import GraphError

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["DependencyGraph", "Node", "Operation", "Terminal", "Terminals"]

_NAMED = 4
"""Inputs or outputs that are named where there are many."""


class Node(NamedTuple):
    """One operation producing one bundle of values.

    Attributes
    ----------
    id : hashable
        The node's name in `DependencyGraph.to_networkx`.
    op : str
        The operation: ``"linear"``, ``"scaled_dot_product_attention"``, ``"lstm"``; ``"input"`` for an input.
    position : tuple of int
        Where in the operation's output the node stands, along the axes along which nodes differ.
    module : str
        Dotted path of the module that ran it (``"encoder.layers.0.self_attn"``), ``""`` for the model itself.
    source : str
        ``"file:line"`` in the user's own code, ``""`` where unknown.
    """

    id: Hashable
    op: str
    position: tuple[int, ...]
    module: str
    source: str


@dataclass(frozen=True)
class Operation:
    """One operation of the model, which became the nodes ``start … stop - 1``.

    Attributes
    ----------
    name, module, source : str
        As in `Node`.
    contraction : bool
        Whether it multiplies and sums: linear, matmul, convolution, attention, recurrent cell.
    start, stop : int
        Its nodes, consecutive.
    grid : tuple of int
        Shape of the grid that its nodes fill in row-major order, where they do.
    coordinates : (nodes, axes) int array or None
        Position of each node, where they do not fill a grid.
    labels : sequence or None
        Names of the nodes given by the user (`from_networkx`), else None: a node's name is its number.
    """

    name: str
    module: str
    source: str
    contraction: bool
    start: int
    stop: int
    grid: tuple[int, ...] = ()
    coordinates: IntArray | None = field(default=None, repr=False)
    labels: Sequence[Hashable] | None = field(default=None, repr=False)

    def position(self, node: int) -> tuple[int, ...]:
        """Return the position of the node with that number."""
        where = node - self.start
        if self.coordinates is not None:
            return tuple(int(c) for c in self.coordinates[where])
        return tuple(int(c) for c in np.unravel_index(where, self.grid)) if self.grid else ()


def _no_costs(name: str) -> NumberArray:
    raise GraphError(f"This graph does not say what its nodes cost in {name}.")


@dataclass(eq=False, repr=False)
class DependencyGraph:
    """A model's dependences, position by position. Made by `depgraph.trace` or `depgraph.from_networkx`.

    Attributes
    ----------
    inputs, outputs : Mapping
        Name to `Terminal`, a record with ``shape``, ``positions`` (axes) and ``count``.
    warnings : list of str
        What the numbers leave out or take for granted.
    unused_parameters, unused_inputs : list of str
        Those with no path to any output.
    known_inputs : list of str
        Those held at their example values.
    user_rules : list of str
        Operators followed by rules that were registered with `depgraph.register_rule`.
    mode : str
        ``"eval"`` or ``"train"``: the mode the model was traced in; ``""`` for a graph that is no model.
    """

    dag: Dag
    operations: Sequence[Operation]
    inputs: Terminals
    outputs: Terminals
    warnings: list[str] = field(default_factory=list)
    unused_inputs: list[str] = field(default_factory=list)
    mode: str = ""
    input_labels: Sequence[Hashable] | None = None
    find_unused_parameters: Callable[[], list[str]] = list
    known_inputs: list[str] = field(default_factory=list)
    user_rules: list[str] = field(default_factory=list)
    find_costs: Callable[[str], NumberArray] = _no_costs

    def __repr__(self) -> str:
        dag = self.dag
        return (
            f"<DependencyGraph: {len(self.operations):,} operations, {dag.nodes:,} nodes, {dag.edges:,} edges; "
            f"inputs {_listed(self.inputs)}; outputs {_listed(self.outputs)}>"
        )

    @cached_property
    def unused_parameters(self) -> list[str]:
        """Dotted names of the parameters with no path to any output."""
        return self.find_unused_parameters()

    def costs(self, name: str) -> NumberArray:
        """Return what each node costs by its operation.

        Parameters
        ----------
        name : {"flops", "bytes", "seconds", "scalars"}
            Floating-point operations; bytes read and written; seconds measured; elements of a result that the node
            stands for.

        Returns
        -------
        (nodes,) array
            Of int64 where all are integers, else of float64. Inputs cost 0; in ``"scalars"``, they count as well.

        Raises
        ------
        GraphError
            Where the graph does not know.
        """
        if name not in NAMES:
            raise GraphError(f"There are no costs {name!r}. The costs are: {', '.join(map(repr, NAMES))}.")
        return self.find_costs(name)

    @cached_property
    def operation_starts(self) -> IntArray:
        """First node of each operation; operations are in the order of their nodes."""
        return np.array([operation.start for operation in self.operations], np.int64)

    def operation_of(self, node: int) -> Operation | None:
        """Return the operation a node belongs to, None for an input."""
        if not isinstance(node, (int, np.integer)) or not 0 <= node < self.dag.nodes:
            raise GraphError(f"The graph has nodes 0 to {self.dag.nodes - 1}; there is no node {node!r}.")
        if node < self.dag.inputs:
            return None
        return self.operations[int(np.searchsorted(self.operation_starts, node, side="right")) - 1]

    def node(self, number: int) -> Node:
        """Return what is known of the node with that number (0 to ``dag.nodes - 1``)."""
        operation = self.operation_of(number)
        if operation is None:
            label = number if self.input_labels is None else self.input_labels[number]
            for terminal in self.inputs.values():
                first = int(terminal.nodes.starts[0]) if len(terminal.nodes.starts) else -1
                if first <= number < first + terminal.count:
                    where = np.unravel_index(number - first, terminal.grid) if terminal.grid else ()
                    return Node(label, "input", tuple(int(p) for p in where), terminal.name, "")
            return Node(label, "input", (), "", "")
        label = number if operation.labels is None else operation.labels[number - operation.start]
        return Node(label, operation.name, operation.position(number), operation.module, operation.source)

    def to_networkx(self) -> nx.DiGraph[Hashable]:
        """Return the position graph as a `networkx.DiGraph`.

        Returns
        -------
        networkx.DiGraph
            An edge u → v where v reads u. Nodes carry ``op``, ``position``, ``module``, ``source`` and, where the graph
            knows them, ``flops``; inputs come with ``op="input"`` and their name as ``module``.

        Examples
        --------
        >>> import networkx as nx
        >>> from depgraph import from_networkx
        >>> dag = nx.DiGraph([("a", "b"), ("b", "c")])
        >>> sorted(from_networkx(dag).to_networkx().edges)
        [('a', 'b'), ('b', 'c')]
        """
        from depgraph.dag.interop import to_networkx

        return to_networkx(self)

    def collapse(self, granularity: str = "operation") -> DependencyGraph:
        """Return the graph with all nodes of one operation, and all positions of one input, drawn together.

        In it, width is branch parallelism: how many operations could run at the same moment.

        Parameters
        ----------
        granularity : {"operation"}

        Raises
        ------
        GraphError
            For any other granularity.
        """
        from depgraph.dag.interop import collapse

        if not isinstance(granularity, str) or granularity != "operation":
            raise GraphError(f"collapse() takes 'operation'; got {granularity!r}.")
        return collapse(self)


def check_graph(graph: object) -> None:
    """Raise where something else is given in place of a graph.

    Raises
    ------
    GraphError
        Saying what it is.
    """
    if not isinstance(graph, DependencyGraph):
        raise GraphError(
            "A graph is what depgraph.trace or depgraph.from_networkx returns, and comes first; got a "
            f"{type(graph).__name__}."
        )


def _listed(terminals: Terminals) -> str:
    shown = [f"{terminal.name} ({terminal.count:,})" for terminal in list(terminals.values())[:_NAMED]]
    more = f" and {len(terminals) - _NAMED} more" if len(terminals) > _NAMED else ""
    return (", ".join(shown) or "none") + more
