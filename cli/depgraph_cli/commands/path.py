"""`depgraph path`: the shortest path between two positions, node by node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from depgraph_cli.options import Request, TakesPositions, json_option, model_command, position, weight_option

if TYPE_CHECKING:
    from depgraph import Terminal


@click.command(cls=TakesPositions)
@model_command
@click.argument("i", type=position)
@click.argument("j", type=position)
@click.option("--source", metavar="NAME", help="The input that I is a position of. [default: the first tracked one]")
@click.option("--target", metavar="NAME", help="The output that J is a position of. [default: the first]")
@weight_option
@json_option
def path(
    request: Request,
    i: tuple[int, ...],
    j: tuple[int, ...],
    source: str | None,
    target: str | None,
    weight: str,
    as_json: bool,
) -> None:
    """Print the shortest path from input position I to output position J.

    I and J are integers, or one for each tracked axis, as in 3,4. They count from 0; negative ones from the end, so
    that -1 is the last.
    """
    import depgraph
    from depgraph_cli.progress import progress
    from depgraph_cli.reporting.summary import nodes, plain
    from depgraph_cli.session import STEPS, traced

    with progress(STEPS + 1) as step:
        loaded, graph = traced(request, step)
        start = graph.inputs[source] if source is not None else graph.inputs.default()
        end = graph.outputs[target] if target is not None else graph.outputs.default()
        step("Shortest path")
        found = depgraph.shortest_path(graph, (start.name, _index(i)), (end.name, _index(j)), weight)
    answer: dict[str, Any] = {
        "model": loaded.name,
        "source": {"name": start.name, "position": _indices(start, i)},
        "target": {"name": end.name, "position": _indices(end, j)},
        "length": plain(found.length),
        "nodes": nodes(found.nodes),
        "weight": weight,
    }
    if as_json:
        import json

        click.echo(json.dumps(answer, allow_nan=False))
    else:
        _tell(answer)


def _index(indices: tuple[int, ...]) -> int | tuple[int, ...]:
    return indices[0] if len(indices) == 1 else indices


def _indices(terminal: Terminal, indices: tuple[int, ...]) -> list[int]:
    """Return one index for each tracked axis, counted from the beginning."""
    number, found = terminal.index(_index(indices)), []
    for size in reversed(terminal.grid):
        number, index = divmod(number, size)
        found.append(index)
    return found[::-1]


def _tell(answer: dict[str, Any]) -> None:
    from depgraph_cli.reporting.tables import amount, cell, console, print_line, print_table

    out = console(wide=True)
    start, end = (
        f"{terminal['name']}[{', '.join(map(str, terminal['position']))}]"
        for terminal in (answer["source"], answer["target"])
    )
    if answer["length"] < 0:
        print_line(out, f"No path: {end} does not depend on {start}.")
        return
    length = cell(amount(answer["length"], answer["weight"]))
    unit = "" if answer["weight"] == "seconds" else f"{answer['weight']} "
    print_line(out, f"{start} → {end}: {length} {unit}on the shortest path", "bold")
    if answer["nodes"]:
        rows = [
            (step, f"{node['op']}[{', '.join(map(str, node['position']))}]", node["source"], node["module"])
            for step, node in enumerate(answer["nodes"], 1)
        ]
        print_table(out, ("", "node", "source", "module"), rows)
