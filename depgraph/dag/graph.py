"""What `depgraph.trace` returns: the nodes with their operations, and the inputs and outputs with their names."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from depgraph.dag.dag import Dag
from depgraph.dag.runs import IntArray, Runs
from depgraph.errors import GraphError, PositionError

if TYPE_CHECKING:
    import networkx as nx


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
    coordinates: IntArray | None = None
    labels: Sequence[Hashable] | None = None

    def position(self, node: int) -> tuple[int, ...]:
        """Return the position of the node with that number."""
        where = node - self.start
        if self.coordinates is not None:
            return tuple(int(c) for c in self.coordinates[where])
        return tuple(int(c) for c in np.unravel_index(where, self.grid)) if self.grid else ()


@dataclass(frozen=True, eq=False)
class Terminal:
    """An input or an output: the places where information enters or leaves.

    Attributes
    ----------
    name : str
    shape : tuple of int
        Shape of the tensor.
    positions : tuple of int
        The axes whose indices are told apart; row-major over them, position p gathers the nodes of ``nodes`` row p.
    nodes : Runs
        One row a position. An input position is a node of its own; an output position may gather several nodes or,
        where it is constant, none.
    """

    name: str
    shape: tuple[int, ...]
    positions: tuple[int, ...]
    nodes: Runs = field(repr=False)

    @property
    def count(self) -> int:
        """Number of positions."""
        return len(self.nodes)

    @property
    def grid(self) -> tuple[int, ...]:
        """Sizes of the position axes."""
        return tuple(self.shape[axis] for axis in self.positions)

    def index(self, position: int | Sequence[int]) -> int:
        """Return the row-major number of a position, given as that number or as one index an axis.

        Raises
        ------
        PositionError
            Where the position lies outside.
        """
        if isinstance(position, (int, np.integer)):
            number, size = int(position), self.count
            if not -size <= number < size:
                raise PositionError(f"{self.name} has positions 0 to {size - 1}; there is no position {position}.")
            return number % size
        where = tuple(int(p) for p in position)
        if len(where) != len(self.grid):
            raise PositionError(
                f"A position of {self.name} is {len(self.grid)} number(s), one for each of the axes {self.positions}; "
                f"got {where}."
            )
        if any(not -n <= p < n for p, n in zip(where, self.grid, strict=True)):
            raise PositionError(f"{self.name} has positions of shape {self.grid}; there is no position {where}.")
        number = 0
        for p, n in zip(where, self.grid, strict=True):
            number = number * n + p % n
        return number


class Terminals(Mapping[str, Terminal]):
    """Inputs or outputs by name; also answers to the other keys each of them goes by.

    Parameters
    ----------
    kind : {"input", "output"}
    terminals : sequence of Terminal
    aliases : mapping
        Further keys (an index, a second name) to names.
    """

    def __init__(self, kind: str, terminals: Sequence[Terminal], aliases: Mapping[Hashable, str] | None = None) -> None:
        self.kind = kind
        self._terminals = {terminal.name: terminal for terminal in terminals}
        self.aliases = dict(aliases or {})

    def __getitem__(self, key: Hashable) -> Terminal:
        if isinstance(key, str) and key in self._terminals:
            return self._terminals[key]
        if key in self.aliases:
            return self._terminals[self.aliases[key]]
        names = ", ".join(self._terminals) or "none"
        raise PositionError(f"There is no {self.kind} {key!r}. The {self.kind}s are: {names}.")

    def __contains__(self, key: object) -> bool:
        return key in self._terminals or key in self.aliases

    def __iter__(self) -> Iterator[str]:
        return iter(self._terminals)

    def __len__(self) -> int:
        return len(self._terminals)

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{name!r}: {terminal!r}' for name, terminal in self.items())}}}"

    def default(self) -> Terminal:
        """Return the first one with tracked positions, else the first one.

        Raises
        ------
        GraphError
            Where there is none.
        """
        if not self._terminals:
            raise GraphError(f"This graph has no {self.kind}s; name some when building it.")
        tracked = [t for t in self._terminals.values() if t.positions]
        return (tracked or list(self._terminals.values()))[0] if self.kind == "input" else next(iter(self.values()))


@dataclass(eq=False)
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

    @cached_property
    def unused_parameters(self) -> list[str]:
        """Dotted names of the parameters with no path to any output."""
        return self.find_unused_parameters()

    @cached_property
    def operation_starts(self) -> IntArray:
        """First node of each operation; operations are in the order of their nodes."""
        return np.array([operation.start for operation in self.operations], np.int64)

    def operation_of(self, node: int) -> Operation | None:
        """Return the operation a node belongs to, None for an input."""
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
            An edge u → v where v reads u. Nodes carry ``op``, ``position``, ``module`` and ``source``; inputs come with
            ``op="input"`` and their name as ``module``.

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

        if granularity != "operation":
            raise GraphError(f"collapse() takes 'operation'; got {granularity!r}.")
        return collapse(self)
