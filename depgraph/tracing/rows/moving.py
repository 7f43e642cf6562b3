"""Operators that move axes, on rows: where the axis of rows goes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from depgraph.tracing.rows.arguments import RowCall, dims_of, first_shape
from depgraph.tracing.rows.spaces import NotRowsError, shape

aten = torch.ops.aten

#: What a call makes at every place, and the axis of places.
Made = tuple[Any, int]


def unsqueeze(call: RowCall) -> Made:
    """Put in an axis."""
    rows, ndim = call.first, len(first_shape(call))
    dim = call.argument("dim") % (ndim + 1)
    return call.same(), rows.axis + (dim <= rows.axis)


def squeeze(call: RowCall) -> Made:
    """Leave out named axes of length 1, none of which may be that of rows."""
    rows, sizes = call.first, first_shape(call)
    dims = dims_of(call, len(sizes))
    if rows.axis in dims:
        raise NotRowsError
    return call.same(), rows.axis - sum(d < rows.axis and sizes[d] == 1 for d in dims)


def select(call: RowCall) -> Made:
    """Take one index of another axis."""
    rows = call.first
    dim = _other(call)
    return call.same(), rows.axis - (dim < rows.axis)


def part(call: RowCall) -> Made:
    """Take a part of another axis, or several."""
    rows = call.first
    _other(call)
    return call.same(), rows.axis


def unbind(call: RowCall) -> Made:
    """Take each index of another axis."""
    rows = call.first
    dim = _other(call)
    return call.same(), rows.axis - (dim < rows.axis)


def _other(call: RowCall) -> int:
    (dim,) = dims_of(call, len(first_shape(call))) if call.argument("dim") is not None else {0}
    if dim == call.first.axis:
        raise NotRowsError
    return dim


def transpose(call: RowCall) -> Made:
    """Swap two axes."""
    rows, ndim = call.first, len(first_shape(call))
    one, other = (0, 1) if call.name == "t" else (call.argument("dim0") % ndim, call.argument("dim1") % ndim)
    swapped = {one: other, other: one} if ndim > 1 else {}
    return call.same(), swapped.get(rows.axis, rows.axis)


def permute(call: RowCall) -> Made:
    """Bring axes into another order."""
    rows, ndim = call.first, len(first_shape(call))
    return call.same(), [d % ndim for d in call.argument("dims")].index(rows.axis)


def flip(call: RowCall) -> Made:
    """Turn other axes round."""
    rows = call.first
    if rows.axis in dims_of(call, len(first_shape(call)), "dims"):
        raise NotRowsError
    return call.same(), rows.axis


def pad(call: RowCall) -> Made:
    """Add to the last axes, that of rows not among them."""
    rows = call.first
    if rows.axis >= len(first_shape(call)) - len(call.argument("pad")) // 2:
        raise NotRowsError
    return call.same(), rows.axis


def expand(call: RowCall) -> Made:
    """Repeat along other axes."""
    rows, sizes = call.first, list(shape(call.node))
    at = rows.axis + len(sizes) - len(first_shape(call))
    if sizes[at] != call.space.size:
        raise NotRowsError
    sizes[at] = -1
    return call.following.copy.again(aten.expand.default, rows.node, sizes), at


def repeat(call: RowCall) -> Made:
    """Repeat other axes one after the other."""
    rows, repeats = call.first, list(call.argument("repeats"))
    at = rows.axis + len(repeats) - len(first_shape(call))
    if repeats[at] != 1:
        raise NotRowsError
    return call.same(), at


def reshape(call: RowCall) -> Made:
    """Part or join other axes: the same elements are before the axis of rows, and behind it.

    An axis of length 1 could be any, and where there are as many rows as something else is long, so could that.
    """
    rows, old, new = call.first, first_shape(call), list(shape(call.node))
    before, behind = math.prod(old[: rows.axis]), math.prod(old[rows.axis + 1 :])
    if call.space.size == 1 or not before or not behind:
        raise NotRowsError
    fits = [k for k, n in enumerate(new) if n == call.space.size and math.prod(new[:k]) == before
            and math.prod(new[k + 1 :]) == behind]  # fmt: skip
    if len(fits) != 1:
        raise NotRowsError
    new[fits[0]] = call.space.count
    return call.following.copy.again(aten.reshape.default, rows.node, new), fits[0]


def joined(call: RowCall) -> Made:
    """Join tensors of rows along another axis, or along one more."""
    tensors: Sequence[Any] = call.argument("tensors")
    found = [call.rows(tensor) for tensor in tensors]
    axis, ndim = found[0].axis, len(shape(tensors[0])) + (call.name == "stack")
    if any(rows.axis != axis for rows in found):
        raise NotRowsError
    dim = int(call.argument("dim", 0)) % ndim
    if call.name == "stack":
        return call.same(), axis + (dim <= axis)
    if dim == axis:
        raise NotRowsError
    return call.same(), axis


MOVING: dict[str, Callable[[RowCall], Made]] = {
    "unsqueeze": unsqueeze, "squeeze": squeeze, "select": select, "slice": part, "narrow": part, "split": part,
    "chunk": part, "split_with_sizes": part, "unbind": unbind, "transpose": transpose, "t": transpose,
    "permute": permute, "flip": flip, "constant_pad_nd": pad, "expand": expand, "repeat": repeat,
    "view": reshape, "reshape": reshape,
    "_unsafe_view": reshape, "unflatten": reshape, "flatten": reshape, "cat": joined, "stack": joined,
}  # fmt: skip
