"""From a TARGET to a module and inputs to run it on, or to a graph. Imports PyTorch only inside functions."""

from __future__ import annotations

from depgraph_cli.loading.loaded import Loaded, load_model
from depgraph_cli.loading.saved import Saved, load_graph
from depgraph_cli.loading.target import parse
from depgraph_cli.options import Request

__all__ = ["Loaded", "Saved", "load"]


def load(request: Request) -> Loaded | Saved:
    """Return the model, or the graph, that a request is about.

    Raises
    ------
    LoadError, GraphError
        Where the file, what is in it or the inputs of the model cannot be had.
    """
    target = parse(request.target)
    return load_graph(request, target) if target.holds_graph else load_model(request, target)
