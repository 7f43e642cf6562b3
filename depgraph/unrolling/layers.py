"""Finding the layers that repeat in a model: calls that follow each other in the same way over and over again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, fx
from torch._ops import HigherOrderOperator
from torch.utils import _pytree as pytree

from depgraph.rules.values import Value, core

#: Fewer copies are not worth looking for.
FEWEST = 2
#: Layers that are followed before others are copied.
FOLLOWED = 3
#: Distances between equal calls that are tried as the length of a layer.
_TRIED = 8


class Layers(NamedTuple):
    """Calls ``start … start + length * times - 1`` are the same ones over and over again."""

    start: int
    length: int
    times: int


def find(calls: Sequence[fx.Node], number: Mapping[fx.Node, int], placeholders: Mapping[str, Any]) -> Layers | None:
    """Return the longest stretch of calls that repeat, None where there is none worth it."""
    forms: dict[Any, int] = {}
    token = np.array([forms.setdefault(_form(node), len(forms)) for node in calls], np.int64)
    best: Layers | None = None
    for length in _distances(token):
        agrees = np.append(token[:-length] == token[length:], False)
        for first, last in _stretches(agrees):
            times = (last - first) // length + 1
            if times - FOLLOWED < FEWEST:
                continue
            layers = _checked(Layers(first, length, times), calls, number, placeholders)
            if layers is not None and (best is None or _saved(layers) > _saved(best)):
                best = layers
    return best


def _saved(layers: Layers) -> int:
    return layers.length * (layers.times - FOLLOWED)


def _distances(token: np.ndarray) -> list[int]:
    """Return the distances at which most equal calls follow each other for one kind of call, the commonest first."""
    order = np.argsort(token, kind="stable")
    found: Counter[int] = Counter()
    for places in np.split(order, np.flatnonzero(np.diff(token[order])) + 1):
        if len(places) >= FOLLOWED + FEWEST:
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
    return Layers(start, length, times) if times - FOLLOWED >= FEWEST else None


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


def same(one: Any, other: Any) -> bool:
    """Tell whether two arguments or results are the same to every rule."""
    if one is other:
        return True
    if isinstance(one, Value) and isinstance(other, Value):
        return (
            one.dtype == other.dtype
            and _equal(one.codes, other.codes)
            and _equal(one.low, other.low)
            and _equal(one.high, other.high)
            and _equal(one.nan, other.nan)
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
