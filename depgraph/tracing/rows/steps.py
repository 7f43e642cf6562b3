"""The steps of a loop in Python, as they stand in a graph."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import fx

from depgraph.tracing.rows.spaces import NotRowsError, name_of, value

aten = torch.ops.aten

#: Gives the number of steps of a loop: from how many there are, and how many there could be.
Steps = Callable[[int, int], int]

_SINKS = frozenset(("index_add", "scatter_add", "index_put", "index_copy", "scatter"))
#: Operators that leave an index what it is.
RENAMING = frozenset(
    ("select", "squeeze", "view", "reshape", "unsqueeze", "flatten", "to", "_to_copy", "detach", "alias", "clone")
)


class Step:
    """One step of a loop: the nodes that depend on its index, up to the one that puts rows back.

    Attributes
    ----------
    index : torch.fx.Node
    nodes : list of torch.fx.Node
        All but the last.
    indices : set of torch.fx.Node
        The index, however it is shaped.
    end : torch.fx.Node
        What puts rows back.
    base
        What it puts them to.

    Raises
    ------
    NotRowsError
        Where several nodes put rows back, or something else comes of the index.
    """

    def __init__(self, index: fx.Node) -> None:
        self.index = index
        self.nodes: list[fx.Node] = []
        self.indices = {index}
        inside = {index}
        ends: list[fx.Node] = []
        for node in after(index):
            read = [n for n in node.all_input_nodes if n in inside or n in ends]
            if not read or any(n in ends for n in read):
                continue
            if name_of(node) in _SINKS and node.args[0] not in inside:
                ends.append(node)
                continue
            inside.add(node)
            self.nodes.append(node)
            if name_of(node) in RENAMING and node.args[0] in self.indices:
                self.indices.add(node)
        if len(ends) != 1 or any(user not in inside and user not in ends for n in inside for user in n.users):
            raise NotRowsError
        self.end = ends[0]
        self.base = self.end.args[0]
        if any(n is self.base for n in fx.node.map_arg(self.end.args[1:], lambda n: n) if isinstance(n, fx.Node)):
            raise NotRowsError

    @property
    def all(self) -> list[fx.Node]:
        """The nodes of the step, with the one that puts rows back."""
        return [*self.nodes, self.end]


def after(node: fx.Node) -> list[fx.Node]:
    """Return the nodes of a graph after one."""
    found: list[fx.Node] = []
    while (node := node.next).op != "root":
        found.append(node)
    return found


def is_walk(node: fx.Node) -> bool:
    """Tell whether a node gives the places at which a mask of one axis is true, one a row."""
    mask = node.args[0] if node.target is aten.nonzero.default else None
    return isinstance(mask, fx.Node) and value(mask).ndim == 1
