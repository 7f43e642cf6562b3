"""What the memories of tensors hold, as nodes of a graph.

Tensors are told apart by what they are, not by where they came from: two that show the same elements of the same memory
are one, whichever attribute, list or closure holds them. A write changes the memory; every view of it that was read
before is read again from the memory when it is needed next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx

from depgraph.errors import TracingError
from depgraph.tracing.python.opaque import PYTHON
from depgraph.tracing.recorder.geometry import INVERSES, Geometry, has_strides, memory_of, piece
from depgraph.tracing.recorder.private import StorageWeakRef, unrecorded

aten = torch.ops.aten

#: Adds a call to the graph, its value being laid out like a tensor.
Emit = Callable[[Any, tuple[Any, ...], dict[str, Any], Any], fx.Node]
#: Adds a constant to the graph.
Constant = Callable[[Tensor], fx.Node]


@dataclass(slots=True)
class View:
    """A part of a memory, and the node that holds it.

    Attributes
    ----------
    version : int
        The version of the memory at which the node held it, -1 for none.
    node : torch.fx.Node or None
    parent : Geometry or None
        What it is a view of; None where it is read from the memory as a whole.
    operator, args, kwargs
        How it is made of its parent.
    """

    version: int = -1
    node: fx.Node | None = None
    parent: Geometry | None = None
    operator: Any = None
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


class Memory:
    """One memory, and what is known of it.

    Attributes
    ----------
    owner
        Keeps the storage alive, or only its address from being used again.
    root : Geometry
        The part that ``node`` holds: all that anybody has read or written.
    version : int
        Number of writes.
    views : dict
    regions : list
        Geometry and node of the tensors known by name that lie in it.
    twins : list of Memory
        Memories that are one in the caller's program, where they are two inputs.
    constants : list of torch.fx.Node
        Nodes that hold what was in it at first, if that was not known by name.
    part_of : Memory or None
        That of a sparse tensor, whose values it holds.
    loose : bool
        Whether it is a copy of what the program takes for a view.
    lent : tuple or None
        A tensor whose memory was handed out to NumPy, and a copy of what was in it.
    fresh : bool
        Whether it was made while the model ran.
    whole : torch.Tensor or None
        A tensor over the storage; None where it has none.
    """

    def __init__(self, owner: Any, whole: Tensor | None, root: Geometry, node: fx.Node, *, fresh: bool) -> None:
        self.owner, self.whole, self.root, self.node, self.fresh = owner, whole, root, node, fresh
        self.version = 0
        self.views: dict[Geometry, View] = {root: View(0, node)}
        self.regions = [(root, node)]
        self.twins: list[Memory] = []
        self.constants: list[fx.Node] = []
        self.loose = False
        self.part_of: Memory | None = None
        self.lent: tuple[Tensor, Tensor] | None = None


class Memories:
    """The memories that a recording has come across.

    Parameters
    ----------
    emit, constant : callable
    """

    def __init__(self, emit: Emit, constant: Constant) -> None:
        self._emit, self._constant = emit, constant
        self._known: dict[int, Memory] = {}

    def written_constants(self) -> set[str]:
        """Return the names of the constants whose memory was written to."""
        return {str(node.target) for memory in self._known.values() if memory.version for node in memory.constants}

    def changed(self) -> bool:
        """Return whether something was written to that was there before."""
        return any(memory.version and not memory.fresh for memory in self._known.values())

    def at(self, key: int) -> Memory | None:
        """Return the memory that goes by a key of `memory_of`."""
        return self._known.get(key)

    def find(self, tensor: Tensor) -> Memory | None:
        """Return the memory of a tensor, None where it has not been seen."""
        return self._known.get(memory_of(tensor)[0])

    def made(self, tensor: Tensor, node: fx.Node) -> Memory:
        """Note a tensor that an operation has made."""
        key, owner = memory_of(tensor)
        held = StorageWeakRef(owner) if owner is not tensor else owner
        self._known[key] = memory = Memory(held, None, Geometry.of(tensor), node, fresh=True)
        return memory

    def given(self, tensor: Tensor, node: fx.Node) -> Memory:
        """Note a tensor that is there before the model runs, and is known by name; several may share a memory."""
        key, owner = memory_of(tensor)
        geometry = Geometry.of(tensor)
        memory = self._known.get(key)
        if memory is None:
            self._known[key] = memory = Memory(owner, tensor if owner is not tensor else None, geometry, node,
                                               fresh=False)  # fmt: skip
            return memory
        if geometry not in memory.views:  # else it is the same tensor under another name
            memory.regions.append((geometry, node))
            memory.views[geometry] = View(memory.version, node)
        return memory

    def alias(self, tensor: Tensor, other: Memory) -> None:
        """Let the memory of a tensor, which stands for another one, be that one."""
        self._known[memory_of(tensor)[0]] = other

    def first_seen(self, tensor: Tensor) -> Memory:
        """Note a tensor that was there before, or that came about by other means than operators."""
        key, owner = memory_of(tensor)
        whole = tensor
        if owner is not tensor and has_strides(tensor):
            geometry = Geometry.of(tensor)
            count = owner.nbytes() // tensor.element_size()
            if not geometry.plain or geometry.elements != count or geometry.order() is None or geometry.offset:
                with unrecorded():
                    whole = _flat(tensor, owner)
        node = self._constant(whole)
        self._known[key] = memory = Memory(owner, whole, Geometry.of(whole), node, fresh=False)
        memory.constants.append(node)
        return memory

    def read(self, tensor: Tensor) -> fx.Node:
        """Return the node that holds a tensor now."""
        memory = self.find(tensor)
        if memory is None:
            memory = self.first_seen(tensor)
        if memory.lent is not None:
            self._look_again(memory, memory.lent)
        return self.value(memory, Geometry.of(tensor))

    def lend(self, tensor: Tensor) -> None:
        """Note that the memory of a tensor was handed out, and may be written to unseen from now on."""
        memory = self.find(tensor)
        assert memory is not None
        with unrecorded():
            memory.lent = tensor.detach(), tensor.detach().clone()

    def _look_again(self, memory: Memory, lent: tuple[Tensor, Tensor]) -> None:
        """Take what a memory holds that was handed out for a new tensor, if it holds something else than before."""
        tensor, before = lent
        with unrecorded():
            if torch.equal(tensor.nan_to_num(), before.nan_to_num()):
                return
            now = tensor.clone()
        memory.lent = tensor, now
        self._write(memory, Geometry.of(tensor), self._constant(now))

    def view(self, source: Geometry, memory: Memory, tensor: Tensor, call: tuple[Any, ...] | None) -> None:
        """Note that a tensor shows a part of a memory, made of another part of it by a call."""
        geometry = Geometry.of(tensor)
        if geometry in memory.views:
            return
        memory.views[geometry] = View() if call is None else View(-1, None, source, *call)

    def value(self, memory: Memory, geometry: Geometry) -> fx.Node:
        """Return the node that holds a part of a memory now."""
        view = memory.views.get(geometry)
        if view is not None and view.version == memory.version and view.node is not None:
            return view.node
        if view is None:
            view = memory.views[geometry] = self._looked_up(memory, geometry)
        if view.parent is None:
            node = self._out_of_root(memory, geometry)
        else:
            parent = self.value(memory, view.parent)
            node = self._emit(view.operator, (parent, *view.args), view.kwargs, geometry)
        view.version, view.node = memory.version, node
        return node

    def write(self, memory: Memory, geometry: Geometry, node: fx.Node) -> None:
        """Note that a part of a memory holds something else from now on."""
        for one in (memory, *memory.twins):
            self._write(one, geometry, node)
            if one.lent is not None:
                with unrecorded():
                    one.lent = one.lent[0], one.lent[0].clone()
        if (whole := memory.part_of) is not None:
            reads = [whole.node, memory.node]
            self._write(whole, whole.root, self._emit(PYTHON, (whole.node, reads), {}, whole.root))
        for twin in memory.twins:
            assert memory.whole is not None
            assert twin.whole is not None
            with unrecorded():
                twin.whole.untyped_storage().copy_(memory.whole.untyped_storage())

    def _write(self, memory: Memory, geometry: Geometry, node: fx.Node) -> None:
        if len(memory.regions) > 1 or (geometry != memory.root and not self._covers(memory, geometry)):
            self._flatten(memory)
        value, part = node, geometry
        while part != memory.root:
            view = memory.views.get(part)
            if view is None:
                view = memory.views[part] = self._looked_up(memory, part)
            inverse = INVERSES.get(view.operator)
            if view.parent is None or inverse is None:
                value = self._into_root(memory, part, value)
                break
            parent = self.value(memory, view.parent)
            value = self._emit(*inverse(parent, value, *view.args), {}, view.parent)
            part = view.parent
        memory.node = value
        memory.version += 1
        memory.views[memory.root].version, memory.views[memory.root].node = memory.version, value
        if geometry != memory.root:
            memory.views[geometry].version, memory.views[geometry].node = memory.version, node

    def replaced(self, memory: Memory, tensor: Tensor, node: fx.Node) -> None:
        """Note that a memory has another size from now on, and what it holds."""
        memory.root, memory.node = Geometry.of(tensor), node
        memory.version += 1
        memory.views = {memory.root: View(memory.version, node)}
        memory.regions = [(memory.root, node)]

    def _looked_up(self, memory: Memory, geometry: Geometry) -> View:
        """Return how a part that no operation has shown is made: of the root, as simply as can be."""
        if geometry.conjugated:
            return View(-1, None, geometry._replace(conjugated=False), aten._conj.default)
        if geometry.negated:
            return View(-1, None, geometry._replace(negated=False), aten._neg_view.default)
        call = piece(memory.root, geometry)
        return View() if call is None else View(-1, None, memory.root, *call)

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
        owner = memory.owner if memory.whole is not None else _storage_of(memory)
        if owner is None or (not memory.root.stride and memory.root.size):
            raise _lost(memory.root)
        with unrecorded():
            flat = _flat(torch.empty(0, dtype=memory.root.dtype, device=owner.device), owner)
        whole = Geometry.of(flat)
        node = self._constant(flat)
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


def _storage_of(memory: Memory) -> Any:
    """Return the storage of a memory made while the model ran."""
    if not isinstance(memory.owner, StorageWeakRef) or memory.owner.expired():
        return None
    return torch.UntypedStorage._new_with_weak_ptr(memory.owner.cdata)


def _flat(like: Tensor, storage: Any) -> Tensor:
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
