"""`depgraph analyze`: every metric of one model."""

from __future__ import annotations

import click

from depgraph_cli.options import Request, exact_width_option, json_option, model_command, weight_option


@click.command()
@model_command
@weight_option
@exact_width_option
@json_option
def analyze(request: Request, weight: str, exact_width: str, as_json: bool) -> None:
    """Print the work, critical path, path lengths, width and bottleneck of a model."""
    from depgraph_cli.progress import progress
    from depgraph_cli.reporting import summary
    from depgraph_cli.session import STEPS, traced

    with progress(STEPS + summary.STEPS) as step:
        loaded, graph = traced(request, step)
        numbers = summary.summarise(loaded.name, graph, weight, exact_width, step)
    if as_json:
        import json

        click.echo(json.dumps(numbers, allow_nan=False))
        return
    from depgraph_cli.reporting.report import report

    report(numbers, graph, loaded.kind, loaded.tracking)
