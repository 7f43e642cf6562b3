"""A graph that is rewritten: a copy, each node of which knows the recorded one that it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, fx
from torch.utils import _pytree as pytree

from depgraph.tracing.rows.spaces import NotRowsError, value

aten = torch.ops.aten

#: The key in the meta of a node of a rewritten graph under which the recorded node is that it stands for, whose cost
#: is its cost. None for one that the model does not have, which costs nothing.
STANDS_FOR = "stands_for"

#: The key under which the recorded operator is for whose sake a node is there, by which it goes.
CALLED = "called"


class Copy:
    """A copy of a graph that is being rewritten.

    Attributes
    ----------
    graph : torch.fx.Graph
    at : torch.fx.Node
        Of the copy: what is written goes before it, and is said to be in its module and on its line.
    copied : dict
        Node of the graph to its copy.
    """

    def __init__(self, recorded: fx.Graph) -> None:
        self.graph = fx.Graph(recorded.owning_module)
        self.copied: dict[fx.Node, fx.Node] = {}
        for node in recorded.nodes:
            self.copied[node] = self.graph.node_copy(node, lambda n: self.copied[n])
            self.copied[node].meta = {**node.meta, STANDS_FOR: node}
        self.at = next(iter(self.graph.nodes))

    def add(self, target: Any, *args: Any, **kwargs: Any) -> fx.Node:
        """Write a call that the model does not have."""
        form = run_without_data(target, args, kwargs)
        with self.graph.inserting_before(self.at):
            node = self.graph.call_function(target, args, kwargs)
        node.meta = {key: self.at.meta.get(key) for key in ("module", "line")}
        node.meta |= {"val": form, STANDS_FOR: None, CALLED: self.at.target}
        return node

    def again(self, target: Any, *args: Any, **kwargs: Any) -> fx.Node:
        """Write a call that stands for the one at which this is."""
        node = self.add(target, *args, **kwargs)
        node.meta[STANDS_FOR] = self.at.meta.get(STANDS_FOR)
        return node

    def same(self, places: Mapping[fx.Node, fx.Node]) -> fx.Node:
        """Write the call at which this is once more, other nodes in place of some that it reads."""
        args, kwargs = fx.node.map_arg((self.at.args, dict(self.at.kwargs)), lambda n: places.get(n, n))
        return self.again(self.at.target, *args, **kwargs)

    def flat(self, node: fx.Node, axis: int, ndim: int) -> fx.Node:
        """Write a tensor's elements along one axis of so many."""
        return self.add(aten.reshape.default, node, [value(node).numel() if a == axis else 1 for a in range(ndim)])


def run_without_data(target: Any, args: Any, kwargs: Any) -> Any:
    """Return what a call gives, without data.

    Raises
    ------
    NotRowsError
        Where it does not run on places, or not without data.
    """

    def bare(node: fx.Node) -> Any:
        return pytree.tree_map_only(Tensor, lambda t: torch.empty_like(t, device="meta"), node.meta["val"])

    args, kwargs = fx.node.map_arg((args, dict(kwargs)), bare)
    kwargs = dict(kwargs)
    takes = {a.name for a in target._schema.arguments} if isinstance(target, torch._ops.OpOverload) else set()
    if "device" in takes:
        kwargs["device"] = torch.device("meta")
        kwargs.pop("pin_memory", None)
    try:
        with torch.no_grad():
            return target(*args, **kwargs)
    except Exception as error:
        raise NotRowsError(str(error)) from error


def called(node: fx.Node) -> Any:
    """Return the operator by which a node goes: the recorded one for whose sake it is there."""
    meant = node.meta.get(CALLED)
    return meant if isinstance(meant, torch._ops.OpOverload) else node.target


def rewritten(node: fx.Node) -> bool:
    """Tell whether a node is no copy of a recorded one."""
    return CALLED in node.meta


def stands_for(node: fx.Node) -> fx.Node | None:
    """Return the recorded node whose cost is that of a node, None for one that the model does not have."""
    meant = node.meta.get(STANDS_FOR, node)
    return meant if isinstance(meant, fx.Node) else None
