"""Lines that only check a value."""

from __future__ import annotations

import linecache

from depgraph.tracing.origin import Line

_CHECKS = ("assert ", "assert(", "torch._assert", "torch._check")


def is_check(line: Line | None) -> bool:
    """Return whether a line only checks a value: the model either goes on as it does, or not at all."""
    return line is not None and linecache.getline(line.file, line.number).lstrip().startswith(_CHECKS)
