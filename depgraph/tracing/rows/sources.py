"""Where rows come from: the places at which a mask is true, and sorting.

At every place, the coordinates that `where` returns are what they are there, rows picked by a mask are all rows, and
what sorting returns is what was sorted, each value with its own place.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator

import torch
from torch import fx

from depgraph.tracing.rows.following import Following
from depgraph.tracing.rows.spaces import Space, Wide, name_of, shape, value
from depgraph.tracing.rows.writing import Copy

aten = torch.ops.aten

_SORTS = {aten.sort.default, aten.sort.stable, aten.argsort.default, aten.argsort.stable}
_WHERES = {aten.where.default, aten.nonzero.default, aten.nonzero_numpy.default}
_CPU = torch.device("cpu")


def picks(node: fx.Node) -> fx.Node | None:
    """Return the mask by which a node picks rows, None where it picks none."""
    if node.target in _WHERES:
        mask = node.args[0]
        return mask if isinstance(mask, fx.Node) and value(mask).ndim else None
    if node.target is aten.index.Tensor:
        picked, indices = node.args
        if isinstance(picked, fx.Node) and isinstance(indices, (list, tuple)) and len(indices) == 1:
            (mask,) = indices
            if isinstance(mask, fx.Node) and value(mask).dtype == torch.bool and value(mask).ndim:
                return mask
    return None


def begins(graph: fx.Graph) -> bool:
    """Tell whether rows come from anywhere in a graph."""
    return any(node.target in _SORTS or picks(node) is not None for node in graph.nodes if node.op == "call_function")


def source(following: Following, node: fx.Node) -> bool:
    """Enter what a node makes if rows come from it; return whether they do."""
    if node.target in _SORTS:
        return _sorted(following, node)
    mask = picks(node)
    if mask is None or mask in following.wide or mask in following.sized:
        return False
    if node.target is aten.index.Tensor:
        return _picked(following, node, mask)
    outputs = [node] if isinstance(node.meta["val"], torch.Tensor) else [n for n in node.users if _is_part(n)]
    if not outputs or not math.prod(shape(mask)):
        return bool(outputs)
    space = following.of_mask(mask, shape(outputs[0])[0])
    coordinates = list(_coordinates(following.copy, space.shape))
    for output in outputs:
        if output is node:
            stacked = following.copy.add(aten.stack.default, coordinates, 1)
            following.wide[node] = Wide(stacked, 0, space)
        else:
            axis = int(output.args[1])  # type: ignore[arg-type]
            following.wide[output] = Wide(coordinates[axis], 0, space, axis)
    return True


def _is_part(node: fx.Node) -> bool:
    return node.target is operator.getitem


def _coordinates(copy: Copy, sizes: tuple[int, ...]) -> Iterator[fx.Node]:
    """Write each coordinate of all places, in row-major order."""
    place = copy.add(aten.arange.default, math.prod(sizes), device=_CPU)
    for axis, size in enumerate(sizes):
        inner = math.prod(sizes[axis + 1 :])
        yield copy.add(aten.remainder.Scalar, copy.add(aten.floor_divide.default, place, inner), size)


def _picked(following: Following, node: fx.Node, mask: fx.Node) -> bool:
    """Enter rows picked by a mask: all rows."""
    picked = node.args[0]
    assert isinstance(picked, fx.Node)
    ndim, sizes = value(mask).ndim, shape(picked)
    if picked in following.wide or sizes[:ndim] != shape(mask) or not math.prod(sizes):
        return False
    space = following.of_mask(mask, shape(node)[0])
    rows = following.copy.add(aten.reshape.default, picked, [space.count, *sizes[ndim:]])
    following.wide[node] = Wide(rows, 0, space)
    return True


def _sorted(following: Following, node: fx.Node) -> bool:
    """Enter what sorting a one-dimensional tensor returns: the tensor itself, and each place.

    Sorting the order in which a key was sorted gives each place its rank, and so undoes the sorting.
    """
    key = node.args[0]
    if not isinstance(key, fx.Node) or value(key).ndim != 1 or shape(key)[0] < 2:
        return False
    schema = node.target._schema.arguments  # type: ignore[union-attr]
    given = {a.name: v for a, v in zip(schema, node.args, strict=False)} | node.kwargs
    downwards = bool(given.get("descending", False))
    single = isinstance(node.meta["val"], torch.Tensor)
    parts = [n for n in node.users if _is_part(n)]
    orders = [node] if single else [n for n in parts if n.args[1] == 1]
    rows = following.get(key)
    if rows is not None:
        if rows.coordinate == 0 and rows.space.key is not None and not downwards:
            following.inverse.update(dict.fromkeys(orders, rows.space))
        return True
    if key in following.sized:
        return True
    count = shape(key)[0]
    space = Space(None, key, (count,), count, not downwards)
    place = following.copy.add(aten.arange.default, count, device=_CPU)
    for order in orders:
        following.wide[order] = Wide(place, 0, space, 0)
    for values in parts:
        if values.args[1] == 0:
            following.wide[values] = Wide(key, 0, space)
    return True


def fills(following: Following, node: fx.Node) -> bool:
    """Enter a tensor to which each place's rank was written, `empty[order] = arange`; return whether it is one."""
    if name_of(node) not in ("index_put", "scatter", "index_copy"):
        return False
    if name_of(node) == "index_put":
        base, indices, written, *accumulate = node.args
        if not isinstance(indices, (list, tuple)) or len(indices) != 1 or any(accumulate):
            return False
        order = following.get(indices[0])
    else:
        base, dim, index, written = node.args[:4]
        if dim not in (0, -1) or node.target not in (aten.scatter.src, aten.index_copy.default):
            return False
        order = following.get(index)
    if order is None or order.coordinate != 0 or order.space.key is None:
        return False
    count = order.space.count
    ranks = isinstance(written, fx.Node) and written.target is aten.arange.default and written.args == (count,)
    if not ranks or not isinstance(base, fx.Node) or shape(base) != (count,) or value(base).is_floating_point():
        return False
    following.inverse[node] = order.space
    return True
