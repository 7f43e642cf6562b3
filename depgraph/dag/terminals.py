"""Inputs and outputs: the places where information enters and leaves, with their names and positions."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from depgraph.dag.runs import Runs
from depgraph.errors import GraphError, PositionError


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

    def index(self, position: int | Iterable[int]) -> int:
        """Return the row-major number of a position, given as that number or as one index an axis.

        Raises
        ------
        PositionError
            Where the position lies outside, or is none.
        """
        number = _whole(position)
        if number is not None:
            size = self.count
            if not -size <= number < size:
                raise PositionError(f"{self.name} has positions 0 to {size - 1}; there is no position {number}.")
            return number % size
        indices: list[int | None] = [None]
        if isinstance(position, Iterable) and not isinstance(position, (str, bytes, Mapping)):
            indices = [_whole(p) for p in position]
        where = tuple(index for index in indices if index is not None)
        if len(where) != len(indices):
            raise PositionError(
                f"A position of {self.name} is a whole number, or a tuple with one for each of the axes "
                f"{self.positions}; got {position!r}."
            )
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


def _whole(value: Any) -> int | None:
    """Return a whole number of any type as an int, None for what is none."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except (TypeError, ValueError):
        return None


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
        name = self._name(key)
        if name is not None:
            return self._terminals[name]
        names = ", ".join(self._terminals) or "none"
        raise PositionError(f"There is no {self.kind} {key!r}. The {self.kind}s are: {names}.")

    def __contains__(self, key: object) -> bool:
        return self._name(key) is not None

    def _name(self, key: object) -> str | None:
        """Return the name that goes with a key of any type, None where it is no key."""
        if isinstance(key, str) and key in self._terminals:
            return key
        if isinstance(key, bool):  # equal to 0 or 1, which may be keys
            return None
        try:
            return self.aliases.get(key) if isinstance(key, Hashable) else None
        except TypeError:  # a tuple of what has no hash
            return None

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
