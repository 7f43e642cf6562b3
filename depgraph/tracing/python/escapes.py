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
    kind : {"condition", "number", "symbol", "array", "size", "text", "stranger"}
        A symbol is a number that stays symbolic, of which nothing need be said before it ends.
    operation : str
        What took it out: ``"item"``, ``"tolist"``.
    value : object
        What the example inputs made it, ``None`` where that was not seen.
    line : Line or None
        The line of the user's code.
    read : torch.fx.Node
        What it was made of.
    at : int
        How many nodes there were then.
    number : torch.fx.Node or None
        The node of the number where it was symbolic.
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
    at: int
    followed: bool = False
    movable: bool = False
    number: fx.Node | None = None
