"""A long path told in a few rows: stretches of it, each in one operation, one module or one run of alike layers."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

_MANY = 20
"""Above this many rows, whole modules are put in a row, and runs of alike modules in one."""


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
    if len(rows) <= _MANY:
        return rows
    return _fold(_merge([_single(node, _block(node["module"])) for node in path], by_operation=False))


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
