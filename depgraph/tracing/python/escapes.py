"""A value that left the graph for Python."""

from __future__ import annotations

from dataclasses import dataclass

from torch import fx

from depgraph.tracing.origin import Line


@dataclass(eq=False)
class Escape:
    """A value that left the graph.

    Attributes
    ----------
    kind : {"condition", "number", "array", "size", "text", "stranger"}
    operation : str
        What took it out: ``"item"``, ``"tolist"``.
    value : object
        What the example inputs made it, ``None`` where that was not seen.
    line : Line or None
        The line of the user's code.
    read : torch.fx.Node
        What it was made of.
    followed : bool
        Whether what Python computes from it is known to be followed.
    movable : bool
        Whether it may be changed on its way, to see what comes of it.
    """

    kind: str
    operation: str
    value: object
    line: Line | None
    read: fx.Node
    followed: bool = False
    movable: bool = False
