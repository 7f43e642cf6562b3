"""The private names of PyTorch that recording needs, in one place.

They hold for PyTorch 2.9 to 2.13; `tests/tracing/recorder/test_private.py` fails where one of them is gone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import torch
from torch._C import DispatchKey
from torch._C._functorch import (
    get_dynamic_layer_stack_depth,
    get_unwrapped,
    is_functorch_wrapped_tensor,
    peek_interpreter_stack,
)
from torch._ops import _len_torch_dispatch_stack_pre_dispatch
from torch._subclasses.schema_check_mode import SchemaCheckMode
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes, _pop_mode_temporarily

__all__ = [
    "LowerMode",
    "StorageWeakRef",
    "UpperMode",
    "autocasting",
    "dense_kernel",
    "has_own_dispatch",
    "in_transform",
    "is_differentiating",
    "is_wrapped",
    "levels_kept",
    "natively",
    "plain_constructors",
    "python_dispatcher",
    "subclasses",
    "unrecorded",
    "unwrapped",
    "without_upper",
]


class LowerMode(TorchDispatchMode):
    """A dispatch mode below autograd, whose Python runs as it is.

    PyTorch hides that of other modes from TorchDynamo, which it imports to do so; that takes longer than recording most
    models does.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


class UpperMode(SchemaCheckMode):
    """A dispatch mode above autograd and above the decomposition of composite operators.

    PyTorch lets three kinds of modes in there; of them, this is the one that may be alone.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __init__(self) -> None:
        TorchDispatchMode.__init__(self, DispatchKey.PreDispatch)


def in_transform() -> bool:
    """Return whether a transform of `torch.func` is active, whose tensors stand for others."""
    return peek_interpreter_stack() is not None


def is_wrapped(value: Any) -> bool:
    """Return whether a tensor stands for another one inside of a transform of `torch.func`, or did."""
    return isinstance(value, torch.Tensor) and is_functorch_wrapped_tensor(value)


def unwrapped(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor that one stands for inside of transforms of `torch.func`."""
    while is_functorch_wrapped_tensor(tensor):
        tensor = get_unwrapped(tensor)
    return tensor


def has_own_dispatch(args: Any) -> bool:
    """Return whether there is a tensor among arguments whose class runs operators in its own way."""
    return any(
        isinstance(item, torch.Tensor) and _runs_itself(type(item))
        for arg in args
        for item in (arg if isinstance(arg, (tuple, list)) else (arg,))
    )


@cache
def _runs_itself(kind: Any) -> bool:
    default: Any = torch._C._disabled_torch_dispatch_impl
    return kind.__torch_dispatch__ is not default and kind.__name__ not in ("FakeTensor", "NestedTensor")


def is_differentiating() -> bool:
    """Return whether autograd is running backwards."""
    return torch._C._current_graph_task_id() != -1


@contextlib.contextmanager
def unrecorded() -> Iterator[None]:
    """Run without any mode."""
    with torch._C.DisableTorchFunction(), _disable_current_modes():
        yield


@contextlib.contextmanager
def without_upper() -> Iterator[None]:
    """Run without the mode that is above autograd."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(natively())
        if _len_torch_dispatch_stack_pre_dispatch():
            stack.enter_context(_pop_mode_temporarily(DispatchKey.PreDispatch))
        yield


def python_dispatcher() -> AbstractContextManager[Any]:
    """Let operators ask modes above autograd."""
    context: AbstractContextManager[Any] = torch._C._EnablePythonDispatcher()
    return context


def natively() -> AbstractContextManager[Any]:
    """Run operators as PyTorch does, below the mode that is above autograd."""
    context: AbstractContextManager[Any] = torch._C._DisablePythonDispatcher()
    return context


def autocasting(op: Any, device: str) -> DispatchKey | None:
    """Return the key under which an operator casts its arguments on a device, None where it does not."""
    if not torch.amp.is_autocast_available(device) or not torch.is_autocast_enabled(device):
        return None
    key = getattr(DispatchKey, f"Autocast{device.upper()}", None)
    if key is None or torch._C._dispatch_tls_is_dispatch_key_excluded(key):
        return None
    found: bool = torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key)
    return key if found else None


@contextlib.contextmanager
def levels_kept() -> Iterator[None]:
    """Leave the transforms of `torch.func` that were entered, also after an error inside of them."""
    depth = get_dynamic_layer_stack_depth()
    try:
        yield
    finally:
        torch._C._functorch.pop_dynamic_layer_stack_and_undo_to_depth(depth)


def dense_kernel(op: Any) -> Any:
    """Return what a higher-order operator runs, None where it does not say."""
    return op.py_kernels.get(DispatchKey.CompositeExplicitAutograd)


@contextlib.contextmanager
def plain_constructors() -> Iterator[None]:
    """Let subclasses of `torch.Tensor` that have no ``__new__`` of their own be made while modes are active.

    The constructor they inherit takes a tensor from an operator that a mode may have looked at, and then refuses it.
    """

    def new(kind: type, *args: Any, **kwargs: Any) -> Any:
        with unrecorded(), natively():
            return torch._C.TensorBase.__new__(kind, *args, **kwargs)

    inherited: Any = torch._C.TensorBase.__new__
    kinds = [kind for kind in subclasses(torch.Tensor) if kind.__new__ is inherited]
    try:
        for kind in kinds:
            kind.__new__ = staticmethod(new)
        yield
    finally:
        for kind in kinds:
            if "__new__" in vars(kind):
                del kind.__new__


def subclasses(kind: Any) -> Iterator[Any]:
    """Yield the classes that are made of one, some perhaps twice."""
    for sub in kind.__subclasses__():
        yield sub
        yield from subclasses(sub)
