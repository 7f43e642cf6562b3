"""Values that leave the graph for Python: noted, or followed as symbolic numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, fx

from depgraph.tracing.origin import current_line
from depgraph.tracing.private import unrecorded, unwrapped
from depgraph.tracing.python.checks import is_check
from depgraph.tracing.python.escapes import Escape
from depgraph.tracing.python.numbers import Number, node_of, symbolic, value_of
from depgraph.tracing.python.opaque import PYTHON
from depgraph.tracing.python.ways_out import Kind
from depgraph.tracing.recorder.geometry import Geometry
from depgraph.tracing.recorder.nodes import Nodes

aten = torch.ops.aten

#: Changes the value of the escape with a number on its way.
Shift = Callable[[int, Any], Any]

_DTYPES = {bool: torch.bool, int: torch.int64, float: torch.float64}


class Leaving(Nodes):
    """A graph in the making, and the values that leave it.

    Parameters
    ----------
    parent : Nodes, optional
    shift : callable, optional
        Changes the numbers and arrays that leave.

    Attributes
    ----------
    escapes : list of Escape
    """

    def __init__(self, parent: Nodes | None = None, shift: Shift | None = None) -> None:
        super().__init__(parent)
        self.shift = shift
        self.escapes: list[Escape] = []

    def left(
        self, kind: Kind, operation: str, value: Any, reads: Sequence[fx.Node],
        *, movable: bool | None = None, number: fx.Node | None = None,
    ) -> Any:  # fmt: skip
        """Note a value that leaves the graph, and return it, changed perhaps if it may be.

        One that is only checked is passed over: the model then goes on as it does, or not at all.
        """
        line = current_line()
        if not reads or is_check(line):
            return value
        if movable is None:
            movable = kind in ("number", "array", "text", "symbol")
        given = value
        if self.shift is not None and movable:
            with unrecorded():
                shifted = (self.shift(k, value) for k in range(len(self.escapes), len(self.escapes) + len(reads)))
                given = next((other for other in shifted if other is not value), value)
        at = len(self.graph.nodes)
        for read in reads:
            self.escapes.append(Escape(kind, operation, given, line, read, at, movable=movable, number=number))
        return given

    def number(self, tensor: Tensor, value: Any) -> Any:
        """Return the number in a tensor, which stays symbolic for as long as Python lets it."""
        node = self.seen(tensor)
        if type(value) not in (int, float, bool):
            return value
        item = self.derived(aten.item.default, (node,), {}, value)
        return symbolic(self.left("symbol", "item", value, [node], number=item), item, self)

    def number_here(self, number: Any) -> fx.Node:
        """Return the node of a symbolic number; in the body of an operator, of one that it closes over, lifted."""
        node = node_of(number)
        if node.graph is self.graph or self.parent is None:
            return node
        value = value_of(number)
        assert isinstance(self.parent, Leaving)
        outer = self.parent._tensor(self.parent.number_here(number), value)
        if outer not in self.lifted:
            self.lifted.append(outer)
            form = self.laid_out(Geometry(0, (), (), _DTYPES[type(value)]))
            self.lifted_here.append(self.placeholder(f"lifted_{len(self.lifted)}", form))
        held = self.lifted_here[self.lifted.index(outer)]
        return self.derived(aten.item.default, (held,), {}, value)

    def anywhere(self, tensor: Tensor, axis: int, place: Any) -> Tensor:
        """Return what a tensor holds at a place that was read off a tensor; not a view, since it may be any place."""
        if not isinstance(place, Tensor):
            place = torch.scalar_tensor(place, dtype=torch.int64, device=tensor.device)
        result: Tensor = aten.index.Tensor(tensor, [None] * (axis % tensor.ndim) + [place])
        if (memory := self.memories.find(result)) is not None:
            memory.loose = True
        return result

    def stretch(self, tensor: Tensor, axis: int, index: Tensor, start: int, ends: Tensor) -> Tensor:
        """Return what a tensor holds at places in a row that the values of another one decide; not a view."""
        made = self.call(aten.arange.start, (start, start + len(index)), {}, self.form(index))
        self.memories.made(index, self.call(PYTHON, (made, [self.read(ends)]), {}, self.form(index)))
        result: Tensor = aten.index_select.default(tensor, axis, index)
        if (memory := self.memories.find(result)) is not None:
            memory.loose = True
        return result

    def compute(self, function: Callable[..., Any], args: tuple[Any, ...], value: Any) -> fx.Node:
        """Write down what Python computes of symbolic numbers."""
        return self.derived(function, args, {}, value)

    def settle(self, number: Number, kind: Literal["condition", "number"]) -> Any:
        """Note that a symbolic number ends as a plain one."""
        if number.node is None:
            return number.value
        read = self._tensor(number.node, number.value)
        # A number changes with the symbols that it was computed from; a condition may choose among values, as in max().
        return self.left(kind, "item", number.value, [read], movable=kind == "condition", number=number.node)

    def _tensor(self, node: fx.Node, value: Any) -> fx.Node:
        """Return a tensor that holds a number of the graph: the one that it was read off, else a new one."""
        if node.target is aten.item.default:
            (tensor,) = node.args
            assert isinstance(tensor, fx.Node)
            return tensor
        dtype = _DTYPES[type(value)]
        return self.derived(
            aten.scalar_tensor.default, (node,), {"dtype": dtype}, self.laid_out(Geometry(0, (), (), dtype))
        )

    def seen(self, tensor: Tensor) -> fx.Node:
        """Return the node of a tensor whose values leave."""
        with unrecorded():
            return self.read(unwrapped(tensor))
