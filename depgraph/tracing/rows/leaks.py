"""Whether the number of rows left the graph: what Python made of it reads the mask, and no operator shows that.

``f(x[i]) / len(i)`` divides by a number. Every tensor whose size depends on values counts, if Python was told that
size, wherever the number went: it may have gone anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from torch import fx

from depgraph.tracing.rows.following import Following
from depgraph.tracing.rows.sizes import sized
from depgraph.tracing.rows.spaces import Told
from depgraph.tracing.rows.widening import follow
from depgraph.tracing.rows.writing import Copy


class Ask(Protocol):
    """A tensor whose size Python was told; see `depgraph.tracing.recorder.recorder.Ask`."""

    node: fx.Node | None
    axis: int | None
    walk: bool


def told(graph: fx.Graph, asks: Iterable[Ask]) -> Told:
    """Return what Python was told of sizes that values decide.

    Parameters
    ----------
    graph : torch.fx.Graph
        As it was recorded, with what was asked about still in it.
    asks : iterable of Ask
    """
    asks = list(asks)
    if not asks:
        return Told()
    depends = sized(graph)
    copy = Copy(graph)
    following = Following(copy)
    follow(following)
    walked: dict[fx.Node, None] = {}
    for ask in asks:
        if ask.node is None:
            return Told(True)
        rows = following.get(copy.copied[ask.node])
        if ask.node not in depends or (rows is not None and rows.space.mask is None):
            continue
        ndim = ask.node.meta["val"].ndim
        if rows is not None and ask.axis is not None and ask.axis % ndim != rows.axis:
            continue
        if not ask.walk:
            return Told(True)
        walked[ask.node] = None
    return Told(False, tuple(walked))
