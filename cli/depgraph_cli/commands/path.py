"""`depgraph path`: the shortest path between two positions, node by node."""

from __future__ import annotations

import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from depgraph_cli.options import Request, TakesPositions, json_option, model_command, position, weight_option

if TYPE_CHECKING:
    from depgraph import Terminal

_DIGITS = 15
"""Counts with more digits are rounded for a person."""


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
    """Print the shortest path from input position I to output position J, and how many paths there are.

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
        ends = (start.name, _index(i)), (end.name, _index(j))
        found = depgraph.shortest_path(graph, *ends, weight)
        shortest = depgraph.count_paths(graph, *ends, shortest=True, weight=weight).item()
        paths = depgraph.count_paths(graph, *ends).item()
    answer: dict[str, Any] = {
        "model": loaded.name,
        "source": {"name": start.name, "position": _indices(start, i)},
        "target": {"name": end.name, "position": _indices(end, j)},
        "length": plain(found.length),
        "nodes": nodes(found.nodes),
        "shortest_paths": shortest,
        "paths": paths,
        "weight": weight,
    }
    if as_json:
        import json

        sys.set_int_max_str_digits(0)  # counts may have more digits than Python writes unless told to
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


def _how_many(shortest: int, paths: int) -> str:
    if paths == 1:
        return "The only path."
    which = "The only shortest path" if shortest == 1 else f"One of {_count(shortest)} shortest paths"
    return f"{which}, of {_count(paths)} paths in all."


def _count(number: int) -> str:
    """Return a number in full or, where it has too many digits to be read, about how large it is."""
    if number < 10**_DIGITS:
        return f"{number:,}"
    return f"about {Decimal(number):.1e}"


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
    print_line(out, _how_many(answer["shortest_paths"], answer["paths"]))
    if answer["nodes"]:
        rows = [
            (step, f"{node['op']}[{', '.join(map(str, node['position']))}]", node["source"], node["module"])
            for step, node in enumerate(answer["nodes"], 1)
        ]
        print_table(out, ("", "node", "source", "module"), rows)
