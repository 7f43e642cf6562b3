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


def main() -> None:
    """Print the medians and the median ratio."""
    ours = [str(Path(sys.executable).with_name("depgraph")), "--help"]
    peer = [sys.executable, "-c", "import click"]
    pairs = [(seconds(ours), seconds(peer)) for _ in range(12)][2:]
    mine, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(a / b for a, b in pairs)
    print(f"depgraph --help / import click  {mine * 1000:.0f} ms / {theirs * 1000:.0f} ms = {ratio:.2f}")


if __name__ == "__main__":
    main()
