"""What came out when a graph was compared with measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

import numpy as np

from depgraph.dag.graph import Terminal
from depgraph.dag.runs import IntArray


class Pair(NamedTuple):
    """An input position and an output position.

    Attributes
    ----------
    source : str
        Name of the input.
    source_position : tuple of int
        One index for each of its tracked axes.
    target : str
        Name of the output.
    target_position : tuple of int
    """

    source: str
    source_position: tuple[int, ...]
    target: str
    target_position: tuple[int, ...]

    def __str__(self) -> str:
        return f"{_shown(self.source, self.source_position)} → {_shown(self.target, self.target_position)}"


class Pairs(Sequence[Pair]):
    """Many pairs, made when they are looked at.

    Parameters
    ----------
    parts : sequence of (Terminal, Terminal, (pairs, 2) int array)
        An input, an output, and row-major numbers of positions of both.
    """

    def __init__(self, parts: Sequence[tuple[Terminal, Terminal, IntArray]]) -> None:
        self._parts = [part for part in parts if len(part[2])]
        self._ends = np.cumsum([len(numbers) for _, _, numbers in self._parts], dtype=np.int64)

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    @overload
    def __getitem__(self, index: int) -> Pair: ...
    @overload
    def __getitem__(self, index: slice) -> list[Pair]: ...
    def __getitem__(self, index: int | slice) -> Pair | list[Pair]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"there are {len(self)} pairs, and no number {index}")
        index %= len(self)
        part = int(np.searchsorted(self._ends, index, side="right"))
        source, target, numbers = self._parts[part]
        i, j = numbers[index - int(self._ends[part]) + len(numbers)]
        return Pair(source.name, _position(source, i), target.name, _position(target, j))

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self[:3]))
        return f"[{shown}, … {len(self) - 3} more]" if len(self) > 3 else f"[{shown}]"


@dataclass(frozen=True)
class Verdict:
    """Whether a graph says of a model what the model does. Its ``str`` says it in a sentence or two.

    Attributes
    ----------
    compared : int
        Pairs of an input position and an output position that were compared.
    pairs : int
        Those among them with a path in the graph.
    missed : sequence of Pair
        Pairs without a path of which the output changes with the input: faults of depgraph, or of a rule that was
        registered (``graph.user_rules``).
    extra : sequence of Pair
        Pairs with a path that no draw has shown. Some dependences show for few values only: what is sorted, routed or
        compared.
    draws : int
        Draws of the model's parameters and inputs.
    dtype : str
        The precisions the model was run in: ``"float64 and float32"`` where its own is float32 and it can do both.
    notes : list of str
        What could not be measured.
    left_out : int
        Pairs that were tried and could not be compared.
    strayed : int
        Runs that went another way than the example inputs do, and were left out.
    refused : int
        Runs that were left out because the model raised.
    """

    compared: int
    pairs: int
    missed: Sequence[Pair]
    extra: Sequence[Pair]
    draws: int
    dtype: str
    notes: list[str]
    left_out: int = 0
    strayed: int = 0
    refused: int = 0

    @property
    def sound(self) -> bool:
        """Whether the graph has every dependence that was measured, and something was: see ``compared``."""
        return self.compared > 0 and not self.missed

    @property
    def exact(self) -> bool:
        """Whether the graph has the measured dependences and no others."""
        return self.sound and not self.extra

    def __str__(self) -> str:
        if not self.compared:
            return f"Nothing could be compared, so nothing is said of the graph: {'; '.join(self.notes)}."
        return f"{self._said()}{f' {self.left_out:,} pairs could not be compared.' if self.left_out else ''}"

    def _said(self) -> str:
        if not self.sound:
            return (
                f"Not sound: {len(self.missed):,} of {self.compared:,} pairs depend on each other without a path in "
                f"the graph. The first is {self.missed[0]}."
            )
        if self.exact:
            return f"Exact: of {self.compared:,} pairs, the {self.pairs:,} with a path are those that measuring shows."
        return (
            f"Sound: measuring shows no dependence that the graph lacks. Of {self.pairs:,} pairs with a path, "
            f"{len(self.extra):,} did not show in {self.draws} draws. The first is {self.extra[0]}."
        )


def _position(terminal: Terminal, number: int) -> tuple[int, ...]:
    return tuple(int(p) for p in np.unravel_index(int(number), terminal.grid)) if terminal.grid else ()


def _shown(name: str, position: tuple[int, ...]) -> str:
    return f"{name}[{', '.join(map(str, position))}]" if position else name
