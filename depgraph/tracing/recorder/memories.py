"""What the memories of tensors hold, as nodes of a graph.

Tensors are told apart by what they are, not by where they came from: two that show the same elements of the same memory
are one, whichever attribute, list or closure holds them. A write changes the memory; every view of it that was read
before is read again from the memory when it is needed next.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, fx

from depgraph.tracing.private import StorageWeakRef, unrecorded
from depgraph.tracing.python.opaque import PYTHON
from depgraph.tracing.recorder.geometry import INVERSES, Geometry, has_strides, memory_of, piece
from depgraph.tracing.recorder.memory import Lent, Memory, View
from depgraph.tracing.recorder.roots import Constant, Emit, Roots, flat, storage_of

aten = torch.ops.aten


class Memories(Roots):
    """The memories that a recording has come across.

    Parameters
    ----------
    emit, constant : callable

    Attributes
    ----------
    rewritten : set of int
        Which looks at memory that was handed out, counted from the first, showed something new.
    expected : frozenset of int
        Which of them count as if they did.
    all_lent : bool
        Whether all memory was handed out.
    """

    def __init__(self, emit: Emit, constant: Constant) -> None:
        super().__init__(emit, constant)
        self._known: dict[int, Memory] = {}
        self._others: list[Any] = []  # storages that lie where another one does: their keys are not to be used again
        self._looks = 0
        self.rewritten: set[int] = set()
        self.all_lent = False
        self.expected: frozenset[int] = frozenset()

    def written_constants(self) -> set[str]:
        """Return the names of the constants whose memory was written to."""
        return {str(node.target) for memory in self._known.values() if memory.version for node in memory.constants}

    def changed(self) -> bool:
        """Return whether something was written to that was there before."""
        return any(memory.version and not memory.fresh for memory in self._known.values())

    def of(self, tensor: Tensor) -> Memory:
        """Return the memory of a tensor that has been read."""
        return self._known[memory_of(tensor)[0]]

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

    def copied(self, tensor: Tensor, copy: Tensor) -> None:
        """Note that all of a memory was copied; several tensors that show it may be copied one after the other."""
        source, (key, owner) = self._known[memory_of(tensor)[0]], memory_of(copy)
        if key in self._known and self._known[key].copy_of == (source, source.version):
            return
        if len(source.regions) > 1:
            self._flatten(source)
        held = StorageWeakRef(owner)
        self._known[key] = memory = Memory(held, None, source.root, source.node, fresh=True)
        memory.alone, memory.copy_of = source.alone, (source, source.version)

    def first_seen(self, tensor: Tensor) -> Memory:
        """Note a tensor that was there before, or that came about by other means than operators."""
        key, owner = memory_of(tensor)
        whole = tensor
        others = self._at_address(owner) if owner is not tensor else []
        for other, place in others:
            if place == (owner.data_ptr(), owner.nbytes()):  # the same, by another name
                self._known[key] = other
                self._others.append(owner)
                return other
        if owner is not tensor and has_strides(tensor):
            geometry = Geometry.of(tensor)
            count = owner.nbytes() // tensor.element_size()
            if not geometry.plain or geometry.elements != count or geometry.order() is None or geometry.offset:
                with unrecorded():
                    whole = flat(tensor, owner)
        constant = node = self._constant(whole)
        if others:
            node = self._emit(PYTHON, (node, [other.node for other, _ in others]), {}, Geometry.of(whole))
        self._known[key] = memory = Memory(owner, whole, Geometry.of(whole), node, fresh=False)
        memory.constants.append(constant)
        for other, _ in others:
            memory.beside.append(other)
            other.beside.append(memory)
        if owner is not tensor and not owner.resizable():  # memory that is not PyTorch's own
            self._lend(memory, owner)
        return memory

    def _at_address(self, storage: Any) -> list[tuple[Memory, tuple[int, int]]]:
        """Return the memories that have bytes in common with a storage, with the place and length of each."""
        if storage.resizable() or not storage.nbytes() or storage.device.type == "meta":
            return []  # PyTorch's own memory has one name only
        start, end = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
        found: dict[int, tuple[Memory, tuple[int, int]]] = {}
        for memory in self._known.values():
            held = storage_of(memory)
            if held is None or held.device.type == "meta":
                continue
            place = held.data_ptr(), held.nbytes()
            if place[0] < end and start < place[0] + place[1]:
                found[id(memory)] = memory, place
        return list(found.values())

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
        storage = storage_of(memory)
        if storage is not None and storage.device.type != "meta":
            self._lend(memory, storage)

    def lend_all(self) -> None:
        """Note that all memory that the model has used so far may be written to unseen from now on: by a thread."""
        self.all_lent = True
        for memory in list(self._known.values()):
            storage = storage_of(memory) if memory.fresh or memory.alone else None
            if storage is not None and memory.lent is None and storage.device.type != "meta":
                self._lend(memory, storage)

    def _lend(self, memory: Memory, storage: Any) -> None:
        with unrecorded():
            memory.lent = Lent(storage, flat(torch.empty(0, dtype=torch.uint8, device=storage.device), storage).clone(),
                               memory.version)  # fmt: skip

    def _look_again(self, memory: Memory, lent: Lent) -> None:
        """Take what a memory holds that was handed out for a new tensor, if it holds something else than before.

        What operators have written there since it was handed out is read besides.
        """
        look, self._looks = self._looks, self._looks + 1
        with unrecorded():
            if look not in self.expected and torch.equal(flat(lent.held, lent.storage), lent.held):
                return
        self.rewritten.add(look)
        self.take(memory)
        self._lend(memory, lent.storage)

    def take(self, memory: Memory) -> None:
        """Take what a memory holds that something else than operators has written for a new tensor."""
        storage, root = storage_of(memory), memory.root
        if storage is None or storage.device.type == "meta":
            return
        with unrecorded():
            shown = torch.empty(0, dtype=root.dtype, device=storage.device)
            now = shown.set_(storage, root.offset, root.size, root.stride).clone()
        node = self._constant(now)
        if memory.version != (memory.lent.version if memory.lent is not None else 0):
            node = self._emit(PYTHON, (node, [memory.node]), {}, root)
        self._write(memory, root, node)

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
            self._seen_again(one)
        if (whole := memory.part_of) is not None:
            reads = [whole.node, memory.node]
            self._write(whole, whole.root, self._emit(PYTHON, (whole.node, reads), {}, whole.root))
        for other in memory.beside:
            reads = [other.node, memory.node]
            self._write(other, other.root, self._emit(PYTHON, (other.node, reads), {}, other.root))
            self._seen_again(other)
        for twin in memory.twins:
            assert memory.whole is not None
            assert twin.whole is not None
            with unrecorded():
                twin.whole.untyped_storage().copy_(memory.whole.untyped_storage())

    def _seen_again(self, memory: Memory) -> None:
        """Note that what was written to a memory that is handed out is known."""
        if memory.lent is not None:
            version = memory.lent.version
            self._lend(memory, memory.lent.storage)
            memory.lent = memory.lent._replace(version=version)

    def _write(self, memory: Memory, geometry: Geometry, node: fx.Node) -> None:
        for axis in reversed(range(len(geometry.stride))):
            if not geometry.stride[axis] and geometry.size[axis] > 1:  # one element, shown again and again
                sizes, strides = (xs[:axis] + xs[axis + 1 :] for xs in (geometry.size, geometry.stride))
                geometry = geometry._replace(size=sizes, stride=strides)
                node = self._emit(aten.select.int, (node, axis, 0), {}, geometry)
        if len(memory.regions) > 1 or (geometry != memory.root and not self._covers(memory, geometry)):
            self._flatten(memory)
        value, part = node, geometry
        while part != memory.root:
            view = memory.views.get(part)
            if view is None:
                view = memory.views[part] = self._looked_up(memory, part)
            inverse = INVERSES.get(view.operator)
            if view.parent is None or inverse is None or view.parent.overlaps:  # which would hold it again, as it was
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
