"""Picking by rows of indices, and products with the weights of each row's group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from depgraph.tracing.rows.arguments import RowCall, dims_of, in_range
from depgraph.tracing.rows.moving import Made
from depgraph.tracing.rows.spaces import NotRowsError, name_of, shape, value

aten = torch.ops.aten


def index(call: RowCall) -> Made:
    """Rows of a tensor, picked by rows of indices that stand side by side; or other axes of rows."""
    picked, indices = call.node.args[:2]
    if not isinstance(picked, fx.Node) or not isinstance(indices, (list, tuple)):
        raise NotRowsError
    used = [axis for axis, i in enumerate(indices) if i is not None]
    if used != list(range(used[0], used[-1] + 1)):
        raise NotRowsError
    if (rows := call.following.get(picked)) is not None:
        if rows.axis >= used[0] or any(call.following.get(i) for i in indices):
            raise NotRowsError
        return call.same(), rows.axis
    new: list[Any] = list(indices)
    axis = -1
    for place in used:
        given: Any = indices[place]
        found, form = call.following.get(given), value(given)
        if found is None:
            if form.ndim or form.dtype in (torch.bool, torch.uint8):
                raise NotRowsError
            continue
        if form.dtype in (torch.bool, torch.uint8) or (len(used) > 1 and form.ndim != 1):
            raise NotRowsError
        axis = used[0] + found.axis
        new[place] = in_range(call.following, found, shape(picked)[place], negative=True)
    return call.following.copy.again(call.node.target, picked, new), axis


def index_select(call: RowCall) -> Made:
    """Slices of a tensor, picked by rows of indices."""
    picked, by = call.node.args[0], call.rows(call.argument("index"))
    if not isinstance(picked, fx.Node) or call.following.get(picked) or len(shape(by.node)) != 1:
        raise NotRowsError
    (dim,) = dims_of(call, len(shape(picked)))
    return call.following.copy.again(
        call.node.target, picked, dim, in_range(call.following, by, shape(picked)[dim])
    ), dim


def embedding(call: RowCall) -> Made:
    """Rows of a table, picked by rows of indices."""
    table, by = call.node.args[0], call.rows(call.argument("indices"))
    if not isinstance(table, fx.Node) or call.following.get(table):
        raise NotRowsError
    return call.following.copy.again(
        aten.embedding.default, table, in_range(call.following, by, shape(table)[0])
    ), by.axis


def gather(call: RowCall) -> Made:
    """Elements along another axis of the same row."""
    rows, by = call.rows(call.node.args[0]), call.rows(call.argument("index"))
    (dim,) = dims_of(call, len(shape(rows.node)))
    if rows.axis != by.axis or dim == rows.axis or call.argument("sparse_grad"):
        raise NotRowsError
    picks = in_range(call.following, by, shape(rows.node)[dim])
    return call.following.copy.again(aten.gather.default, rows.node, dim, picks), rows.axis


def grouped(call: RowCall) -> Made:
    """Product of rows sorted by their group with the weights of each group: of every row with those of its own."""
    x, weights, ends, *more = call.node.args
    rows, space, copy = call.rows(x), call.space, call.following.copy
    if rows.axis != 0 or not isinstance(weights, fx.Node) or not isinstance(ends, fx.Node) or any(more):
        raise NotRowsError
    if call.following.get(weights) or len(shape(rows.node)) != 2 or len(shape(weights)) != 3 or call.node.kwargs:
        raise NotRowsError
    key = space.key
    if key is None or not space.ascending or not _ends(call, ends, shape(weights)[0]):
        raise NotRowsError
    chosen = copy.add(aten.index.Tensor, weights, [key])
    product = copy.again(aten.bmm.default, copy.add(aten.unsqueeze.default, rows.node, 1), chosen)
    return copy.add(aten.squeeze.dim, product, 1), 0


def _ends(call: RowCall, ends: fx.Node, groups: int) -> bool:
    """Tell whether these are the places at which each of so many values of the key ends, in its order."""
    key = call.space.key
    assert key is not None
    if value(key).is_floating_point():
        return False
    summed = _uncast(ends)
    if name_of(summed) != "cumsum" or summed.args[1] not in (0, -1) or not isinstance(summed.args[0], fx.Node):
        return False
    counted = _uncast(summed.args[0])
    if not isinstance(counted.args[0], fx.Node) or len(shape(counted)) != 1:
        return False
    if name_of(counted) == "histc":
        if counted.args[1:] != (groups, 0, groups - 1):
            return False
    elif name_of(counted) != "bincount" or shape(counted) != (groups,) or (len(counted.args[1:2]) and counted.args[1]):
        return False
    of = _uncast(counted.args[0])
    found = call.following.get(of)
    return of is key or (found is not None and found.space is call.space and _uncast(found.node) is key)


def _uncast(node: fx.Node) -> fx.Node:
    """Return what was cast to another type."""
    while name_of(node) in ("_to_copy", "to", "detach", "alias", "clone") and isinstance(node.args[0], fx.Node):
        node = node.args[0]
    return node


GATHERING: dict[str, Callable[[RowCall], Made]] = {
    "index": index, "index_select": index_select, "embedding": embedding, "gather": gather,
    "_grouped_mm": grouped, "transformers::grouped_mm_fallback": grouped,
}  # fmt: skip
