"""The table of all measurements, as a page of the documentation."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

from benchmarks.comparison import Row
from benchmarks.models import Figure
from benchmarks.peers import PEERS
from benchmarks.recording import Recordings

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"

_HEAD = """# How fast

Written by `make bench`. Every row is measured in one run, on the same graph, and every answer of every library is
compared with depgraph's: a difference would have ended the run.

Python {python}, {cores} cores; {versions}.

"""
_LONGEST = """## The longest path

`depgraph.critical_path(graph).length` against `networkx.dag_longest_path_length` and
`rustworkx.dag_longest_path_length`; igraph and SciPy have nothing for it. Each library has built its own graph before,
which is not counted; what depgraph keeps of an earlier search is thrown away before each. A column says how many times
as long as depgraph a library takes.

"""
_DISTANCES = """## All shortest paths from inputs to outputs

`depgraph.path_lengths(graph)` against networkx' `single_source_shortest_path_length`, rustworkx' `distance_matrix`
where its table of all nodes fits into 4 GB and `dijkstra_shortest_path_lengths` elsewhere, igraph's `distances` and
SciPy's `csgraph.dijkstra(unweighted=True)`. depgraph finds all of them. Where a
library would take longer than some seconds, it is given sources from the middle outwards as long as these last, as many
at once as it can take, and its time is that for all of them in proportion.

"""
_MODELS = """## Models at real sizes

Memory is what is needed on top of what exporting the model took.

"""
_RECORDING = """## Recording a model

depgraph runs the model once and writes down what it does; `torch.export.export(model, args, strict=False)` does the
same for other purposes. Each row is measured in a process of its own, the fastest call after the first of each. The
last two columns are what a plain run takes, and what unrolling takes that makes a graph of the recording.

"""


def page(
    rows: dict[str, list[Row]], recordings: list[Recordings], figures: list[Figure],
    others: list[tuple[str, str, float]],
) -> str:  # fmt: skip
    """Return the whole page."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "numpy", *_packages()))
    parts = [_HEAD.format(python=platform.python_version(), cores=os.cpu_count(), versions=versions)]
    for title, measure in ((_LONGEST, "longest"), (_DISTANCES, "distances")):
        parts += [title, _comparison(rows[measure]), "\n"]
    parts += [_RECORDING, _recordings(recordings), "\n"]
    parts += [_MODELS, _figures(figures), "\n## Other\n\n"]
    table = [("what", "against", "ratio"), *((what, against, f"{ratio:.2f}") for what, against, ratio in others)]
    parts.append(_table(table))
    return "".join(parts)


def _packages() -> list[str]:
    return [peer.name for peer in PEERS]


def _comparison(rows: list[Row]) -> str:
    table = [("graph", "nodes", "edges", "depgraph", *(peer.name for peer in PEERS), "fastest of them")]
    for row in rows:
        dag = row.graph
        cells = [
            row.peers[peer.name].reason or _times(row.peers[peer.name].seconds / row.ours.seconds) for peer in PEERS
        ]
        best = "–" if row.ratio is None else f"**{_times(row.ratio)}**"
        table.append((row.case, f"{dag.nodes:,}", f"{dag.edges:,}", seconds(row.ours.seconds), *cells, best))
    return _table(table)


def _figures(figures: list[Figure]) -> str:
    table = [("what", "takes", "against", "which takes", "ratio", "memory", "")]
    for figure in figures:
        times = (seconds(figure.seconds), figure.against, seconds(figure.peer), f"**{figure.ratio:.2f}**")
        table.append((figure.what, *times, f"{figure.memory:.2f} GB", figure.remark))
    return _table(table)


def _recordings(recordings: list[Recordings]) -> str:
    table = [("model", "operations / nodes", "recording", "torch.export", "ratio", "plain run", "unrolling")]
    for row in recordings:
        times = (
            seconds(row.ours),
            *(("–", row.reason) if row.reason else (seconds(row.exported), f"**{row.ratio:.2f}**")),
        )
        table.append((row.model, row.size, *times, seconds(row.forward), seconds(row.unrolled)))
    return _table(table)


def _table(rows: list[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + " --- |" * len(rows[0]))
    return "\n".join(lines) + "\n"


def _times(ratio: float) -> str:
    return f"×{ratio:,.0f}" if ratio >= 10 else f"×{ratio:.1f}"


def seconds(number: float) -> str:
    """Return a time in the unit that suits it."""
    return (
        f"{number:.2f} s" if number >= 1 else f"{number * 1e3:.1f} ms" if number >= 1e-3 else f"{number * 1e6:.0f} µs"
    )
