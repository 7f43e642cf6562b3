"""Layers that repeat: followed three times, then copied.

A model of many equal layers is one stretch of calls over and over again. What a rule makes of a call depends on its
arguments alone, and not on what the nodes in them are called: if the third layer is given what the second was given,
every node of the layer before replaced by its counterpart one layer on, then it becomes the nodes that the second
became, one layer on; and if it also hands on what the second handed on, one layer on, so does every layer after it.
Whether that is so is checked, in the calls and in the values handed on; where it is not, every layer is followed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, fx
from torch._ops import HigherOrderOperator
from torch.utils import _pytree as pytree

from depgraph.dag.runs import Runs, stack
from depgraph.rules.values import FIRST, Value, core
from depgraph.unrolling.calls import Made

if TYPE_CHECKING:
    from depgraph.unrolling.builder import Builder, Mark

#: Fewer copies are not worth looking for.
_FEWEST = 2
#: Layers that are followed before others are copied.
_FOLLOWED = 3
#: Distances between equal calls that are tried as the length of a layer.
_TRIED = 8

Where = Callable[[fx.Node], tuple[str, str]]


class Layers(NamedTuple):
    """Calls ``start … start + length * times - 1`` are the same ones over and over again."""

    start: int
    length: int
    times: int


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
        self.layers = _find(self.calls, self.number, placeholders)
        self.kept: set[fx.Node] = set()
        self.marks: list[Mark] = []
        self.seen: list[int] = []
        self.sites: list[int] = []
        self.handed_on: dict[int, Any] = {}
        if self.layers is not None:
            start, length, times = self.layers
            after = start + length * times
            for layer in range(_FOLLOWED, times):
                for k in range(length):
                    node = self.calls[start + layer * length + k]
                    if any(self.number.get(user, after) >= after for user in node.users):
                        self.kept.add(self.calls[start + (_FOLLOWED - 1) * length + k])

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
        if 0 <= k < length * _FOLLOWED and k % length:
            self.sites.append(len(builder.operations))
        if k % length or not 0 <= k // length <= _FOLLOWED:
            return []
        self.marks.append(builder.mark())
        self.seen.append(said)
        self.sites = self.sites if k // length == _FOLLOWED else []
        if k // length == _FOLLOWED - 1:
            self.handed_on = self._handed_on(values, _FOLLOWED - 2)
        self.sites.append(len(builder.operations))
        if k // length < _FOLLOWED or not self._holds(values, builder, where):
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
        now = self._handed_on(values, _FOLLOWED - 1)
        return now.keys() >= self.handed_on.keys() and all(
            same(moved(self.handed_on[k], base.count, step), now[k]) for k in self.handed_on
        )

    def _model(self) -> list[fx.Node]:
        """Return the calls of the last layer that is followed, of which the others are copies."""
        assert self.layers is not None
        start, length, _ = self.layers
        return self.calls[start + (_FOLLOWED - 1) * length : start + _FOLLOWED * length]

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
        for layer in range(_FOLLOWED, times):
            ahead = layer - _FOLLOWED + 1
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
        return self.calls[start + _FOLLOWED * length : start + times * length]


def moved(tree: Any, first: int, step: int) -> Any:
    """Return values with every node from the first one on replaced by the one so many numbers later."""

    def move(value: Any) -> Any:
        if not isinstance(value, Value):
            return value
        thin = core(value.codes)
        codes = torch.where(thin >= first + FIRST, thin + step, thin).expand(value.shape)
        return replace(value, codes=codes)

    return pytree.tree_map(move, tree)


def same(one: Any, other: Any) -> bool:
    """Tell whether two arguments or results are the same to every rule."""
    if one is other:
        return True
    if isinstance(one, Value) and isinstance(other, Value):
        return (
            (one.dtype, one.positive) == (other.dtype, other.positive)
            and _equal(one.codes, other.codes)
            and _equal(one.known, other.known)
        )
    if isinstance(one, (tuple, list)) and isinstance(other, (tuple, list)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and isinstance(one, (int, float, bool, str, type(None))) and one == other


def _equal(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    left, right = core(one), core(other)
    if left.shape != right.shape:
        return False
    return torch.equal(left, right) or bool(((left == right) | ((left != left) & (right != right))).all())


def _find(calls: Sequence[fx.Node], number: Mapping[fx.Node, int], placeholders: Mapping[str, Any]) -> Layers | None:
    """Return the longest stretch of calls that repeat, None where there is none worth it."""
    forms: dict[Any, int] = {}
    token = np.array([forms.setdefault(_form(node), len(forms)) for node in calls], np.int64)
    best: Layers | None = None
    for length in _distances(token):
        agrees = np.append(token[:-length] == token[length:], False)
        for first, last in _stretches(agrees):
            times = (last - first) // length + 1
            if times - _FOLLOWED < _FEWEST:
                continue
            layers = _checked(Layers(first, length, times), calls, number, placeholders)
            if layers is not None and (best is None or _saved(layers) > _saved(best)):
                best = layers
    return best


def _saved(layers: Layers) -> int:
    return layers.length * (layers.times - _FOLLOWED)


def _distances(token: np.ndarray) -> list[int]:
    """Return the distances at which most equal calls follow each other for one kind of call, the commonest first."""
    order = np.argsort(token, kind="stable")
    found: Counter[int] = Counter()
    for places in np.split(order, np.flatnonzero(np.diff(token[order])) + 1):
        if len(places) >= _FOLLOWED + _FEWEST:
            ((apart, often),) = Counter(np.diff(places).tolist()).most_common(1)
            if 2 * often >= len(places) - 1:
                found[apart] += 1
    return sorted(length for length, _ in found.most_common(_TRIED))


def _stretches(agrees: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield the stretches of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], agrees, [False]]).astype(np.int8)))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def _checked(
    layers: Layers, calls: Sequence[fx.Node], number: Mapping[fx.Node, int], placeholders: Mapping[str, Any]
) -> Layers | None:
    """Return the layers as long as each call is to the one of the layer before what that one is to the one before it.

    The first layer may be given something else: from the second on, what is read of a layer is read again one layer on.
    """
    start, length, times = layers
    for k in range(start + length, start + (times - 1) * length):
        if not _alike(calls[k], calls[k + length], start, length, number, placeholders):
            times = (k - start) // length + 1
            break
    return Layers(start, length, times) if times - _FOLLOWED >= _FEWEST else None


def _alike(
    one: fx.Node,
    other: fx.Node,
    start: int,
    length: int,
    number: Mapping[fx.Node, int],
    placeholders: Mapping[str, Any],
) -> bool:
    first = start + (number[one] - start) // length * length
    for mine, its in zip(one.all_input_nodes, other.all_input_nodes, strict=False):
        if mine in number and number[mine] >= start:
            # In the layer itself or in the one before it.
            if number[mine] < first - length or number.get(its, -1) != number[mine] + length:
                return False
        elif mine is not its and not (
            mine.op == its.op == "placeholder"
            and _layout(mine) == _layout(its)
            and same(placeholders.get(mine.name), placeholders.get(its.name))
        ):
            return False
    return len(one.all_input_nodes) == len(other.all_input_nodes)


def _form(node: fx.Node) -> Any:
    """Return what an operator is called with but for the tensors; calls that cannot be copied have one of their own."""
    target = node.target
    if isinstance(target, HigherOrderOperator):
        return node
    order: dict[fx.Node, int] = {}
    rest = fx.node.map_arg((node.args, node.kwargs), lambda n: f"%{order.setdefault(n, len(order))}")
    return repr((str(target), rest, _layout(node)))


def _layout(node: fx.Node) -> list[Any]:
    """Return the form of what a node returns."""
    return [
        (tuple(v.shape), v.stride() if v.layout == torch.strided else (), v.dtype, v.device)
        if isinstance(v, Tensor)
        else repr(v)
        for v in pytree.tree_leaves(node.meta.get("val"))
    ]
