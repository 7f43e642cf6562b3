"""``depgraph --help`` against a bare ``python -c "import click"``, as whole processes in turn."""

import statistics
import subprocess
import sys
import time
from pathlib import Path


def seconds(command: list[str]) -> float:
    """Return how long a command takes."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def ratio() -> tuple[str, str, float]:
    """Return what is measured, against what, and the median ratio."""
    ours = [str(Path(sys.executable).with_name("depgraph")), "--help"]
    peer = [sys.executable, "-c", "import click"]
    pairs = [(seconds(ours), seconds(peer)) for _ in range(12)][2:]
    return "`depgraph --help`", '`python -c "import click"`', statistics.median(a / b for a, b in pairs)
