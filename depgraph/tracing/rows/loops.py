"""Loops over those indices at which something is to be done: ``for e in hit.nonzero():``, done at every index.

A mixture of experts goes through the experts that any token is sent to. Which they are depends on all tokens, but what
is done for one of them, adding the rows of its own mask, amounts to nothing where that mask is false everywhere. So the
loop may as well go through all experts: the steps recorded stand for the first ones, and the others are written like
them. That is so where every step does the same, as nodes of a graph are the same, but for its index.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
from torch import fx

from depgraph.tracing.rows.sources import picks
from depgraph.tracing.rows.spaces import NotRowsError, name_of, shape, value
from depgraph.tracing.rows.steps import RENAMING, Step, is_walk
from depgraph.tracing.rows.writing import CALLED, STANDS_FOR, Copy

aten = torch.ops.aten


def every_place(copy: Copy, walked: fx.Node) -> list[fx.Node]:
    """Let a loop over the places at which a mask is true go through all its places.

    Parameters
    ----------
    copy : Copy
    walked : torch.fx.Node
        What the loop goes through.

    Returns
    -------
    list of torch.fx.Node
        What picks rows in the steps. The loop is what it was only if none of it is left when rows are followed.

    Raises
    ------
    NotRowsError
        Where it cannot be told that this changes nothing.
    """
    mask = walked.args[0]
    if not is_walk(walked) or not isinstance(mask, fx.Node):
        raise NotRowsError
    count = shape(walked)[0]
    rows: dict[int, fx.Node] = {}
    for user in walked.users:
        if user.target is not aten.select.int or user.args[1] != 0 or user.args[2] in rows:
            raise NotRowsError
        rows[int(user.args[2]) % count] = user  # type: ignore[arg-type]
    if sorted(rows) != list(range(count)) or (count < 2 and shape(mask)[0] != count):
        raise NotRowsError
    steps = [Step(rows[k]) for k in range(count)]
    masks, axis = _hit(mask)
    for before, step in pairwise(steps):
        if step.base is not before.end or list(before.end.users) != [step.end]:
            raise NotRowsError
    for step in steps:
        _check_alike(steps[0], step)
        _check_masks(step, masks, axis)
    places = min([shape(mask)[0], *_sizes(steps[0])])
    if places < count:
        raise NotRowsError
    for place, step in enumerate(steps):
        copy.at = step.index
        fixed = _fixed(copy, place, step.index)
        step.index.replace_all_uses_with(fixed)
    chosen = [node for step in steps for node in step.nodes]
    last, latest = steps[-1], steps[-1].end
    users = list(last.end.users)
    following = last.end.next
    for place in range(count, places):
        copy.at = following
        index = _fixed(copy, place, last.index)
        written = _written_again(copy, last, {fixed: index, last.base: latest}, following)
        chosen += written[:-1]
        latest = written[-1]
    for user in users if latest is not last.end else ():
        user.replace_input_with(last.end, latest)
    return [node for node in chosen if picks(node) is not None]


def _fixed(copy: Copy, place: int, like: fx.Node) -> fx.Node:
    return copy.add(aten.full.default, list(shape(like)), place, dtype=value(like).dtype, device=torch.device("cpu"))


def _written_again(copy: Copy, step: Step, places: Mapping[Any, fx.Node], before: fx.Node) -> list[fx.Node]:
    """Write a step once more, for another index. For the example inputs it has no rows, and costs nothing."""
    known = dict(places)
    made: list[fx.Node] = []
    for node in step.all:
        with copy.graph.inserting_before(before):
            new = copy.graph.node_copy(node, lambda n: known.get(n, n))
        new.meta = {**node.meta, STANDS_FOR: None, CALLED: node.target}
        known[node] = new
        made.append(new)
    return made


def _hit(mask: fx.Node) -> tuple[fx.Node, int]:
    """Return the masks of which a mask says whether each is true anywhere, and along which axis they stand.

    Raises
    ------
    NotRowsError
        Where it says something else, or they may hold numbers below 0.
    """
    if name_of(mask) in ("gt", "greater", "ne", "not_equal") and mask.args[1] == 0:
        counted: Any = mask.args[0]
        if not isinstance(counted, fx.Node) or name_of(counted) != "sum":
            raise NotRowsError
    elif name_of(mask) == "any":
        counted = mask
    else:
        raise NotRowsError
    masks: Any = counted.args[0]
    if len(counted.args) < 2 or len(counted.args) > 2 or not isinstance(masks, fx.Node) or not _are_counts(masks):
        raise NotRowsError
    ndim = len(shape(masks))
    dims: Any = counted.args[1]
    summed = {d % ndim for d in (dims if isinstance(dims, (list, tuple)) else [dims])}
    left = [axis for axis in range(ndim) if axis not in summed]
    if len(left) != 1:
        raise NotRowsError
    return masks, left[0]


def _are_counts(node: fx.Node) -> bool:
    """Tell whether a tensor holds truth values, or numbers of which none is below 0."""
    while name_of(node) in (*RENAMING, "permute", "transpose") and isinstance(node.args[0], fx.Node):
        if name_of(node) in ("to", "_to_copy") and value(node).is_floating_point():
            return False
        node = node.args[0]
    return value(node).dtype == torch.bool or name_of(node) == "one_hot"


def _check_masks(step: Step, masks: fx.Node, axis: int) -> None:
    """Raise unless all rows of a step are picked by the mask of its index."""
    found = [mask for node in step.nodes if (mask := picks(node)) is not None]
    if not found:
        raise NotRowsError
    for mask in found:
        while name_of(mask) in RENAMING - {"select"} and isinstance(mask.args[0], fx.Node):
            mask = mask.args[0]
        indices: Any = mask.args[1] if mask.target is aten.index.Tensor and mask.args[0] is masks else ()
        if not indices:
            raise NotRowsError
        *before, index = indices
        if len(before) != axis or any(i is not None for i in before) or index not in step.indices:
            raise NotRowsError


def _sizes(step: Step) -> list[int]:
    """Return how long the axes are that a step's index picks from: further on the model itself would fail."""
    found: list[int] = []
    for node in step.nodes:
        if node.target is aten.index.Tensor:
            picked, indices = node.args
            if isinstance(picked, fx.Node) and isinstance(indices, (list, tuple)):
                found += [shape(picked)[axis] for axis, i in enumerate(indices) if i in step.indices]
        elif name_of(node) == "index_select" and node.args[2] in step.indices:
            found.append(shape(node.args[0])[int(node.args[1])])  # type: ignore[arg-type]
    return found


def _check_alike(one: Step, other: Step) -> None:
    """Raise unless two steps do the same, but for their index and what they add to."""
    if len(one.nodes) != len(other.nodes):
        raise NotRowsError
    pairs = {one.index: other.index, one.base: other.base}
    for a, b in zip(one.all, other.all, strict=True):
        if a.target != b.target or not _equal((a.args, dict(a.kwargs)), (b.args, dict(b.kwargs)), pairs):
            raise NotRowsError
        pairs[a] = b


def _equal(a: Any, b: Any, pairs: Mapping[Any, Any]) -> bool:
    if isinstance(a, fx.Node):
        return pairs.get(a, a) is b
    if isinstance(a, (tuple, list)):
        same = isinstance(b, (tuple, list)) and len(a) == len(b)
        return same and all(_equal(x, y, pairs) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(_equal(a[key], b[key], pairs) for key in a)
    return type(a) is type(b) and bool(a == b)
