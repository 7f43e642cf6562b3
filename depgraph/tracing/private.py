"""The private names of PyTorch that are needed, in one place.

They hold for PyTorch 2.13; `tests/tracing/test_private.py` fails where one of them is gone.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import cache
from typing import Any
from unittest import mock

import torch
from torch._C import DisableTorchFunction, DispatchKey
from torch._C._functorch import (
    get_dynamic_layer_stack_depth,
    get_unwrapped,
    is_functorch_wrapped_tensor,
    peek_interpreter_stack,
)
from torch._decomp import decomposition_table
from torch._higher_order_ops import utils
from torch._library.custom_ops import CustomOpDef
from torch._ops import _len_torch_dispatch_stack_pre_dispatch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torch._subclasses.schema_check_mode import SchemaCheckMode
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,
    _get_current_dispatch_mode,
    _pop_mode_temporarily,
    is_traceable_wrapper_subclass,
)

__all__ = [
    "MKLDNN",
    "CustomOpDef",
    "DataDependentOutputException",
    "DisableTorchFunction",
    "DynamicOutputShapeException",
    "FakeTensor",
    "FakeTensorMode",
    "LowerMode",
    "StorageWeakRef",
    "TorchDispatchMode",
    "UpperMode",
    "address",
    "autocasting",
    "decomposition_table",
    "dense_kernel",
    "exchange",
    "functions_called",
    "has_own_dispatch",
    "in_transform",
    "innermost",
    "is_composite",
    "is_differentiating",
    "is_traceable_wrapper_subclass",
    "is_wrapped",
    "levels_kept",
    "looks_compiled",
    "natively",
    "negated",
    "overloads_of",
    "plain_constructors",
    "plainly",
    "python_dispatcher",
    "storage_behind",
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


def innermost() -> Any:
    """Return the mode below autograd that sees operators first, None where there is none."""
    return _get_current_dispatch_mode()


def is_differentiating() -> bool:
    """Return whether autograd is running backwards."""
    return torch._C._current_graph_task_id() != -1


@contextlib.contextmanager
def unrecorded() -> Iterator[None]:
    """Run without any mode."""
    with DisableTorchFunction(), _disable_current_modes():
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


@contextlib.contextmanager
def plainly() -> Iterator[None]:
    """Run without any mode, and without what subclasses of tensors do in their own way."""
    with DisableTorchFunction(), torch._C._DisableTorchDispatch():
        yield


#: The layout of tensors of oneDNN.
MKLDNN: Any = torch._mkldnn  # type: ignore[attr-defined]


def negated(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view of a tensor that shows its elements negated."""
    return torch._neg_view(tensor)


@contextlib.contextmanager
def functions_called() -> Iterator[None]:
    """Let operators that take functions call them as they are, without compiling anything.

    `torch.cond` and its like compile their functions where they are called by a model that is not itself compiled.
    """

    def called(function: Any, args: Any, kwargs: Any = None) -> Any:
        return function(*args, **(kwargs or {}))

    flex: Any = sys.modules.get("torch.nn.attention.flex_attention")
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(utils, "_hop_compile_and_call", called))
        if flex is not None:
            stack.enter_context(mock.patch.object(flex, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True))
        if "torch._dynamo" in sys.modules:
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        yield


def address(storage: Any) -> int:
    """Return what tells a storage from others for as long as it lives."""
    return int(storage._cdata)


def storage_behind(reference: StorageWeakRef) -> Any:
    """Return the storage behind a weak reference, None where it is gone."""
    return None if reference.expired() else torch.UntypedStorage._new_with_weak_ptr(reference.cdata)


def exchange(tensor: torch.Tensor, other: torch.Tensor) -> None:
    """Let a tensor object be another one: its memory, its form, and what it was computed from."""
    torch._C._swap_tensor_impl(tensor, other)


def is_composite(op: Any) -> bool:
    """Return whether an operator is made of others, for all devices."""
    return bool(op.has_kernel_for_dispatch_key(DispatchKey.CompositeImplicitAutograd))


def overloads_of(name: str) -> set[str]:
    """Return the names of the overloads of an operator ``namespace::name``; none where there is no such operator."""
    return {schema.overload_name or "default" for schema in torch._C._jit_get_schemas_for_operator(name)}


@contextlib.contextmanager
def looks_compiled(*, compiling: bool | None = None, tracing: bool = False) -> Iterator[None]:
    """Let a model that asks think that it is compiled, or not; and that TorchDynamo is tracing it."""
    with contextlib.ExitStack() as stack:
        if compiling is not None:
            stack.enter_context(mock.patch.object(torch.compiler, "_is_compiling_flag", compiling))
        if tracing:
            stack.enter_context(mock.patch.object(torch.compiler, "is_dynamo_compiling", return_value=True))
        yield


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
