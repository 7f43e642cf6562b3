"""A long path told in a few rows: stretches of it, each in one operation, one module or one run of alike layers."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

_MANY = 20
"""Above this many rows, the rounds of a loop are put in a row; then whole modules, and runs of alike modules."""
_LONGEST = 32
"""Most rows of one round."""


@dataclass(frozen=True)
class Stretch:
    """Consecutive nodes of a path, and what they have in common."""

    count: int
    operations: tuple[str, ...]
    module: str
    sources: tuple[str, ...]

    @property
    def source(self) -> str:
        """Where the stretch is written: ``"file:line"``, or ``"file:first–last"`` within one file."""
        places = [source.rpartition(":") for source in self.sources]
        lines = sorted({int(line) for file, _, line in places if file == places[0][0] and line.isdecimal()})
        if not lines:
            return self.sources[0] if self.sources else ""
        span = f"{lines[0]}" if len(lines) == 1 else f"{lines[0]}–{lines[-1]}"
        return f"{places[0][0]}:{span}"


def stretches(path: Sequence[Mapping[str, Any]]) -> list[Stretch]:
    """Return a path (nodes as in JSON) as stretches, coarse enough to be read at a glance."""
    rows = _merge([_single(node, node["module"]) for node in path], by_operation=True)
    if len(rows) > _MANY:
        rolled = _rolled(rows)
        rows = rolled if len(rolled) <= _MANY else _modules(path)
    return rows


def _modules(path: Sequence[Mapping[str, Any]]) -> list[Stretch]:
    rows = _fold(_merge([_single(node, _block(node["module"])) for node in path], by_operation=False))
    return rows if len(rows) <= _MANY else _rolled(rows)


def _rolled(rows: list[Stretch]) -> list[Stretch]:
    """Put the rounds of a loop in one row: the same rows, one round after the other, three times or more."""
    kept: list[Stretch] = []
    start = 0
    while start < len(rows):
        length, rounds = max(((p, _rounds(rows, start, p)) for p in range(1, _LONGEST + 1)), key=_covered)
        if rounds < 3:
            length = rounds = 1
        block = rows[start : start + length * rounds]
        kept.append(replace(_joined(block), module=_common([row.module for row in block])))
        start += length * rounds
    return kept


def _covered(found: tuple[int, int]) -> int:
    length, rounds = found
    return length * rounds if rounds >= 3 else 0


def _rounds(rows: list[Stretch], start: int, length: int) -> int:
    """Return how often the rows of that length from there on come one after the other."""
    first, rounds = rows[start : start + length], 1
    while len(first) == length and rows[start + rounds * length : start + (rounds + 1) * length] == first:
        rounds += 1
    return rounds


def _common(modules: Sequence[str]) -> str:
    """Return the innermost module that holds them all."""
    levels = zip(*(module.split(".") for module in modules), strict=False)
    return ".".join(names[0] for names in itertools.takewhile(lambda names: len(set(names)) == 1, levels))


def _single(node: Mapping[str, Any], module: str) -> Stretch:
    return Stretch(1, (node["op"],), module, (node["source"],) if node["source"] else ())


def _merge(rows: list[Stretch], by_operation: bool) -> list[Stretch]:
    def key(row: Stretch) -> tuple[Any, ...]:
        return (row.module, row.operations, row.sources) if by_operation else (row.module,)

    return [_joined(list(group)) for _, group in itertools.groupby(rows, key)]


def _joined(rows: Sequence[Stretch]) -> Stretch:
    return replace(
        rows[0],
        count=sum(row.count for row in rows),
        operations=tuple(dict.fromkeys(op for row in rows for op in row.operations)),
        sources=tuple(dict.fromkeys(source for row in rows for source in row.sources)),
    )


def _block(module: str) -> str:
    """Return the path down to its last number: ``encoder.layers.0`` for ``encoder.layers.0.self_attn``."""
    match = re.match(r"(.*(?:^|\.)\d+)(?=\.|$)", module)
    return match[1] if match else module


def _fold(rows: list[Stretch]) -> list[Stretch]:
    """Put consecutive rows in one where their modules differ in the last number alone and their operations agree."""

    def key(row: Stretch) -> tuple[Any, ...]:
        stem, number, tail = _numbered(row.module)
        return (stem, tail, row.operations) if number else (row.module, row.operations, object())

    folded = []
    for _, group in itertools.groupby(rows, key):
        members = list(group)
        row = _joined(members)
        if len(members) > 1:
            (stem, first, tail), (_, last, _) = _numbered(members[0].module), _numbered(members[-1].module)
            row = replace(row, module=f"{stem}{first}–{last}{tail}")
        folded.append(row)
    return folded


def _numbered(module: str) -> tuple[str, str, str]:
    """Return a dotted path as what stands before its last number, that number, and what stands after it."""
    match = re.fullmatch(r"(.*\.|)(\d+)((?:\.\D[^.]*)*)", module)
    return (match[1], match[2], match[3]) if match else (module, "", "")
