"""Loading a graph: one that was saved, or that of an ONNX file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from depgraph import LoadError
from depgraph_cli.loading.files import shown
from depgraph_cli.loading.target import Target
from depgraph_cli.options import Request

if TYPE_CHECKING:
    from depgraph import DependencyGraph


@dataclass(frozen=True)
class Saved:
    """A graph without a model that could be run.

    Attributes
    ----------
    name : str
        The TARGET as it was given.
    kind : str
        What it is, in a word or two.
    graph : DependencyGraph
    """

    name: str
    kind: str
    graph: DependencyGraph = field(repr=False)
    tracking: str = "fixed"


def load_graph(request: Request, target: Target) -> Saved:
    """Return the graph that a request is about.

    Raises
    ------
    LoadError, GraphError
        Where the file cannot be read or holds no graph, or the request has options that need a model.
    """
    import depgraph

    assert target.file is not None
    kind = "ONNX model" if target.file.suffix.lower() == ".onnx" else "saved graph"
    for option in _for_models(request):
        raise LoadError(f"{option} needs a model file: {shown(target.file)} is {_article(kind)}, whose graph is fixed.")
    return Saved(target.text, kind, depgraph.load(target.file))


def _for_models(request: Request) -> list[str]:
    """Return the options given that say how to trace a model."""
    given = {
        "--positions": request.positions is not None,
        "--known": bool(request.known),
        "--input": bool(request.inputs),
        "--n": request.n is not None,
        "--train": request.train,
    }
    return [option for option, there in given.items() if there]


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'AEIOaeio' else 'a'} {kind}"
