"""Recording a model against exporting it with ``torch.export``, running it, and unrolling what was recorded."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Any

import torch

from benchmarks.apart import apart
from benchmarks.recorded import MODELS, Recorded
from depgraph.tracing.capture import capture
from depgraph.unrolling.positions import plan
from depgraph.unrolling.trace import unroll

#: Runs after the first, of which the fastest counts, and the seconds after which there is no further one.
_REPEATS, _PATIENCE = 5, 10.0
_LIMIT, _GIGABYTES = 600.0, 16.0


@dataclass
class Recordings:
    """What one model took.

    Attributes
    ----------
    model : str
    ours, exported, forward, unrolled : float
        Seconds of recording, `torch.export.export`, a plain run, and unrolling; that of the export is NaN where it
        refuses.
    reason : str
        Why it does.
    size : str
        How many operations were recorded, and how many nodes the graph has.
    """

    model: str
    ours: float
    exported: float
    forward: float
    unrolled: float
    reason: str
    size: str

    @property
    def ratio(self) -> float:
        """Ours, as a share of the export."""
        return self.ours / self.exported


def second(function: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of the fastest call but the first, which warms up, and what it returns."""
    begin, best, answer = time.perf_counter(), float("inf"), function()
    for _ in range(_REPEATS):
        start = time.perf_counter()
        answer = function()
        best = min(best, time.perf_counter() - start)
        if time.perf_counter() - begin > _PATIENCE:
            break
    return best, answer


def measured(case: Recorded) -> Recordings:
    """Measure one model, in evaluation mode."""
    warnings.simplefilter("ignore")
    logging.disable()
    torch.manual_seed(0)
    model, args = case.build()
    model.eval()
    ours, program = second(lambda: capture(model, args))
    with torch.no_grad():
        forward, _ = second(lambda: model(*args))
    unrolled, graph = second(lambda: unroll(program, plan(program, None, None)))
    operations = sum(node.op == "call_function" for node in program.graph.nodes)
    size = f"{operations:,} / {graph.dag.nodes:,}"
    exported, reason = float("nan"), ""
    try:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):  # it prints the graph it gave up on
            exported, _ = second(lambda: torch.export.export(model, args, strict=False))
    except Exception as error:
        reason = refusal(error)
    return Recordings(case.name, ours, exported, forward, unrolled, reason, size)


def refusal(error: Exception) -> str:
    """Return in a few words why `torch.export` refuses a model."""
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {first.partition(' (unhinted')[0]}"


def recordings(models: tuple[Recorded, ...] = MODELS) -> Iterator[Recordings]:
    """Yield what each model takes, measured in a process of its own."""
    for case in models:
        outcome = apart(lambda case=case: (0.0, measured(case)), _LIMIT, _GIGABYTES)
        assert not outcome.reason, (case.name, outcome.reason)
        yield outcome.answer
