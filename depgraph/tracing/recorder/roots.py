"""Parts of a memory as elements of all that is known of it, which lies along one axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from depgraph.errors import TracingError
from depgraph.tracing.private import StorageWeakRef, storage_behind, unrecorded
from depgraph.tracing.recorder.geometry import Geometry
from depgraph.tracing.recorder.memory import Memory, View

aten = torch.ops.aten

#: Adds a call to the graph, its value being laid out like a tensor.
Emit = Callable[[Any, tuple[Any, ...], dict[str, Any], Any], fx.Node]
#: Adds a constant to the graph.
Constant = Callable[[Tensor], fx.Node]


class Roots:
    """What is read out of the roots of memories, and written into them.

    Parameters
    ----------
    emit, constant : callable
    """

    def __init__(self, emit: Emit, constant: Constant) -> None:
        self._emit, self._constant = emit, constant

    def _covers(self, memory: Memory, geometry: Geometry) -> bool:
        """Return whether a part lies within what the root holds, and the root lies in one stretch."""
        root = memory.root
        if geometry.dtype != root.dtype or not root.plain or root.order() is None:
            return False
        if not geometry.elements:
            return True
        last = geometry.offset + sum((n - 1) * s for n, s in zip(geometry.size, geometry.stride, strict=True))
        return root.offset <= geometry.offset and last < root.offset + root.elements

    def _out_of_root(self, memory: Memory, geometry: Geometry) -> fx.Node:
        if geometry == memory.root:
            return memory.node
        if not self._covers(memory, geometry):
            self._flatten(memory)
        root, node = memory.root, self._line(memory)
        if geometry.dtype != root.dtype:
            line = _recast(Geometry(0, (root.elements,), (1,), root.dtype), geometry.dtype)
            if line is None or root.offset:
                raise _lost(geometry)
            node, root = self._emit(aten.view.dtype, (node, geometry.dtype), {}, line), line
        args = (node, list(geometry.size), list(geometry.stride), geometry.offset - root.offset)
        return self._emit(aten.as_strided.default, args, {}, geometry)

    def _into_root(self, memory: Memory, geometry: Geometry, node: fx.Node) -> fx.Node:
        """Return what the root holds after a write to a part of it."""
        root, line = memory.root, self._line(memory)
        flat = Geometry(root.offset, (root.elements,), (1,), root.dtype)
        inner = flat
        if geometry.dtype != root.dtype:
            recast = _recast(Geometry(0, (root.elements,), (1,), root.dtype), geometry.dtype)
            if recast is None or root.offset:
                raise _lost(geometry)
            line, inner = self._emit(aten.view.dtype, (line, geometry.dtype), {}, recast), recast
        args = (line, node, list(geometry.size), list(geometry.stride), geometry.offset - inner.offset)
        line = self._emit(aten.as_strided_scatter.default, args, {}, inner)
        if inner is not flat:
            line = self._emit(aten.view.dtype, (line, root.dtype), {}, flat)
        if root == flat:
            return line
        order = root.order()
        assert order is not None
        sizes = tuple(root.size[axis] for axis in order)
        sorted_ = root._replace(size=sizes, stride=tuple(root.stride[axis] for axis in order))
        line = self._emit(aten.reshape.default, (line, list(sizes)), {}, sorted_)
        back = sorted(range(len(order)), key=lambda k: order[k])
        return line if back == list(range(len(back))) else self._emit(aten.permute.default, (line, back), {}, root)

    def _line(self, memory: Memory) -> fx.Node:
        """Return the root as its elements lie in memory, along one axis."""
        root, node = memory.root, memory.node
        if len(root.size) == 1 and root.stride == (1,):
            return node
        order = root.order()
        assert order is not None
        if order != tuple(range(len(order))):
            sizes = tuple(root.size[axis] for axis in order)
            sorted_ = root._replace(size=sizes, stride=tuple(root.stride[axis] for axis in order))
            node = self._emit(aten.permute.default, (node, list(order)), {}, sorted_)
        return self._emit(aten.reshape.default, (node, [-1]), {}, root._replace(size=(root.elements,), stride=(1,)))

    def _flatten(self, memory: Memory) -> None:
        """Take the whole storage as the root, with what is known of its parts."""
        if memory.version:
            if memory.root.order() is None or not memory.root.plain or not has_strides_of(memory):
                raise _lost(memory.root)
            parts: Sequence[tuple[Geometry, fx.Node]] = [(memory.root, memory.node)]
        else:
            parts = memory.regions
        owner = storage_of(memory)
        if owner is None or (not memory.root.stride and memory.root.size):
            raise _lost(memory.root)
        with unrecorded():
            line = flat(torch.empty(0, dtype=memory.root.dtype, device=owner.device), owner)
        whole = Geometry.of(line)
        if memory.alone:
            node = self._emit(aten.zeros.default, (list(whole.size),), {"dtype": whole.dtype}, whole)
        else:
            node = self._constant(line)
            memory.constants.append(node)
        for geometry, part in parts:
            plain = geometry._replace(conjugated=False, negated=False)
            if not geometry.plain or geometry.dtype != whole.dtype:
                raise _lost(geometry)
            args = (node, part, list(plain.size), list(plain.stride), plain.offset)
            node = self._emit(aten.as_strided_scatter.default, args, {}, whole)
        memory.root, memory.node, memory.regions = whole, node, [(whole, node)]
        memory.views[whole] = View(memory.version, node)


def has_strides_of(memory: Memory) -> bool:
    """Return whether the root of a memory lies in it at regular distances."""
    return len(memory.root.stride) == len(memory.root.size)


def storage_of(memory: Memory) -> Any:
    """Return the storage of a memory, None where it has none, or none any more."""
    if memory.whole is not None:
        return memory.whole.untyped_storage() if memory.owner is not memory.whole else None
    return storage_behind(memory.owner) if isinstance(memory.owner, StorageWeakRef) else None


def flat(like: Tensor, storage: Any) -> Tensor:
    """Return a storage as a tensor with one axis."""
    count = storage.nbytes() // like.element_size()
    return torch.empty(0, dtype=like.dtype, device=like.device).set_(storage, 0, (count,), (1,))


def _recast(line: Geometry, dtype: torch.dtype) -> Geometry | None:
    """Return a line of memory as elements of another dtype, None where it does not come out even."""
    count, rest = divmod(line.elements * line.dtype.itemsize, dtype.itemsize)
    return None if rest else line._replace(size=(count,), dtype=dtype)


def _lost(geometry: Geometry) -> TracingError:
    return TracingError(
        f"A tensor of shape {geometry.size} and strides {geometry.stride} shares its memory with another one in a way "
        "that cannot be followed: make a copy of it with clone() before it is written to."
    )
