"""A progress bar on the terminal, for work that takes longer than a second."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator

PATIENCE = 1.0
"""Seconds of work before the bar appears."""

Step = Callable[[str], None]


@contextlib.contextmanager
def progress(steps: int) -> Iterator[Step]:
    """Yield a function to call with the name of each step as it begins; nothing is shown off a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    task = bar.add_task("", total=steps)
    begun = -1

    def step(name: str) -> None:
        nonlocal begun
        begun += 1
        bar.update(task, description=name, completed=begun)

    timer = threading.Timer(PATIENCE, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield step
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
