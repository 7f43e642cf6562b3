"""What a command does when it cannot go on: one clear message and exit code 2, or 130 when interrupted."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import ParamSpec

import click

Arguments = ParamSpec("Arguments")

FAILED = 2
INTERRUPTED = 130


class Failure(click.ClickException):
    """An error that click prints as ``Error: message``."""

    exit_code = FAILED


def reported(function: Callable[Arguments, None], show_traceback: bool) -> Callable[Arguments, None]:
    """Return the function with its errors turned into one message; with the traceback first where asked for."""

    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        from depgraph import DepgraphError

        try:
            function(*args, **kwargs)
        except click.ClickException:
            raise
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
        except DepgraphError as error:
            _show(show_traceback)
            raise Failure(str(error)) from None
        except (click.exceptions.Exit, BrokenPipeError):
            raise
        except Exception as error:
            _show(show_traceback)
            hint = "" if show_traceback else " Run again with --traceback to see where."
            raise Failure(f"{type(error).__name__}: {error or 'no message'}.{hint}") from None

    return run


def _show(wanted: bool) -> None:
    if wanted:
        traceback.print_exc(file=sys.stderr)
