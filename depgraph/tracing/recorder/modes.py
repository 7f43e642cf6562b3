"""The modes under which a model runs while it is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from depgraph.tracing.origin import asked_by_a_call, called_by_others
from depgraph.tracing.private import (
    LowerMode,
    UpperMode,
    autocasting,
    has_own_dispatch,
    in_transform,
    innermost,
    is_differentiating,
    is_wrapped,
    natively,
    plain_constructors,
    python_dispatcher,
    unrecorded,
    unwrapped,
    without_upper,
)
from depgraph.tracing.python.built import BUILDERS, built, written_data
from depgraph.tracing.python.choosing import choosing
from depgraph.tracing.python.indexing import getitem, has_place
from depgraph.tracing.python.numbers import is_symbolic, plain
from depgraph.tracing.python.ways_out import MEMORY, READ_UNSEEN, SCALARS, SHOWN, WAYS_OUT, Kind
from depgraph.tracing.recorder.fakes import Fakes, NoValuesError
from depgraph.tracing.recorder.functional import functional, kept_whole, one_by_one
from depgraph.tracing.recorder.geometry import has_strides
from depgraph.tracing.recorder.higher_order import recorded
from depgraph.tracing.recorder.recorder import Recorder

aten = torch.ops.aten

#: Longer lists of numbers are plain numbers.
_MOST = 256


class Modes:
    """What watches a running model, and hands each operation to the recorder that is at work.

    Attributes
    ----------
    recorder : Recorder
        The model's own, or that of a body of a higher-order operator.
    numbers : bool
        Whether numbers read off tensors stay symbolic.
    whole : bool
        Whether composite operators stay whole that could be differentiated.
    fakes : Fakes or None
        What runs operators without data.
    differentiated : bool
        Whether something was differentiated.
    """

    def __init__(
        self, recorder: Recorder, *, numbers: bool = True, whole: bool = True, fakes: Fakes | None = None
    ) -> None:
        self.recorder, self.numbers, self.whole, self.fakes = recorder, numbers, whole, fakes
        self.differentiated = False
        self._off = 0
        self._native = 0
        self._upper, self._lower, self._functions = _Upper(self), _Lower(self), _Functions(self)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Record what runs."""
        with ExitStack() as stack:
            for context in (plain_constructors(), self._functions, self._lower, python_dispatcher(), self._upper):
                stack.enter_context(context)
            if self.numbers:
                stack.enter_context(choosing())
            yield

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Record nothing of what runs."""
        self._off += 1
        try:
            yield
        finally:
            self._off -= 1

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Record what an operation that a mode is looking at is made of."""
        native, self._native = self._native, 0
        try:
            with self._upper:
                yield
        finally:
            self._native = native

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Record what a function calls that a mode is looking at."""
        with self._functions:
            yield

    def perform(self, op: Any, args: Any, kwargs: Any) -> Any:
        """Run an operator as PyTorch does, without a look at what it is made of."""
        self._native += 1
        try:
            if self.fakes is not None:
                return self.fakes.perform(op, args, kwargs)
            return op(*args, **kwargs)
        finally:
            self._native -= 1

    def record(self, op: Any, args: Any, kwargs: Any) -> Any:
        """Run an operator and write it down."""
        if op in SCALARS:
            return self.scalar(op, args, kwargs)
        return self.recorder.run(op, args, kwargs, lambda *a, **k: self.perform(op, a, k))

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

    @property
    def off(self) -> bool:
        """Whether nothing is recorded now."""
        return bool(self._off or self._native)


class _Upper(UpperMode):
    """Sees operators before they are taken apart."""

    def __init__(self, modes: Modes) -> None:
        super().__init__()
        self.modes = modes

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, modes = kwargs or {}, self.modes
        if (
            modes._off
            or in_transform()
            or not isinstance(func, torch._ops.OpOverload)
            or (not modes.whole and _differentiated(args))
            or has_own_dispatch(args)
        ):
            return func(*args, **kwargs)
        if innermost() is not modes._lower:  # a mode of the model's own, which may do something else
            with natively():
                return func(*args, **kwargs)
        if is_differentiating():
            modes.differentiated = True
        if func in READ_UNSEEN:
            with modes.inside():
                return modes.stretches(func, *args, **kwargs)
        if func is aten.batch_norm.default:
            with modes.inside():
                return _batch_norm(*args)
        if (not kept_whole(func) and functional(func) is None) or func in _OPENED:
            with modes.inside():
                return func.decompose(*args, **kwargs)
        if func._opname.startswith("_foreach_") and (each := one_by_one(func, args, kwargs)) is not None:
            with modes.inside():
                return each()
        if func is aten.select.int and is_symbolic(args[2]):
            with modes.inside():
                return modes.recorder.anywhere(*args)
        device = next((arg.device.type for arg in args if isinstance(arg, Tensor)), "cpu")
        if (key := autocasting(func, device)) is not None:
            with modes.inside():
                return func._op_dk(key, *args, **kwargs)
        with natively():
            return modes.record(func, args, kwargs)


#: They write to running statistics, and their schemas do not say so.
_OPENED = {aten.instance_norm.default, aten._batch_norm_impl_index.default}


def _batch_norm(
    x: Tensor, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, momentum: float, eps: float, *_: Any
) -> Any:
    """Normalise by the operators whose schemas say what they write to."""
    if not training:
        return aten._native_batch_norm_legit_no_training.default(x, weight, bias, mean, variance, momentum, eps)[0]
    if mean is None:
        return aten._native_batch_norm_legit.no_stats(x, weight, bias, True, momentum, eps)[0]
    return aten._native_batch_norm_legit.default(x, weight, bias, mean, variance, True, momentum, eps)[0]


def _differentiated(args: Any) -> bool:
    """Return whether a call will be differentiated: then all that it is made of may be read again."""
    if not torch.is_grad_enabled():
        return False
    return any(
        isinstance(item, Tensor) and item.requires_grad
        for arg in args
        for item in (arg if isinstance(arg, (tuple, list)) else (arg,))
    )


class _Lower(LowerMode):
    """Sees what runs inside of the transforms of `torch.func`, and what is differentiated."""

    supports_higher_order_operators = True

    def __init__(self, modes: Modes) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.modes = modes

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, modes = kwargs or {}, self.modes
        if modes.off or not isinstance(func, torch._ops.OpOverload):
            return func(*args, **kwargs)
        if has_own_dispatch(args):
            return NotImplemented  # what it makes of that is seen here
        if is_differentiating():
            modes.differentiated = True
        if func is aten.native_batch_norm.default:
            func, args = _legit(args)
        return modes.record(func, args, kwargs)


def _legit(args: Any) -> tuple[Any, Any]:
    """Return the operator like `native_batch_norm` whose schema says what it writes to."""
    x, weight, bias, mean, variance, training, momentum, eps = args
    if not training:
        return aten._native_batch_norm_legit_no_training.default, (x, weight, bias, mean, variance, momentum, eps)
    if mean is None:
        return aten._native_batch_norm_legit.no_stats, (x, weight, bias, True, momentum, eps)
    return aten._native_batch_norm_legit.default, (x, weight, bias, mean, variance, True, momentum, eps)


class _Functions(TorchFunctionMode):
    """Sees what Python calls: the ways out of tensors, and what operators do not show."""

    def __init__(self, modes: Modes) -> None:
        super().__init__()
        self.modes = modes

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, modes = kwargs or {}, self.modes
        if modes._off:
            return func(*args, **kwargs)
        if in_transform() or (func in _BACKWARD and any(map(is_wrapped, pytree.tree_leaves((args, kwargs))))):
            with without_upper():  # such tensors the mode above autograd cannot be shown, if they stand for numbers
                return self._see(func, args, kwargs)
        return self._see(func, args, kwargs)

    def _see(self, func: Any, args: Any, kwargs: Any) -> Any:
        modes = self.modes
        if func is Tensor.__deepcopy__:  # copies memory behind the back of operators
            return modes.copied(func, *args)
        if func in _MOVES:  # memory, and what is in it stays the same
            with modes.silent():
                return func(*args, **kwargs)
        if func in _BY_ELEMENTS:
            return modes.by_elements(func, args)
        if isinstance(func, torch._ops.HigherOrderOperator):
            if in_transform():
                return func(*args, **kwargs)
            return recorded(modes, func, args, kwargs)
        if func is Tensor.__format__ and not args[0].ndim and not in_transform():
            return modes.text(*args)
        if func in SHOWN:
            shown = modes.recorder.left("text", func.__name__.strip("_"), args[0], [modes.recorder.seen(args[0])])
            with modes.silent():
                return func(shown, *args[1:], **kwargs)
        if not _hashable(func):
            return func(*args, **kwargs)
        if func in MEMORY and func not in WAYS_OUT:
            if called_by_others(func):
                modes.hand_out(func, args[0])
            return func(*args, **kwargs)
        if func is Tensor.__getitem__ and modes.numbers and has_place(args[1]):
            with modes.calling():
                return getitem(args[0], args[1], modes.recorder.anywhere)
        if func in BUILDERS and (data := written_data(func, args, kwargs)) is not None:
            with modes.silent():
                form = func(*args, **plain(kwargs)) if not modes.numbers else func(*plain(args), **plain(kwargs))
            with modes.calling():
                return built(data).to(form.dtype).reshape(form.shape)
        kind = WAYS_OUT.get(func)
        if kind is None:
            return func(*args, **kwargs)
        if modes.numbers and func in _READ_OFF and not in_transform() and not args[0].is_complex():
            return modes.numbers_in(args[0], whole=func is Tensor.tolist)
        reads = [modes.recorder.seen(value) for value in args if isinstance(value, Tensor)]
        if func in MEMORY:
            modes.recorder.before_write(unwrapped(args[0]))
        value = modes.taken(func, args, kwargs)
        movable = asked_by_a_call() if kind == "condition" else None
        given = modes.recorder.left(kind, func.__name__.strip("_"), value, reads, movable=movable)
        if func in MEMORY:
            if isinstance(value, np.ndarray) and given is not value and value.flags.writeable:
                np.copyto(value, given)  # it is the tensor's own memory
                given = value
            modes.lend(args[0])
        return given


#: They move memory elsewhere.
_MOVES: set[Any] = {Tensor.share_memory_}

#: They call Python functions.
_BY_ELEMENTS = {Tensor.apply_, Tensor.map_, Tensor.map2_}

#: They run backwards through what was differentiated.
_BACKWARD = {torch.autograd.grad, torch.autograd.backward, Tensor.backward}

#: They give numbers that may stay symbolic.
_READ_OFF = {Tensor.item, Tensor.tolist}


def _hashable(func: Any) -> bool:
    return getattr(func, "__hash__", None) is not None
