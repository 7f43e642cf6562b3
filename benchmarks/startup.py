"""Whole commands against an import that they cannot do without, as whole processes in turn."""

import statistics
import subprocess
import sys
import time
from pathlib import Path

_DEPGRAPH = str(Path(sys.executable).with_name("depgraph"))
_FIXTURE = str(Path(__file__).parents[1] / "fixtures" / "rnn.py")


def seconds(command: list[str]) -> float:
    """Return how long a command takes."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def ratios() -> list[tuple[str, str, float]]:
    """Return what is measured, against what, and the ratio: of medians where both are short, else of the fastest."""
    bare = [sys.executable, "-c", "import click"]
    pairs = [(seconds([_DEPGRAPH, "--help"]), seconds(bare)) for _ in range(12)][2:]
    torch = [sys.executable, "-c", "import torch"]
    ours, peers = zip(*[(seconds([_DEPGRAPH, "analyze", _FIXTURE]), seconds(torch)) for _ in range(5)], strict=True)
    return [
        ("`depgraph --help`", '`python -c "import click"`', statistics.median(a / b for a, b in pairs)),
        ("`depgraph analyze fixtures/rnn.py`", '`python -c "import torch"`', min(ours) / min(peers)),
    ]
