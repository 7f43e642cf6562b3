"""Which call of an operator became which nodes, and how many elements of its result each of them stands for.

Nothing is counted here but elements: what a call costs is found out when somebody asks, see `depgraph.unrolling.costs`.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor, fx
from torch._ops import HigherOrderOperator

from depgraph.dag.runs import IntArray
from depgraph.rules.arguments import tensors_in
from depgraph.rules.values import FIRST, Value, core
from depgraph.tracing.rows.writing import rewritten
from depgraph.unrolling.flops import known

if TYPE_CHECKING:
    from depgraph.unrolling.builder import Builder, Mark

#: A number that holds for every node of an operation, or one a node.
Elements = int | IntArray


@dataclass(frozen=True, eq=False, slots=True)
class Made:
    """What one call of an operator became.

    Attributes
    ----------
    node : torch.fx.Node
        The call, which may stand in the decomposition of another one, or in a subgraph.
    site : torch.fx.Node
        The call in the model's own graph that it is part of.
    operations : list of int
        The operations that it became, calls within it left out.
    shares : list of int
        For each of them, how many elements of the results its nodes stand for together.
    """

    node: fx.Node
    site: fx.Node
    operations: list[int]
    shares: list[int]


def alike(counts: IntArray) -> Elements:
    """Return numbers as one where they are all the same."""
    first = int(counts[0])
    return first if bool((counts == first).all()) else counts


def total(elements: Elements, nodes: int) -> int:
    """Return how many elements the nodes of an operation stand for together."""
    return elements * nodes if isinstance(elements, int) else int(elements.sum())


def note(builder: Builder, mark: Mark, node: fx.Node, site: fx.Node, result: Any) -> None:
    """Note what a call became since the mark was taken, and count the elements of its results behind each node.

    Parameters
    ----------
    builder : Builder
    mark : Mark
    node, site : torch.fx.Node
        See `Made`.
    result
        What the call returned. Of several results, only those that something reads are counted.
    """
    if len(builder.operations) == mark.operations:
        return
    made = list(range(mark.operations, len(builder.operations)))
    if len(builder.calls) > mark.calls:
        whole = known(node.target) and not isinstance(node.target, HigherOrderOperator)
        if whole or rewritten(node):
            # There is a formula for the whole, or another call's cost is its, however it was followed.
            del builder.calls[mark.calls :]
            builder.calls.append(Made(node, site, made, _sizes(builder, made)))
            return
        taken = {number for call in builder.calls[mark.calls :] for number in call.operations}
        made = [number for number in made if number not in taken]
        if not made:
            return
    first = builder.operations[made[0]].start
    counts = _occurrences(_read(node, result), first, builder.count - first)
    shares = [_count(builder, number, counts, first, node) for number in made]
    builder.calls.append(Made(node, site, made, shares if any(shares) else _sizes(builder, made)))


def _count(builder: Builder, number: int, counts: Elements, first: int, node: fx.Node) -> int:
    """Enter how many elements the nodes of an operation stand for, and return how many of them are in the results."""
    operation = builder.operations[number]
    nodes = operation.stop - operation.start
    if builder.chains[number] >= 0:
        builder.elements[number] *= _state_width(node)
        return total(builder.elements[number], nodes)
    if isinstance(counts, int):
        builder.elements[number] = counts
        return counts * nodes
    found = counts[operation.start - first : operation.stop - first]
    if found.all():
        builder.elements[number] = alike(found)
    elif found.any():
        builder.elements[number] = np.where(found > 0, found, builder.elements[number])
    return int(found.sum())


def _sizes(builder: Builder, numbers: list[int]) -> list[int]:
    operations = [builder.operations[number] for number in numbers]
    return [total(builder.elements[n], o.stop - o.start) for n, o in zip(numbers, operations, strict=True)]


def _read(node: fx.Node, result: Any) -> list[Value]:
    """Return the results of a call that something reads; all of them where that cannot be seen."""
    if isinstance(result, Value):
        return [result]
    if isinstance(result, (tuple, list)) and all(user.target is operator.getitem for user in node.users):
        used = {user.args[1] for user in node.users}
        result = [value for place, value in enumerate(result) if place in used]
    return tensors_in((result,), {})


def _occurrences(values: list[Value], first: int, count: int) -> Elements:
    """Return how many elements carry each of the nodes from ``first`` on: a number where it is the same for all."""
    counts = np.zeros(count, np.int64) if len(values) != 1 else 0
    for value in values:
        thin = core(value.codes)
        size = thin.numel()
        if not size:
            continue
        bundled = value.codes.numel() // size
        found = thin.reshape(-1).numpy() - (first + FIRST)
        if size == count and found[0] == 0 and bool((found[1:] > found[:-1]).all()):
            counts = counts + bundled  # every node once, in order
        else:
            counts = counts + bundled * np.bincount(found[found >= 0], minlength=count)
    return counts


def _state_width(node: fx.Node) -> int:
    """Return how many numbers a recurrent layer carries from step to step: hidden state, and cell state if any."""
    return sum(int(state.shape[-1]) for state in node.meta["val"][1:] if isinstance(state, Tensor))
