"""Asking for memory before it is taken, so that running out is a sentence and not a killed process."""

from __future__ import annotations

import os
from pathlib import Path

from depgraph.errors import TracingError

# What making one node takes at the peak: codes, labels, keys, their sorting, and the runs that are kept.
BYTES_PER_ELEMENT = 80


def available() -> int | None:
    """Return how many bytes of memory are free, None where the system does not say."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # pragma: no cover - systems without sysconf
        return None


def reserve(elements: int, operation: str, source: str) -> None:
    """Refuse an operation that would not fit into memory.

    Raises
    ------
    TracingError
        Where the nodes of so many elements need more memory than is free.
    """
    need = elements * BYTES_PER_ELEMENT
    if need < 1 << 28:  # not worth asking the system
        return
    free = available()
    if free is not None and need > free:
        place = f"{source}: " if source else ""
        raise TracingError(
            f"{place}{operation} tells {elements:,} elements apart, which takes about {need / 1e9:.0f} GB of memory; "
            f"{free / 1e9:.0f} GB are free. Use a shorter input, or track fewer axes."
        )
