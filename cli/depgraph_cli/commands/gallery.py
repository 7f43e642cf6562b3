"""`depgraph gallery`: the model files that come with depgraph."""

from __future__ import annotations

import ast
from pathlib import Path

import click

from depgraph_cli.failures import Failure

_SHIPPED = Path(__file__).parents[1] / "fixtures"
_SOURCES = Path(__file__).parents[3] / "fixtures"


@click.command()
@click.argument("name", required=False)
def gallery(name: str | None) -> None:
    """List the model files that come with depgraph, or print where one of them is.

    With a NAME, as in `depgraph analyze $(depgraph gallery lstm)`, only the path of that file is printed.
    """
    files = {file.stem: file for file in sorted(folder().glob("*.py"))}
    if name is not None:
        if name.removesuffix(".py") not in files:
            raise Failure(f"The gallery has no {name!r}. It has: {', '.join(files)}.")
        click.echo(files[name.removesuffix(".py")])
        return
    from depgraph_cli.reporting.tables import console, print_heading, print_line, print_table

    out = console(wide=True)
    print_table(out, ("name", "what it is"), [(stem, first_line(file)) for stem, file in files.items()])
    print_heading(out, "To analyse one of them:")
    print_line(out, "depgraph analyze $(depgraph gallery lstm)")


def folder() -> Path:
    """Return the folder of the model files: part of the installed package or, in a checkout, beside it."""
    found = _SHIPPED if _SHIPPED.is_dir() else _SOURCES
    if not found.is_dir():
        raise Failure(f"The model files are missing: there is no folder {_SHIPPED}. Install depgraph again.")
    return found


def first_line(file: Path) -> str:
    """Return the first line of a file's docstring, without running the file."""
    return (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").partition("\n")[0]
