"""Tables for a person, 80 columns wide unless the terminal is wider; without colours when piped."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

NONE = "–"
_WIDE = 240
_LAST = 16
"""Columns of the terminal left for the last column of a table, however wide the others are."""


def console(wide: bool = False) -> Console:
    """Return the console of standard output; a wide one folds nothing when piped, so that lines can be searched."""
    from rich.console import Console

    return Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() or not wide else _WIDE)


def print_table(out: Console, headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print rows under headings, columns of numbers flush right; a long cell is folded, never cut.

    Where the width does not suffice, the last column is the first to be folded.
    """
    from rich.table import Table
    from rich.text import Text

    rows = list(rows)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_header=any(headings))
    cells = [[cell(value) for value in row] for row in rows]
    room = out.width - _LAST
    for number, heading in enumerate(headings):
        numbers = any(isinstance(row[number], (int, float)) for row in rows)
        widest = max(map(len, [heading, *(row[number] for row in cells)]))
        room -= widest + 2
        last = number == len(headings) - 1
        table.add_column(
            Text(heading), justify="right" if numbers else "left", overflow="fold", no_wrap=room >= 0 and not last
        )
    for row in cells:
        table.add_row(*map(Text, row))
    out.print(table)


def print_heading(out: Console, text: str) -> None:
    """Print a heading with an empty line above it."""
    out.print()
    print_line(out, text, "bold")


def print_line(out: Console, text: str, style: str = "") -> None:
    """Print a line of prose, wrapped at the width of the terminal."""
    from rich.text import Text

    out.print(Text(text, style=style))


def cell(value: Any) -> str:
    """Return a value as it stands in a table: thousands separated, a dash for nothing."""
    if value is None:
        return NONE
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.2f}" if isinstance(value, float) else str(value)


def amount(number: float | None, weight: str) -> Any:
    """Return a weight as it stands in a table: seconds in the unit that suits them.

    Examples
    --------
    >>> amount(0.00123, "seconds"), amount(2, "seconds"), amount(1234, "flops")
    ('1.23 ms', '2.00 s', 1234)
    """
    if weight != "seconds" or number is None:
        return number
    for unit, seconds in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if number >= seconds:
            return f"{number / seconds:,.2f} {unit}"
    return f"{number * 1e9:.2f} ns"


def size(shape: Sequence[int]) -> str:
    """Return a shape as it is read aloud: ``1×100×32``; a size that is open is a question mark."""
    return "×".join("?" if n < 0 else str(n) for n in shape) or "scalar"


def axes(positions: Sequence[int]) -> str:
    """Return tracked axes in words."""
    return f"{'axis' if len(positions) == 1 else 'axes'} {', '.join(map(str, positions))}" if positions else NONE


def title(name: str, kind: str, mode: str) -> str:
    """Return the first line about a model: what it is called, what it is, and the mode it was analysed in."""
    return f"{name}: {kind}" + (f", in {mode} mode" if mode else "")
