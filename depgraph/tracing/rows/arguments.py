"""One call that reads rows, with its arguments by their names."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from depgraph.tracing.rows.following import Following
from depgraph.tracing.rows.spaces import NotRowsError, Space, Wide, name_of, shape, value

aten = torch.ops.aten


class RowCall:
    """A call of which some arguments are rows, all of the same space.

    Attributes
    ----------
    following : Following
    node : torch.fx.Node
    name : str
        Of the operator.
    space : Space
    """

    def __init__(self, following: Following, node: fx.Node, space: Space) -> None:
        self.following, self.node, self.space = following, node, space
        self.name = name_of(node)
        schema = node.target._schema.arguments  # type: ignore[union-attr]
        self._given = {a.name: v for a, v in zip(schema, node.args, strict=False)} | node.kwargs
        self._defaults = {a.name: a.default_value for a in schema if a.has_default_value()}

    def argument(self, name: str, default: Any = None) -> Any:
        """Return an argument by its name, the schema's default or the given one where there is none."""
        found = self._given.get(name, self._defaults.get(name, default))
        return default if found is None else found

    def rows(self, argument: Any) -> Wide:
        """Return what an argument is at every place.

        Raises
        ------
        NotRowsError
            Where it is not made of rows.
        """
        found = self.following.get(argument)
        if found is None:
            raise NotRowsError
        return found

    @property
    def first(self) -> Wide:
        """The first argument at every place, all that are rows being only that one.

        Raises
        ------
        NotRowsError
            Where others are made of rows too, or it is not.
        """
        node = self.node.args[0] if self.node.args else None
        if any(read is not node and self.following.get(read) for read in self.node.all_input_nodes):
            raise NotRowsError
        return self.rows(node)

    def same(self) -> fx.Node:
        """Write the call with every place in place of rows."""
        copy = self.following.copy
        places = self.following.places(self.node)
        args, kwargs = fx.node.map_arg((self.node.args, dict(self.node.kwargs)), lambda n: places.get(n, n))
        return copy.again(self.node.target, *args, **kwargs)


def in_range(following: Following, index: Wide, size: int, *, negative: bool = False) -> fx.Node:
    """Return an index at every place that is within an axis of some length, also where no row is picked.

    Where one is picked it is within, or the model itself would fail.
    """
    copy, space = following.copy, index.space
    if space.mask is None:
        return index.node
    least, most = (-size if negative else 0), size - 1
    known = settled(index.node)
    if known is not None:
        within = not known.numel() or (int(known.min()) >= least and int(known.max()) <= most)
        return index.node if within else copy.add(aten.clamp.default, index.node, least, most)
    form = value(index.node)
    zero = copy.add(aten.scalar_tensor.default, 0, dtype=form.dtype, device=torch.device("cpu"))
    return copy.add(aten.where.self, following.flag(space, form.ndim, index.axis), index.node, zero)


def settled(node: fx.Node) -> torch.Tensor | None:
    """Return the value of a node that is made of numbers alone, None for any other."""
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return None
    if torch.Tag.nondeterministic_seeded in node.target.tags:
        return None
    values: dict[fx.Node, Any] = {read: settled(read) for read in node.all_input_nodes}
    if any(known is None for known in values.values()):
        return None
    args, kwargs = fx.node.map_arg((node.args, dict(node.kwargs)), lambda n: values[n])
    found = node.target(*args, **kwargs)
    return found if isinstance(found, torch.Tensor) else None


def dims_of(call: RowCall, ndim: int, name: str = "dim") -> set[int]:
    """Return the axes that an argument names.

    Raises
    ------
    NotRowsError
        Where it names none, which often means all.
    """
    dims = call.argument(name)
    if dims is None or not ndim:
        raise NotRowsError
    named = {d % ndim for d in (dims if isinstance(dims, (list, tuple)) else [dims])}
    if not named:
        raise NotRowsError
    return named


def first_shape(call: RowCall) -> tuple[int, ...]:
    """Return the shape of the first argument, as it was recorded."""
    node = call.node.args[0]
    assert isinstance(node, fx.Node)
    return shape(node)
