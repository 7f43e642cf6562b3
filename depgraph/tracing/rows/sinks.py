"""Where rows are put back: added to, or written over, what is at the places that they came from.

At every place, what is added is 0 where none is picked, and what is written over stays as it was there. Several rows
may be added to one target; one that rows are written over must be each row's own, or the last one would stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from depgraph.tracing.rows.arguments import in_range
from depgraph.tracing.rows.following import Following
from depgraph.tracing.rows.spaces import NotRowsError, Space, Wide, name_of, shape, value

aten = torch.ops.aten


def sink(following: Following, node: fx.Node) -> fx.Node | None:
    """Write what a node makes if it puts rows back, None if it does not.

    Raises
    ------
    NotRowsError
        Where it does, but in a way of which it is not sure what it amounts to.
    """
    name = name_of(node)
    if name in ("index", "index_select"):
        return _unsorted(following, node, name)
    if name in ("index_add", "scatter_add"):
        return _added(following, node, name)
    if name == "index_put":
        return _put(following, *node.args)
    if name == "masked_scatter":
        raise NotRowsError
    if name in ("index_copy", "scatter"):
        return _copied(following, node, name)
    return None


def _unsorted(following: Following, node: fx.Node, name: str) -> fx.Node | None:
    """Rows of a sorted tensor, each picked by its own rank: the rows where they were."""
    rows = following.get(node.args[0])
    by: Any = node.args[1] if name == "index" else [node.args[2]]
    axis = 0 if name == "index" else int(node.args[1])  # type: ignore[arg-type]
    if rows is None or not isinstance(by, (list, tuple)) or any(index is None for index in by[1:]):
        return None
    *before, index = by
    if any(one is not None for one in before) or following.inverse.get(index) is not rows.space:
        return None
    axis = len(before) if name == "index" else axis % len(shape(node))
    if axis != rows.axis:
        raise NotRowsError
    return following.copy.again(aten.alias.default, rows.node)


def _added(following: Following, node: fx.Node, name: str) -> fx.Node | None:
    base, dim, index, rows = node.args[:4]
    picked, added = following.get(index), following.get(rows)
    if not isinstance(base, fx.Node) or not isinstance(dim, int) or base in following.wide:
        return None
    if picked is None or added is None or picked.space is not added.space or not shape(base):
        return None
    dim %= len(shape(base))
    if added.axis != dim or picked.axis != (dim if name == "scatter_add" else 0):
        return None
    if name == "scatter_add" and value(index).shape != value(rows).shape:  # type: ignore[arg-type]
        return None
    if name == "scatter_add":
        _within(following, base, dim, picked)
    index = in_range(following, picked, shape(base)[dim])
    return following.copy.again(node.target, base, dim, index, following.masked(added), **node.kwargs)


def _within(following: Following, base: fx.Node, dim: int, picked: Wide) -> None:
    """Raise where what is added to may be shorter than rows along another axis (it would be cut for other inputs)."""
    sizes, rows = shape(base), shape(picked.node)
    if any(axis != dim and a != b for axis, (a, b) in enumerate(zip(sizes, rows, strict=True))):
        raise NotRowsError


def _put(following: Following, base: Any, indices: Any, rows: Any, accumulate: Any = False, *_: Any) -> fx.Node | None:
    """What is written to, or added to, at places named by several coordinates, or by the mask itself."""
    written, copy = following.get(rows), following.copy
    if not isinstance(base, fx.Node) or not isinstance(indices, (list, tuple)) or written is None:
        return None
    if written.axis != 0 or any(index is None for index in indices):
        return None
    if base in following.wide and (accumulate or written.space.mask is not None):  # else nothing is left of it
        return None
    space, rest = written.space, shape(base)[len(indices) :]
    if len(indices) == 1 and space.mask is not None and indices[0] is space.mask:
        ndim = len(space.shape)
        same = shape(base)[:ndim] == space.shape and shape(written.node)[1:] == shape(base)[ndim:]
        if value(space.mask).dtype != torch.bool or not same:
            return None
        return _over(following, base, written, add=bool(accumulate))
    picked = [following.get(index) for index in indices]
    if any(p is None or p.space is not space or len(shape(p.node)) != 1 for p in picked):
        return None
    if shape(written.node)[1:] != rest:
        return None
    if accumulate:
        places = zip(picked, shape(base), strict=False)
        nodes = [in_range(following, p, size, negative=True) for p, size in places if p is not None]
        return copy.again(aten.index_put.default, base, nodes, following.masked(written), True)
    _own(space, picked, shape(base))
    return _over(following, base, written)


def _copied(following: Following, node: fx.Node, name: str) -> fx.Node | None:
    """Rows written over those of another tensor along an axis."""
    if node.target not in (aten.index_copy.default, aten.scatter.src):
        return None
    base, dim, index, rows = node.args[:4]
    picked, written = following.get(index), following.get(rows)
    if picked is None or written is None or not isinstance(base, fx.Node) or base in following.wide:
        return None
    if dim not in (0, -len(shape(base))) or len(shape(picked.node)) != 1 or written.axis != 0:
        return None
    if picked.space is not written.space or shape(written.node)[1:] != shape(base)[1:]:
        return None
    _own(picked.space, [picked], shape(base))
    return _over(following, base, written)


def _own(space: Space, picked: Sequence[Wide | None], sizes: tuple[int, ...]) -> None:
    """Raise unless coordinates name each place's own, so that no two rows are written to the same one."""
    if [p.coordinate for p in picked if p is not None] != list(range(len(space.shape))):
        raise NotRowsError
    if space.shape != sizes[: len(space.shape)]:
        raise NotRowsError


def _over(following: Following, base: fx.Node, written: Wide, *, add: bool = False) -> fx.Node:
    """Write what stands at each place after rows were written over, or added to, what was there."""
    copy, space, sizes = following.copy, written.space, shape(base)
    form = value(written.node)
    if form.dtype != value(base).dtype:
        raise NotRowsError
    rows = copy.add(aten.reshape.default, written.node, list(sizes))
    if space.mask is None:
        return copy.again(aten.add.Tensor, base, rows) if add else copy.again(aten.alias.default, rows)
    if add:
        rows = copy.add(aten.add.Tensor, base, rows)
    ones = [1] * (len(sizes) - len(space.shape))
    mask = copy.add(aten.reshape.default, following.truth(space.mask), [*space.shape, *ones])
    return copy.again(aten.where.self, mask, rows, base)
