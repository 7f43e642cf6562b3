"""Values and memory that leave tensors for Python, as what is done about it while a model runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import Tensor

from depgraph.tracing.private import is_wrapped, unrecorded, unwrapped
from depgraph.tracing.python.ways_out import Kind
from depgraph.tracing.recorder.fakes import Fakes, NoValuesError
from depgraph.tracing.recorder.geometry import has_strides
from depgraph.tracing.recorder.recorder import Recorder

aten = torch.ops.aten

#: Longer lists of numbers are plain numbers.
_MOST = 256


class Exits:
    """What leaves a running model.

    Attributes
    ----------
    recorder : Recorder
        The model's own, or that of a body of a higher-order operator.
    numbers : bool
        Whether numbers read off tensors stay symbolic.
    fakes : Fakes or None
        What runs operators without data.
    """

    def __init__(self, recorder: Recorder, *, numbers: bool, fakes: Fakes | None) -> None:
        self.recorder, self.numbers, self.fakes = recorder, numbers, fakes
        self._off = 0

    def calling(self) -> AbstractContextManager[Any]:
        """Record what a function calls that a mode is looking at."""
        raise NotImplementedError

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Record nothing of what runs."""
        self._off += 1
        try:
            yield
        finally:
            self._off -= 1

    def scalar(self, op: Any, args: Any, kwargs: Any) -> Any:
        """Run an operator that takes a value out of tensors."""
        reads = [self.recorder.read(tensor) for tensor in args if isinstance(tensor, Tensor)]
        value = self.taken(op, args, kwargs)
        kind: Kind = "condition" if isinstance(value, bool) else "number"
        return self.recorder.left(kind, op._opname, value, reads, movable=True)

    def taken(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Call what takes values out of tensors, and record nothing of it."""
        if self.fakes is None:
            with self.silent():
                return function(*args, **kwargs)
        values = [self.fakes.values(arg) if isinstance(arg, Tensor) else arg for arg in args]
        if any(value is None and isinstance(arg, Tensor) for value, arg in zip(values, args, strict=True)):
            raise NoValuesError
        with self.silent(), unrecorded():
            return function(*values, **kwargs)

    def stretches(self, op: Any, *args: Any) -> Any:
        """Run an operator that takes parts of a tensor which start where the values of another one say."""
        return self._narrow(*args) if op is aten.narrow.Tensor else self._split(op, *args)

    def _narrow(self, tensor: Tensor, dim: int, start: Tensor, length: int) -> Tensor:
        first = self.taken(Tensor.item, (start,), {})
        with self.silent():
            part = torch.arange(tensor.shape[dim]).narrow(0, first, length)
        return self.recorder.stretch(tensor, dim, part, first % max(tensor.shape[dim], 1), start)

    def _split(self, op: Any, tensor: Tensor, ends: Tensor, dim: int = 0) -> list[Tensor]:
        values = self.taken(Tensor.tolist, (ends,), {})
        self.recorder.left("size", op._opname, values, [self.recorder.read(ends)])
        with self.silent():
            shown = torch.arange(tensor.shape[dim])
            parts = [part.clone() for part in shown.tensor_split(values)]
            starts = [int(part[0]) if len(part) else 0 for part in parts]
        return [self.recorder.stretch(tensor, dim, *part, ends) for part in zip(parts, starts, strict=True)]

    def numbers_in(self, tensor: Tensor, *, whole: bool) -> Any:
        """Return the number in a tensor or, in lists, all of them, as symbolic numbers."""
        if not whole or not tensor.dim():
            return self.recorder.number(tensor, self.taken(Tensor.item, (tensor,), {}))
        if tensor.numel() > _MOST:
            values = self.taken(Tensor.tolist, (tensor,), {})
            return self.recorder.left("array", "tolist", values, [self.recorder.seen(tensor)])
        with self.calling():
            return [self.numbers_in(part, whole=True) for part in tensor]

    def hand_out(self, func: Any, tensor: Tensor) -> None:
        """Note that the memory of a tensor is handed out, and by its address all that is in it."""
        if func is Tensor.data_ptr and self.fakes is None and not is_wrapped(tensor) and tensor.numel():
            with self.silent():
                held = tensor.detach().clone()
            given = self.recorder.left("array", "data_ptr", held, [self.recorder.seen(tensor)])
            if given is not held:
                self.recorder.before_write(tensor)
                with self.silent(), unrecorded(), torch.no_grad():
                    tensor.copy_(given)
        self.lend(tensor)

    def copied(self, func: Any, tensor: Tensor, memo: Any) -> Any:
        """Copy a tensor with all of its memory, once for all tensors that share it."""
        if self.fakes is not None or self.recorder.memories.find(tensor) is None or not has_strides(tensor):
            return tensor.clone()
        self.recorder.read(tensor)
        with self.silent():
            result = func(tensor, memo)
        self.recorder.memories.copied(tensor, result)
        return result

    def by_elements(self, func: Any, args: Any) -> Any:
        """Run a method that calls a Python function on each element of a tensor, and writes what it returns there."""
        tensors = [arg for arg in args if isinstance(arg, Tensor)]
        reads = [self.recorder.seen(tensor) for tensor in tensors]
        self.recorder.before_write(tensors[0])
        with self.silent():
            result = func(*args)
        self.recorder.made_by_python(tensors[0], reads)
        return result

    def lend(self, tensor: Tensor) -> None:
        """Note that the memory of a tensor is handed out."""
        with unrecorded():
            tensor = unwrapped(tensor)
            if self.recorder.memories.find(tensor) is None:
                self.recorder.read(tensor)
            self.recorder.before_write(tensor)
            self.recorder.memories.lend(tensor)

    def text(self, tensor: Tensor, form: str) -> str:
        """Return the number in a tensor as a text, of which Python may make a number again."""
        value = self.taken(Tensor.item, (tensor,), {})
        return format(self.recorder.left("text", "format", value, [self.recorder.seen(tensor)]), form)
