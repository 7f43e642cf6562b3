"""Loading and tracing a model for a command, with standard output kept clean."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from depgraph_cli.options import Request
from depgraph_cli.progress import Step

if TYPE_CHECKING:
    from depgraph import DependencyGraph
    from depgraph_cli.loading import Loaded, Saved

STEPS = 2
"""Steps of work that `traced` announces."""


def traced(request: Request, step: Step) -> tuple[Loaded | Saved, DependencyGraph]:
    """Return what a request is about, and its dependency graph: traced from a model, or as it is in a file.

    What the model prints goes to standard error, so that standard output holds the answer alone.

    Raises
    ------
    DepgraphError
        Where the model or the graph cannot be loaded, or the model does not run on its inputs or cannot be followed.
    """
    step(f"Loading {request.target}")
    with contextlib.redirect_stdout(sys.stderr), _only_for_answers(), _seldom_collected():
        import depgraph
        from depgraph_cli.loading import Saved, load
        from depgraph_cli.loading.diagnosis import why_it_fails

        loaded = load(request)
        if isinstance(loaded, Saved):
            return loaded, loaded.graph
        gc.freeze()
        step("Tracing")
        try:
            graph = depgraph.trace(
                loaded.program or loaded.module,
                loaded.args,
                loaded.kwargs,
                positions=loaded.positions,
                known=request.known or None,
                fake=request.fake,
            )
        except depgraph.PositionError:
            raise
        except Exception as error:
            if reason := why_it_fails(loaded):
                raise depgraph.LoadError(reason) from error
            raise
    return loaded, graph


def traced_model(request: Request, step: Step) -> tuple[Loaded, DependencyGraph]:
    """Return the model that a request is about, and its dependency graph, for commands that run the model.

    Raises
    ------
    DepgraphError
        As `traced`, and where there is a graph alone.
    """
    loaded, graph = traced(request, step)
    from depgraph import LoadError
    from depgraph_cli.loading import Loaded

    if not isinstance(loaded, Loaded):
        raise LoadError(
            f"This needs a model to run, and {loaded.name} ({loaded.kind}) is a graph alone. Give the model file."
        )
    return loaded, graph


@contextlib.contextmanager
def _seldom_collected() -> Iterator[None]:
    """Look for garbage less often: nearly all that importing and tracing make stays, and looking takes an eighth."""
    before = gc.get_threshold()
    gc.set_threshold(500_000, 100, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextlib.contextmanager
def _only_for_answers() -> Iterator[None]:
    """Send to standard error what is written to standard output past Python: by C code, by commands that are run."""
    try:
        kept = os.dup(1)
        os.dup2(2, 1)
    except OSError:  # one of them is closed: there is nothing to keep clean
        yield
        return
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
