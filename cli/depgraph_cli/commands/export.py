"""`depgraph export`: the graph of one model as a file for other tools."""

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
    required=True,
    help="The file to write: .json (node-link; a TARGET for other commands), .graphml, .gexf, or .dot / .gv.",
)
@click.option(
    "--granularity",
    type=click.Choice(["position", "operation"]),
    default="position",
    show_default=True,
    help="A node of the graph is an operation at one position, or an operation.",
)
def export(request: Request, output: Path, granularity: str) -> None:
    """Write a model's dependency graph to a file, node by node and edge by edge."""
    from depgraph_cli.output import check_writable
    from depgraph_cli.progress import progress
    from depgraph_cli.session import STEPS, traced

    check_writable(output, (".json", ".graphml", ".gexf", ".dot", ".gv"))
    import depgraph

    with progress(STEPS + 1) as step:
        _, graph = traced(request, step)
        step("Writing")
        depgraph.save(graph.collapse() if granularity == "operation" else graph, output)
    click.echo(f"Wrote {output}")
