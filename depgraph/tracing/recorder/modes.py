"""The modes under which a model runs while it is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor

from depgraph.tracing.private import (
    LowerMode,
    UpperMode,
    autocasting,
    has_own_dispatch,
    in_transform,
    innermost,
    is_differentiating,
    natively,
    plain_constructors,
    python_dispatcher,
)
from depgraph.tracing.python.choosing import choosing
from depgraph.tracing.python.numbers import is_symbolic
from depgraph.tracing.python.ways_out import READ_UNSEEN, SCALARS
from depgraph.tracing.recorder.exits import Exits
from depgraph.tracing.recorder.fakes import Fakes
from depgraph.tracing.recorder.functional import functional, kept_whole, one_by_one
from depgraph.tracing.recorder.functions import Functions
from depgraph.tracing.recorder.recorder import Recorder

aten = torch.ops.aten


class Modes(Exits):
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
        super().__init__(recorder, numbers=numbers, fakes=fakes)
        self.whole = whole
        self.differentiated = False
        self._native = 0
        self._upper, self._lower, self._functions = _Upper(self), _Lower(self), Functions(self)

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
    def inside(self) -> Iterator[None]:
        """Record what an operation that a mode is looking at is made of."""
        native, self._native = self._native, 0
        try:
            with self._upper:
                yield
        finally:
            self._native = native

    def calling(self) -> AbstractContextManager[Any]:
        """Record what a function calls that a mode is looking at."""
        return self._functions

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
