"""What is known while a graph is gone through: which nodes are rows, and of which places."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from depgraph.tracing.rows.sizes import sized
from depgraph.tracing.rows.spaces import Space, Wide, value
from depgraph.tracing.rows.writing import Copy

aten = torch.ops.aten


class Following:
    """Rows found so far, in a copy of a graph.

    Attributes
    ----------
    copy : Copy
    wide : dict
        Node to what it is at every place.
    inverse : dict
        Node that holds, for each place of a key, its rank, to the key's space.
    sized : set
        Nodes that give tensors whose sizes values may decide: nothing is picked by such.
    """

    def __init__(self, copy: Copy) -> None:
        self.copy = copy
        self.wide: dict[fx.Node, Wide] = {}
        self.inverse: dict[fx.Node, Space] = {}
        self.sized = sized(copy.graph)
        self._masks: dict[fx.Node, Space] = {}

    def get(self, argument: Any) -> Wide | None:
        """Return what an argument is at every place, None where it is not made of rows."""
        return self.wide.get(argument) if isinstance(argument, fx.Node) else None

    def places(self, node: fx.Node) -> dict[fx.Node, fx.Node]:
        """Return what the rows that a node reads are at every place."""
        return {read: self.wide[read].node for read in node.all_input_nodes if read in self.wide}

    def of_mask(self, mask: fx.Node, size: int) -> Space:
        """Return the places of a mask."""
        if mask not in self._masks:
            self._masks[mask] = Space(mask, None, tuple(value(mask).shape), size)
        return self._masks[mask]

    def flag(self, space: Space, ndim: int, axis: int) -> fx.Node:
        """Write the mask along one axis of so many, as truth values."""
        assert space.mask is not None
        return self.truth(self.copy.flat(space.mask, axis, ndim))

    def truth(self, mask: fx.Node) -> fx.Node:
        """Write a mask as truth values."""
        return mask if value(mask).dtype == torch.bool else self.copy.add(aten._to_copy.default, mask, dtype=torch.bool)

    def masked(self, rows: Wide) -> fx.Node:
        """Write rows at every place, zeros where none is picked."""
        form = value(rows.node)
        if rows.space.mask is None:
            return rows.node
        zero = self.copy.add(aten.scalar_tensor.default, 0, dtype=form.dtype, device=torch.device("cpu"))
        return self.copy.add(aten.where.self, self.flag(rows.space, form.ndim, rows.axis), rows.node, zero)
