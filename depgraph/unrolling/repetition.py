"""Layers that repeat: followed three times, then copied.

A model of many equal layers is one stretch of calls over and over again. What a rule makes of a call depends on its
arguments alone, and not on what the nodes in them are called: if the third layer is given what the second was given,
every node of the layer before replaced by its counterpart one layer on, then it becomes the nodes that the second
became, one layer on; and if it also hands on what the second handed on, one layer on, so does every layer after it.
Whether that is so is checked, in the calls and in the values handed on; where it is not, every layer is followed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from depgraph.dag.runs import Runs, stack
from depgraph.rules.values import FIRST, Value, core
from depgraph.unrolling.calls import Made
from depgraph.unrolling.layers import FOLLOWED, find, same
from depgraph.unrolling.memory import reserve

if TYPE_CHECKING:
    from depgraph.unrolling.builder import Builder, Mark

Where = Callable[[fx.Node], tuple[str, str]]


class Repetition:
    """Watches a graph being followed, and copies layers when it can.

    Parameters
    ----------
    nodes : sequence of torch.fx.Node
        All nodes of the graph.
    placeholders : mapping
        Name of each placeholder to its `Value`.

    Attributes
    ----------
    kept : set of torch.fx.Node
        Nodes whose values are needed longer than their readers need them.
    """

    def __init__(self, nodes: Sequence[fx.Node], placeholders: Mapping[str, Any]) -> None:
        self.calls = [node for node in nodes if node.op == "call_function"]
        self.number = {node: k for k, node in enumerate(self.calls)}
        self.layers = find(self.calls, self.number, placeholders)
        self.kept: set[fx.Node] = set()
        self.marks: list[Mark] = []
        self.seen: list[int] = []
        self.sites: list[int] = []
        self.handed_on: dict[int, Any] = {}
        if self.layers is not None:
            start, length, times = self.layers
            after = start + length * times
            for layer in range(FOLLOWED, times):
                for k in range(length):
                    node = self.calls[start + layer * length + k]
                    if any(self.number.get(user, after) >= after for user in node.users):
                        self.kept.add(self.calls[start + (FOLLOWED - 1) * length + k])

    def before(
        self, node: fx.Node, values: dict[fx.Node, Any], builder: Builder, said: int, where: Where
    ) -> list[fx.Node]:
        """Take notice that a call is about to be followed; return the calls that need not be, which may be none.

        Parameters
        ----------
        node : torch.fx.Node
        values : dict
            Of what has been followed and is still needed. Those that copied calls hand on are entered.
        builder : Builder
        said : int
            How many warnings there have been.
        where : callable
            Gives the module path and the ``file:line`` of a node.
        """
        if self.layers is None or node not in self.number:
            return []
        start, length, _ = self.layers
        k = self.number[node] - start
        if 0 <= k < length * FOLLOWED and k % length:
            self.sites.append(len(builder.operations))
        if k % length or not 0 <= k // length <= FOLLOWED:
            return []
        self.marks.append(builder.mark())
        self.seen.append(said)
        self.sites = self.sites if k // length == FOLLOWED else []
        if k // length == FOLLOWED - 1:
            self.handed_on = self._handed_on(values, FOLLOWED - 2)
        self.sites.append(len(builder.operations))
        if k // length < FOLLOWED or not self._holds(values, builder, where):
            return []
        return self._copy(values, builder, where)

    def _handed_on(self, values: dict[fx.Node, Any], layer: int) -> dict[int, Any]:
        """Return what a layer has computed that something after it reads, by the place of the call in the layer."""
        assert self.layers is not None
        start, length, _ = self.layers
        own = self.calls[start + layer * length : start + (layer + 1) * length]
        end = start + (layer + 1) * length
        return {
            k: values[node]
            for k, node in enumerate(own)
            if node in values and any(self.number.get(user, end) >= end for user in node.users)
        }

    def _holds(self, values: dict[fx.Node, Any], builder: Builder, where: Where) -> bool:
        """Tell whether the last layer was to the one before what the next ones will be to it."""
        base, two, three, end = self.marks[-4:]
        step = end.count - three.count
        if step != three.count - two.count or self.seen[-3] != self.seen[-1] or not step:
            return False
        for node, first, last in zip(self._model(), self.sites, self.sites[1:], strict=False):
            if any((made.module, made.source) != where(node) for made in builder.operations[first:last]):
                return False
        now = self._handed_on(values, FOLLOWED - 1)
        return now.keys() >= self.handed_on.keys() and all(
            same(moved(self.handed_on[k], base.count, step), now[k]) for k in self.handed_on
        )

    def _model(self) -> list[fx.Node]:
        """Return the calls of the last layer that is followed, of which the others are copies."""
        assert self.layers is not None
        start, length, _ = self.layers
        return self.calls[start + (FOLLOWED - 1) * length : start + FOLLOWED * length]

    def _copy(self, values: dict[fx.Node, Any], builder: Builder, where: Where) -> list[fx.Node]:
        """Copy the last layer to all that follow, and return their calls."""
        assert self.layers is not None
        start, length, times = self.layers
        base, _, three, end = self.marks[-4:]
        step, operations = end.count - three.count, end.operations - three.operations
        model = self._model()
        place = {node: k for k, node in enumerate(model)}
        reads = stack(builder.reads_since(three))
        blocks, calls = builder.blocks_since(three), builder.calls[three.calls :]
        inner = reads.starts >= base.count
        last = builder.operations[-1]
        reserve((times - FOLLOWED) * step, last.name, last.source)
        for layer in range(FOLLOWED, times):
            ahead = layer - FOLLOWED + 1
            own = self.calls[start + layer * length : start + (layer + 1) * length]
            shift = inner * (ahead * step)
            builder.extend(Runs(reads.indptr, reads.starts + shift, reads.stops + shift), blocks, ahead * step)
            for k, node in enumerate(own):
                for number in range(self.sites[k], self.sites[k + 1]):
                    operation = builder.operations[number]
                    module, source = where(node)
                    builder.operations.append(
                        replace(
                            operation,
                            module=module,
                            source=source,
                            start=operation.start + ahead * step,
                            stop=operation.stop + ahead * step,
                        )
                    )
                    builder.elements.append(builder.elements[number])
                    builder.chains.append(builder.chains[number])
            for made in calls:
                site = own[place[made.site]]
                numbers = [number + ahead * operations for number in made.operations]
                builder.calls.append(
                    Made(own[place[made.node]] if made.node in place else made.node, site, numbers, made.shares)
                )
            for k, node in enumerate(own):
                known = model[k] in self.kept or k in self.handed_on
                if known and model[k] in values:
                    values[node] = moved(values[model[k]], base.count, ahead * step)
        return self.calls[start + FOLLOWED * length : start + times * length]


def moved(tree: Any, first: int, step: int) -> Any:
    """Return values with every node from the first one on replaced by the one so many numbers later."""

    def move(value: Any) -> Any:
        if not isinstance(value, Value):
            return value
        thin = core(value.codes)
        codes = torch.where(thin >= first + FIRST, thin + step, thin).expand(value.shape)
        return replace(value, codes=codes)

    return pytree.tree_map(move, tree)
