"""`depgraph render`: a drawing of one model."""

from __future__ import annotations

from pathlib import Path

import click

from depgraph_cli.options import Request, model_command


@click.command()
@model_command
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The file to write: .svg, .png, or .dot / .gv for DOT source. [default: DOT source on standard output]",
)
@click.option(
    "--granularity",
    type=click.Choice(["auto", "operation", "position"]),
    default="auto",
    show_default=True,
    help="A node of the drawing is an operation, or an operation at one position (auto: if there are few).",
)
def render(request: Request, output: Path | None, granularity: str) -> None:
    """Draw a model's dependency graph, grouped by module, with its critical path highlighted."""
    from depgraph_cli.output import check_writable, whole_file
    from depgraph_cli.progress import progress
    from depgraph_cli.session import STEPS, traced

    if output is not None:
        check_writable(output, (".svg", ".png", ".dot", ".gv"))
    import depgraph

    with progress(STEPS + 1) as step:
        loaded, graph = traced(request, step)
        step("Drawing")
        if output is None:
            source = depgraph.render(graph, granularity=granularity, title=loaded.name)
        else:
            with whole_file(output) as draft:
                depgraph.render(graph, draft, granularity=granularity, title=loaded.name)
    if output is None:
        click.echo(source, nl=not source.endswith("\n"))
    else:
        click.echo(f"Wrote {output}")
