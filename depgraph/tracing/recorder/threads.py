"""Threads that a model starts: what they do is not recorded."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def noticed(tell: Callable[[], None]) -> Iterator[None]:
    """Call a function in each thread that is started, before it does anything."""
    before = threading.getprofile()

    def profile(frame: Any, event: Any, argument: Any) -> None:
        sys.setprofile(before)
        tell()
        if before is not None:
            before(frame, event, argument)

    threading.setprofile(profile)
    try:
        yield
    finally:
        threading.setprofile(before)
