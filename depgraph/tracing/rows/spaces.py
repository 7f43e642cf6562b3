"""The words of the pass: places, rows picked from them, and what a tensor of rows is at all places."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor, fx


class NotRowsError(Exception):
    """An operator does not work row by row, or nobody can be sure that it does: it stays as it was recorded."""


@dataclass(frozen=True, eq=False)
class Space:
    """Places, and which of them rows are picked from.

    Attributes
    ----------
    mask : torch.fx.Node or None
        Rows are picked where it is true, in row-major order of the places.
    key : torch.fx.Node or None
        In place of a mask: every place is picked, in the order of this one-dimensional tensor.
    shape : tuple of int
        Of the mask or the key.
    size : int
        How many rows there are for the example inputs. Of a mask, other inputs may make it another number.
    ascending : bool
        Whether the key is sorted upwards.
    """

    mask: fx.Node | None
    key: fx.Node | None
    shape: tuple[int, ...]
    size: int
    ascending: bool = True

    @property
    def count(self) -> int:
        """The number of places."""
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class Wide:
    """What a tensor of rows is at every place.

    Attributes
    ----------
    node : torch.fx.Node
        At places that are not picked it may hold anything.
    axis : int
        The axis of rows, of places in ``node``; of each tensor where there are several.
    space : Space
    coordinate : int
        Which coordinate of the place it is, -1 where it is none.
    """

    node: fx.Node
    axis: int
    space: Space
    coordinate: int = -1


@dataclass(frozen=True, eq=False)
class Told:
    """What Python was told of sizes that values decide.

    Attributes
    ----------
    sizes : bool
        Whether it was told one.
    walked : tuple of torch.fx.Node
        What it went through index by index.
    """

    sizes: bool = False
    walked: tuple[fx.Node, ...] = ()


#: Python was told of none.
NOTHING = Told()


def value(node: fx.Node) -> Tensor:
    """Return the tensor without data that a node gives.

    Raises
    ------
    NotRowsError
        Where it gives none, or several.
    """
    found = node.meta.get("val")
    if not isinstance(found, Tensor):
        raise NotRowsError
    return found


def shape(node: fx.Node) -> tuple[int, ...]:
    """Return the shape of the tensor that a node gives."""
    return tuple(value(node).shape)


def name_of(node: fx.Node) -> str:
    """Return the name of the operator that a node calls, without its overload; "" for anything else.

    Of other namespaces than PyTorch's own it is the full name.
    """
    schema = getattr(node.target, "_schema", None)
    return "" if schema is None else str(schema.name).removeprefix("aten::")
