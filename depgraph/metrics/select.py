"""Which positions of which inputs and outputs the user means."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from depgraph.dag.graph import Terminal, Terminals
from depgraph.dag.runs import IntArray
from depgraph.errors import PositionError

#: None for the default, a name, or a name and a position or several.
Selection = Hashable | tuple[Hashable, Any] | None
#: One of those, or a list of them.
Selections = Selection | list[Selection]


def select(terminals: Terminals, selection: Selection) -> tuple[Terminal, IntArray]:
    """Return the input or output that is meant, and the row-major numbers of its positions.

    Parameters
    ----------
    terminals : Terminals
    selection : None, key, or (key, positions)
        None stands for the default, a key alone for all positions; a number alone is a key as well. Positions are one
        position (a number, or a tuple with one index an axis), a slice, or an iterable of positions such as a list or
        a range.

    Raises
    ------
    PositionError
        Where a name or a position does not exist.
    """
    if selection is None:
        terminal = terminals.default()
        return terminal, np.arange(terminal.count)
    if isinstance(selection, Hashable) and not isinstance(selection, tuple):
        terminal = _by_key(terminals, selection)
        return terminal, np.arange(terminal.count)
    if not isinstance(selection, tuple) or len(selection) != 2:
        raise PositionError(
            f"An {terminals.kind} is given as a name, or as (name, positions) like ('x', 0); got {selection!r}."
        )
    terminal, positions = terminals[selection[0]], selection[1]
    if isinstance(positions, slice):
        try:
            return terminal, np.arange(terminal.count)[positions]
        except (TypeError, ValueError) as error:  # an end that is no number, a step of 0
            raise PositionError(f"{positions!r} is no slice of the positions of {terminal.name}: {error}.") from error
    one = isinstance(positions, (tuple, str, bytes, Mapping)) or not isinstance(positions, Iterable)
    numbers = [terminal.index(position) for position in ([positions] if one else positions)]
    return terminal, np.array(numbers, np.int64)


def _by_key(terminals: Terminals, key: Hashable) -> Terminal:
    try:
        return terminals[key]
    except PositionError as error:
        if not isinstance(key, (int, np.integer)) or isinstance(key, bool) or not terminals:
            raise
        raise PositionError(f"{error} A position goes with a name, like ({next(iter(terminals))!r}, {key}).") from None


def select_several(terminals: Terminals, selection: Selections) -> list[tuple[Terminal, IntArray]]:
    """Return the inputs or outputs that are meant, each once, and the ascending numbers of their positions.

    Parameters
    ----------
    terminals : Terminals
    selection : None, key, (key, positions), or a list of those
        As for `select`; a list stands for all that its members stand for.

    Raises
    ------
    PositionError
        Where a name or a position does not exist.
    """
    chosen: dict[str, list[IntArray]] = {}
    for one in selection if isinstance(selection, list) else [selection]:
        terminal, numbers = select(terminals, one)
        chosen.setdefault(terminal.name, []).append(numbers)
    return [(terminals[name], np.unique(np.concatenate(parts))) for name, parts in chosen.items()]


def endpoint(terminals: Terminals, selection: Selection) -> tuple[Terminal, int]:
    """Return the one position that is meant; a name alone will do where there is just one.

    Raises
    ------
    PositionError
        Where it does not exist, or where several are meant.
    """
    terminal, numbers = select(terminals, selection)
    if len(numbers) != 1:
        raise PositionError(
            f"A path has one position at either end; {terminal.name} was given {len(numbers)} of its {terminal.count}. "
            f"Name one, like ({terminal.name!r}, 0)."
        )
    return terminal, int(numbers[0])
