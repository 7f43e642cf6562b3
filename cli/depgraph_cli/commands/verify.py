"""`depgraph verify`: the dependences of one model, measured while it runs."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import click

from depgraph_cli.failures import Failure
from depgraph_cli.options import Request, json_option, model_command
from depgraph_cli.progress import Step, progress

if TYPE_CHECKING:
    from depgraph import DependencyGraph, Verdict
    from depgraph_cli.loading import Loaded

UNSOUND = 1
"""Exit code where the model does what the graph denies."""


@click.command()
@model_command
@click.option(
    "--draws",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="How often parameters and inputs are drawn anew. Dependences that show for few values only need more.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=64,
    show_default=True,
    help="Most positions to try of each input and output: a random choice, where there are more.",
)
@json_option
def verify(request: Request, draws: int, limit: int, as_json: bool) -> None:
    """Run a model and compare what it reads with what depgraph says.

    Input positions are changed one at a time, and the outputs that change with them are compared with the graph. Exit
    code 1 says that an output depends on an input to which the graph has no path; exit code 2 that the graph could not
    be checked.
    """
    from depgraph_cli.session import STEPS, traced_model

    with progress(STEPS) as step:
        loaded, graph = traced_model(request, step)
    verdict = _measured(graph, loaded, draws, limit)
    if not verdict.compared:
        raise Failure(_unchecked(graph, verdict))
    if as_json:
        import json

        click.echo(json.dumps(_answer(loaded, graph, verdict), allow_nan=False))
    else:
        _tell(loaded, graph, verdict)
    if not verdict.sound:
        raise click.exceptions.Exit(UNSOUND)


def _measured(graph: DependencyGraph, loaded: Loaded, draws: int, limit: int) -> Verdict:
    import depgraph

    with contextlib.ExitStack() as shown:
        step: Step | None = None

        def advance(_done: int, total: int) -> None:
            nonlocal step
            step = step or shown.enter_context(progress(total))
            step("Measuring")

        model = loaded.program or loaded.module
        return depgraph.verify(graph, model, loaded.args, loaded.kwargs, draws=draws, limit=limit, progress=advance)


def _unchecked(graph: DependencyGraph, verdict: Verdict) -> str:
    """Return why nothing was compared, with the lines of the model that the graph speaks of."""
    found = [warning.rstrip(".") for warning in graph.warnings if not warning.endswith("(inferred)")]
    granted = f" What the graph takes for granted: {'; '.join(found)}." if found else ""
    return f"{verdict}{granted} Try other example inputs."


def _answer(loaded: Loaded, graph: DependencyGraph, verdict: Verdict) -> dict[str, Any]:
    """Return the object that ``--json`` prints."""

    def counted(pairs: Any) -> dict[str, Any]:
        first = None
        if pairs:
            first = {
                "source": {"name": pairs[0].source, "position": list(pairs[0].source_position)},
                "target": {"name": pairs[0].target, "position": list(pairs[0].target_position)},
            }
        return {"count": len(pairs), "first": first}

    return {
        "model": loaded.name,
        "mode": graph.mode,
        "sound": verdict.sound,
        "exact": verdict.exact,
        "compared": verdict.compared,
        "pairs": verdict.pairs,
        "missed": counted(verdict.missed),
        "extra": counted(verdict.extra),
        "left_out": verdict.left_out,
        "strayed": verdict.strayed,
        "refused": verdict.refused,
        "draws": verdict.draws,
        "dtype": verdict.dtype,
        "notes": list(verdict.notes),
        "warnings": list(graph.warnings),
    }


def _whose_fault(graph: DependencyGraph) -> str:
    if graph.user_rules:
        return f"Check the rules registered for {', '.join(graph.user_rules)}: what they leave out, the graph lacks."
    return "That is a fault of depgraph. Please report it, with the model file and the lines above."


def _tell(loaded: Loaded, graph: DependencyGraph, verdict: Verdict) -> None:
    from depgraph_cli.reporting.tables import console, print_heading, print_line, print_table, title

    out = console()
    print_line(out, title(loaded.name, loaded.kind, graph.mode))
    print_line(out, str(verdict), "bold")
    if not verdict.sound:
        print_line(out, _whose_fault(graph))
    for heading, lines in (("What was measured", verdict.notes), ("What the graph takes for granted", graph.warnings)):
        if lines:
            print_heading(out, heading)
            print_table(out, ("", ""), [("-", line) for line in lines])
