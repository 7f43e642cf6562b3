"""``python -m tests.zoo``: measure every model of the zoo and write docs/zoo.md; exit code 1 where one is at fault.

With names (``python -m tests.zoo bert "Conv1d, same"``), measure those and write nothing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from tests.zoo.families import FAMILIES
from tests.zoo.measuring import Row, measured, measured_module
from tests.zoo.modules import CASES
from tests.zoo.table import document

PAGE = Path(__file__).parents[2] / "docs" / "zoo.md"


def main(names: list[str]) -> int:
    """Measure the models of these names, all of them where there are none, and return the exit code."""
    torch.set_num_threads(1)  # the models are tiny
    known = {family.name for family in FAMILIES} | {case.name for case in CASES}
    if unknown := set(names) - known:
        print(f"The zoo has no {', '.join(sorted(unknown))}. It has: {', '.join(sorted(known))}.")
        return 2
    rows = list(_shown(_rows(names)))
    faults = [row for row in rows if row.fault]
    for row in faults:
        print(f"{row.name} ({row.attention}): {row.fault}")
    print(f"{len(rows)} rows, {sum(row.word == 'exact' for row in rows)} exact, {len(faults)} at fault")
    if not names:
        kinds = [row.kind == "torch.nn" for row in rows]
        families = [row for row, module in zip(rows, kinds, strict=True) if not module]
        modules = [row for row, module in zip(rows, kinds, strict=True) if module]
        PAGE.write_text(document(families, modules), encoding="utf-8")
        print(f"Wrote {PAGE}")
    return 1 if faults else 0


def _rows(names: list[str]) -> Iterator[Row]:
    for family in FAMILIES:
        if not names or family.name in names:
            for attention in family.attention:
                yield measured(family, attention)
    for case in CASES:
        if not names or case.name in names:
            yield measured_module(case)


def _shown(rows: Iterator[Row]) -> Iterator[Row]:
    begun = time.perf_counter()
    for row in rows:
        now = time.perf_counter()
        notes = "; ".join(row.verdict.notes) if row.verdict else ""
        print(f"{row.name:32} {row.attention:6} {row.word:7} {now - begun:5.1f} s  {notes}", flush=True)
        begun = time.perf_counter()
        yield row


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
