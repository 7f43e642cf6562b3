"""The pass over a recorded graph: rows gathered, worked on and put back become all places, worked on where they are.

``i = where(m)``, ``y.index_add(0, i, f(x[i]))`` is ``y.index_add(0, all, where(m, f(x), 0))`` if f does the same to
each row, whatever the other rows are; and ``f(x[order])[order.argsort()]`` is ``f(x)``. The graph that comes out
computes what the model computes, so what it reads is what the model reads, and no rule has to know of rows.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import fx

from depgraph.tracing.rows.arguments import RowCall
from depgraph.tracing.rows.following import Following
from depgraph.tracing.rows.loops import every_place
from depgraph.tracing.rows.rowwise import row_by_row
from depgraph.tracing.rows.sinks import sink
from depgraph.tracing.rows.sizes import sized
from depgraph.tracing.rows.sources import begins, fills, source
from depgraph.tracing.rows.spaces import NOTHING, NotRowsError, Told, Wide
from depgraph.tracing.rows.writing import STANDS_FOR, Copy


@dataclass(frozen=True, eq=False)
class Widened:
    """A graph in which rows are followed at every place.

    Attributes
    ----------
    graph : torch.fx.Graph
        The recorded one where nothing was put back.
    results : list of torch.fx.Node
        For each output the node that holds it.
    sinks : int
        At how many places something was put back.
    """

    graph: fx.Graph
    results: list[fx.Node]
    sinks: int


def widened(graph: fx.Graph, results: Sequence[fx.Node], told: Told = NOTHING) -> Widened:
    """Return what a recorded graph is with rows followed at every place.

    Parameters
    ----------
    graph : torch.fx.Graph
        Stays as it is.
    results : sequence of torch.fx.Node
        The first nodes that it returns.
    told : Told
        What Python was told of sizes that values decide. If it was told any, it may have put it anywhere.
    """
    nothing = Widened(graph, list(results), 0)
    if told.sizes or not begins(graph):
        return nothing
    copy = Copy(graph)
    try:
        bodies = [pick for walked in told.walked for pick in every_place(copy, copy.copied[walked])]
    except NotRowsError:
        return nothing
    sinks = follow(Following(copy))
    if not sinks:
        return nothing
    settle(copy.graph)
    if not set(bodies).isdisjoint(copy.graph.nodes):  # what a loop does where its mask is false is not nothing
        return nothing
    if sized(copy.graph):  # as many rows as in the example are left somewhere, and how many they are can be computed
        return nothing
    held = copy.graph.output_node().args[0]
    assert isinstance(held, (list, tuple))
    return Widened(copy.graph, list(held[: len(results)]), sinks)  # type: ignore[arg-type]


def follow(following: Following) -> int:
    """Go through a copy of a graph and rewrite it; return at how many places something was put back."""
    sinks = 0
    for node in list(following.copy.graph.nodes):
        if node.op != "call_function":
            continue
        following.copy.at = node
        try:
            new = _followed(following, node)
        except NotRowsError:
            continue
        if new is not None:
            node.replace_all_uses_with(new)
            sinks += 1
    return sinks


def _followed(following: Following, node: fx.Node) -> fx.Node | None:
    """Enter what one node makes of rows, or return what stands in its place where it puts them back."""
    if node.target is operator.getitem:
        if (rows := following.get(node.args[0])) is not None and node not in following.wide:
            part = following.copy.again(operator.getitem, rows.node, node.args[1])
            following.wide[node] = Wide(part, rows.axis, rows.space)
        return None
    if not isinstance(node.target, torch._ops.OpOverload) or source(following, node) or fills(following, node):
        return None
    spaces = {following.wide[read].space for read in node.all_input_nodes if read in following.wide}
    if not spaces:
        return None
    if len(spaces) > 1:
        raise NotRowsError
    (space,) = spaces
    if (new := sink(following, node)) is not None:
        return new
    made, axis = row_by_row(RowCall(following, node, space))
    following.wide[node] = Wide(made, axis, space)
    return None


def settle(graph: fx.Graph) -> None:
    """Drop what nothing reads any more; what is done both at every place and to the rows picked costs what it did."""
    graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))
    standing: dict[fx.Node, fx.Node] = {}
    for node in graph.nodes:
        meant = node.meta.get(STANDS_FOR)
        if meant is None:
            continue
        if meant in standing:
            node.meta[STANDS_FOR] = None
        standing[meant] = node
    graph.lint()
