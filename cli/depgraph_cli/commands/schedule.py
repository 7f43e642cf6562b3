"""`depgraph schedule`: what a number of workers would make of a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from depgraph_cli.options import Request, json_option, model_command, weight_option

if TYPE_CHECKING:
    from depgraph import Schedule


@click.command()
@model_command
@click.option(
    "--workers",
    type=click.IntRange(1, 2**31 - 1),
    default=8,
    show_default=True,
    metavar="P",
    help="How many identical workers there are; the table goes up to them by powers of two.",
)
@weight_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write the schedule to a .json file as a trace, to be opened in https://ui.perfetto.dev or chrome://tracing.",
)
@json_option
def schedule(request: Request, workers: int, weight: str, output: Path | None, as_json: bool) -> None:
    """Schedule a model on P workers, each taking the node with the longest remaining path.

    Prints how long that takes, and the bounds between which it lies.
    """
    from depgraph_cli.output import check_writable, whole_file

    if output is not None:
        check_writable(output, (".json",))
    import depgraph
    from depgraph_cli.progress import progress
    from depgraph_cli.session import STEPS, traced

    with progress(STEPS + 2) as step:
        loaded, graph = traced(request, step)
        step("Schedule")
        found = depgraph.schedule(graph, workers, weight)
        answer = _answer(loaded.name, found, graph.warnings)
        if output is not None:
            step("Trace")
            with whole_file(output) as draft:
                found.save(draft)
    if as_json:
        import json

        click.echo(json.dumps(answer, allow_nan=False))
    else:
        _tell(answer)
        if output is not None:
            click.echo(f"\nWrote {output}")


def _answer(name: str, found: Schedule, warnings: list[str]) -> dict[str, Any]:
    """Return the figures of a schedule in the shape that is written as JSON."""
    from depgraph_cli.reporting.summary import plain

    return {
        "model": name,
        "weight": found.weight,
        "workers": found.workers,
        "work": plain(found.work),
        "span": plain(found.span),
        "makespan": plain(found.makespan),
        "speedup": found.speedup,
        "utilisation": found.utilisation,
        "bounds": {
            "lower": plain(found.bounds.lower),
            "upper": plain(found.bounds.upper),
            "guarantee": found.guarantee,
        },
        "curve": [{**point._asdict(), "makespan": plain(point.makespan)} for point in found.curve],
        "warnings": list(warnings),
    }


def _tell(answer: dict[str, Any]) -> None:
    from depgraph_cli.reporting.tables import console, print_heading, print_line, print_table

    out = console()
    workers = f"{answer['workers']:,} worker" + "s" * (answer["workers"] > 1)
    print_line(out, f"{answer['model']}: a schedule on {workers}, weight {answer['weight']}", "bold")
    out.print()
    bounds = answer["bounds"]
    rows = (
        ("work", _time(answer["work"]), "T₁: what one worker takes"),
        ("critical path", _time(answer["span"]), "T∞: what unlimited workers take"),
        ("makespan", _time(answer["makespan"]), f"what {workers} take" + "s" * (answer["workers"] == 1)),
        ("at least", _time(bounds["lower"]), "any schedule: the larger of T₁/p and T∞"),
        ("at most", _time(bounds["upper"]), "any greedy schedule: (T₁ − T∞)/p + T∞ (Brent)"),
        ("times the best", bounds["guarantee"], "at most: 2 − 1/p (Graham)"),
    )
    print_table(out, ("", "", ""), rows)
    print_heading(out, "Speed-up")
    curve = [
        (point["workers"], _time(point["makespan"]), point["speedup"], 100 * point["utilisation"])
        for point in answer["curve"]
    ]
    print_table(out, ("workers", "makespan", "speed-up", "utilisation (%)"), curve)
    # Which axes were inferred is no matter of a schedule.
    warnings = [warning for warning in answer["warnings"] if not warning.endswith("(inferred)")]
    if warnings:
        print_heading(out, "Warnings")
        for warning in warnings:
            print_line(out, f"- {warning}")


def _time(value: int | float) -> int | float | str:
    """Return a time as a cell of a table: short ones, as of nodes measured in seconds, with more than two decimals."""
    return f"{value:.3g}" if 0 < value < 1 else value
