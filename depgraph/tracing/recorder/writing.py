"""What operators write to memory, as operators that return it; and what is written there by others."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from depgraph.tracing.private import unrecorded
from depgraph.tracing.python.opaque import PYTHON
from depgraph.tracing.recorder.functional import Written, functional, in_place
from depgraph.tracing.recorder.geometry import Geometry, has_strides
from depgraph.tracing.recorder.leaving import Leaving, Shift
from depgraph.tracing.recorder.memory import Memory
from depgraph.tracing.recorder.nodes import Nodes

aten = torch.ops.aten


class Writing(Leaving):
    """A graph in the making, and what is written to memory.

    Parameters
    ----------
    before_write : callable
        Told of a tensor whose memory is about to be written to.
    parent : Nodes, optional
    shift : callable, optional
    """

    def __init__(
        self, before_write: Callable[[Tensor], None], parent: Nodes | None = None, shift: Shift | None = None
    ) -> None:
        super().__init__(parent, shift)
        self.before_write = before_write
        self._blank: list[Memory] = []

    def filled(self, tensors: Sequence[Tensor]) -> bool:
        """Note that tensors are read: those that no operation has filled something else may have, if values left.

        Returns
        -------
        bool
            Whether there were any.
        """
        self._blank = [memory for memory in self._blank if not memory.version]
        if not any(escape.kind in ("number", "array", "text") for escape in self.escapes):
            return False
        read = [self.memories.find(tensor) for tensor in tensors] if self._blank else []
        found = [memory for memory in self._blank if any(memory is one for one in read)]
        for memory in found:
            self.memories.take(memory)
        return bool(found)

    def _write(self, op: Any, nodes: Any, changed: list[Written], before: list[Geometry], result: Any) -> None:
        """Write down an operation that writes, as one that returns what it writes."""
        positional, named = nodes
        outs = {one.name for one in changed if one.out}
        target = functional(op)
        returned = [
            value for value, form in zip(_flat(result), op._schema.returns, strict=False)
            if form.alias_info is None and isinstance(value, Tensor)
        ]  # fmt: skip
        if target is None:
            target = in_place(op)
        else:
            takes = {argument.name for argument in target._schema.arguments}
            named = {key: value for key, value in named.items() if key not in outs and key in takes}
            positional = positional[: len(target._schema.arguments)]
        every = [*returned, *(one.tensor for one in changed)]
        returns = target._schema.returns if isinstance(target, torch._ops.OpOverload) else ()
        single = len(returns) == 1 and str(returns[0].type) == "Tensor"
        if single:
            form = self._computed(target, positional, named, every[0])
            parts = [self.call(target, positional, named, form)]
        else:
            whole = self.call(target, positional, named, tuple(map(self.form, every)))
            parts = [self.call(operator.getitem, (whole, k), {}, self.form(t)) for k, t in enumerate(every)]
        for tensor, node in zip(returned, parts, strict=False):
            self.memories.made(tensor, node)
        for one, geometry, node in zip(changed, before, parts[len(returned) :], strict=True):
            now = Geometry.of(one.tensor)
            if node.meta["val"].dtype != now.dtype:
                node = self.call(aten._to_copy.default, (node,), {"dtype": now.dtype}, self.laid_out(now))
            memory = self.memories.find(one.tensor)
            if memory is None:
                memory = self.memories.first_seen(one.tensor)
            if now != geometry and one.out and _grown(one.tensor, geometry):
                self.memories.replaced(memory, one.tensor, node)
            else:
                self.memories.write(memory, now, node)
            if memory.lent is not None:
                self._show(op, one.tensor)

    def _show(self, op: Any, tensor: Tensor) -> None:
        """Note that what was written to memory that Python holds has left with that."""
        with unrecorded():
            held = tensor.detach().clone()
        given = self.left("array", op._opname, held, [self.read(tensor)])
        if given is not held:
            with unrecorded(), torch.no_grad():
                tensor.copy_(given)
            self.memories.lend(tensor)

    def made_by_python(self, tensor: Tensor, reads: Sequence[fx.Node]) -> None:
        """Note that a tensor holds something else that Python has made of others."""
        with unrecorded():
            now = tensor.detach().clone()
        memory = self.memories.find(tensor)
        assert memory is not None
        geometry = Geometry.of(tensor)
        self.memories.write(memory, geometry, self.view_of(PYTHON, (self.constant(now), list(reads)), {}, geometry))

    def _computed(self, target: Any, args: Any, kwargs: Any, out: Tensor) -> Tensor:
        """Return the form of what an operator returns before it is put into a tensor, which may have another dtype."""
        forms = [node.meta["val"].dtype for node in _nodes_in(args, kwargs) if isinstance(node.meta["val"], Tensor)]
        numbers = any(isinstance(arg, (float, complex)) for arg in (*args, *kwargs.values()))
        alike = all(dtype == out.dtype for dtype in forms) and bool(forms or kwargs.get("dtype") == out.dtype)
        if alike and (out.is_floating_point() or not numbers):
            return self.laid_out(Geometry.of(out))
        given = fx.map_arg((args, kwargs), lambda node: node.meta["val"])
        with unrecorded():
            try:
                result = target(*given[0], **given[1])
            except (RuntimeError, NotImplementedError, TypeError):
                return self.form(out)  # type: ignore[no-any-return]
        return self.laid_out(Geometry.of(out)._replace(dtype=result.dtype))


def _grown(tensor: Tensor, before: Geometry) -> bool:
    """Return whether a tensor has more elements than before: then its memory may be another."""
    return tensor.numel() > before.elements or not has_strides(tensor)


def _flat(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def _nodes_in(*trees: Any) -> list[fx.Node]:
    found: list[fx.Node] = []
    fx.map_arg(trees, found.append)
    return found
