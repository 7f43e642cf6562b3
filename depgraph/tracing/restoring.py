"""A model, and everything that hangs on it, put back as it was before it ran.

What it costs follows the number of objects, not the size of tensors: those are copied when they are about to be
written to, and only then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from depgraph.tracing.containers import EMPTY, Kind
from depgraph.tracing.kinds import kinds_of
from depgraph.tracing.private import (
    DisableTorchFunction,
    StorageWeakRef,
    address,
    exchange,
    is_traceable_wrapper_subclass,
    plainly,
    storage_behind,
)

_PutBack = Callable[[Any, Any], None]
_FEW = 64
_COMPRESSED = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


class Kept:
    """Everything that can be reached from some objects, and what it was.

    Attributes that are computed, classes, modules of Python and what a function finds among the global names are not
    looked into.

    Parameters
    ----------
    roots : tuple of object

    Attributes
    ----------
    tensors : list of torch.Tensor
        Every tensor object among it, gradients included.
    """

    def __init__(self, roots: tuple[object, ...]) -> None:
        self.tensors: list[torch.Tensor] = []
        self.arrays: list[np.ndarray[Any, Any]] = []
        self._saved: list[tuple[_PutBack, Any, Any]] = []
        self._forms: list[tuple[torch.Tensor, Any]] = []
        self._copies: dict[int, tuple[StorageWeakRef, torch.UntypedStorage, bool]] = {}
        self._opaque: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._most = _FEW
        with DisableTorchFunction():
            self._walk(list(roots))

    def before_write(self, tensor: torch.Tensor) -> None:
        """Keep a copy of the memory that an operation is about to write to; of each memory once."""
        with DisableTorchFunction():
            parts = _parts(tensor)
        with plainly():  # copying writes to memory, too
            for part in parts:
                try:
                    storage = part.untyped_storage()
                except (NotImplementedError, RuntimeError):  # it has none that could be named
                    if not any(part is known for known, _ in self._opaque):
                        self._opaque.append((part, part.detach().clone()))
                    continue
                if address(storage) in self._copies or storage.device.type == "meta":
                    continue
                if len(self._copies) >= self._most:
                    self._forget()
                self._copies[address(storage)] = StorageWeakRef(storage), storage.clone(), storage.is_shared()

    def shared(self) -> list[torch.Tensor]:
        """Return the tensors whose memory some array shares."""
        found = []
        for tensor in self.tensors if self.arrays else ():
            with DisableTorchFunction():
                if tensor.device.type == "cpu" and tensor.layout is torch.strided and tensor.numel():
                    storage = tensor.untyped_storage()
                    bounds = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
                    if any(low < bounds[1] and bounds[0] < high for low, high in map(_bounds, self.arrays)):
                        found.append(tensor)
        return found

    @property
    def wrote(self) -> bool:
        """Whether any memory was written to."""
        return bool(self._copies or self._opaque)

    def put_back(self) -> None:
        """Put everything back; it may change again, and be put back again.

        Raises
        ------
        Exception
            The first error of an object that refuses; all others are put back even so.
        """
        errors: list[Exception] = []
        with DisableTorchFunction(), torch.no_grad():
            for put_back, value, content in self._saved:
                try:
                    put_back(value, content)
                except Exception as error:
                    errors.append(error)
            with plainly():
                for key in list(self._copies):
                    _fill(*self._copies.pop(key))
            for tensor, form in self._forms:
                try:
                    _put_back_tensor(tensor, form)
                except Exception as error:
                    errors.append(error)
            for tensor, copy in self._opaque:
                tensor.data = copy
            self._opaque.clear()
        if errors:
            raise errors[0]

    def _forget(self) -> None:
        """Drop the copies of memories that are gone, which are most: a model writes to what it has just made."""
        for key in [key for key, (memory, *_) in self._copies.items() if memory.expired()]:
            del self._copies[key]
        self._most = max(_FEW, 2 * len(self._copies))

    def _walk(self, todo: list[Any]) -> None:
        seen: dict[int, Any] = {}
        known: dict[Any, tuple[Kind, ...]] = {}
        saved = self._saved
        while todo:
            value = todo.pop()
            cls: Any = type(value)
            if cls not in known:
                known[cls] = kinds_of(cls)
            kinds = known[cls]
            if not kinds or id(value) in seen:
                continue
            seen[id(value)] = value
            if isinstance(value, torch.Tensor):
                self.tensors.append(value)
                form = _form(value)
                self._forms.append((value, form))
                todo += form[2:]
            elif isinstance(value, np.ndarray):
                self.arrays.append(value)
            for held, inside, put_back in kinds:
                content = held(value)
                saved.append((put_back, value, content))
                if content is not EMPTY:
                    todo += inside(value, content)


@contextmanager
def kept(*roots: object) -> Iterator[Kept]:
    """Put everything that can be reached from some objects back when the block is left, by an exception or not.

    Tensors in attributes and containers are the same objects again and hold the same numbers, provided that
    `Kept.before_write` was told of each operation that writes: see `Writes`.

    Parameters
    ----------
    *roots : object
        Models, their arguments, functions.

    Examples
    --------
    >>> model = torch.nn.Linear(2, 2)
    >>> with kept(model):
    ...     model.seen, model.weight.data = [1], torch.zeros(2, 2)
    >>> hasattr(model, "seen"), bool(model.weight.any())
    (False, True)
    """
    keeper = Kept(roots)
    try:
        yield keeper
    finally:
        keeper.put_back()


def _parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Return the tensors whose memory a tensor is made of: itself, or the parts of a sparse or wrapping one."""
    if is_traceable_wrapper_subclass(tensor):
        names, _ = tensor.__tensor_flatten__()
        return [part for name in names for part in _parts(getattr(tensor, name))]
    if tensor.layout is torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    return [tensor]


def _form(tensor: torch.Tensor) -> tuple[torch.Tensor, bool, Any, Any]:
    """Return what a tensor is besides its numbers: an alias of its memory, and what autograd knows of it."""
    return tensor.detach(), tensor.requires_grad, tensor.grad if tensor.is_leaf else None, tensor._backward_hooks


def _put_back_tensor(tensor: torch.Tensor, form: tuple[torch.Tensor, bool, Any, Any]) -> None:
    alias, requires_grad, gradient, hooks = form
    if tensor.dtype is not alias.dtype or not _is_set_to(tensor, alias):
        set_data(tensor, alias)
    if tensor.requires_grad != requires_grad:
        if not tensor.is_leaf:
            _cut(tensor)
        if tensor.requires_grad != requires_grad:
            tensor.requires_grad_(requires_grad)
    if tensor.is_leaf and tensor.grad is not gradient:
        tensor.grad = gradient
    if tensor._backward_hooks is not hooks:
        tensor._backward_hooks = hooks


def set_data(tensor: torch.Tensor, other: torch.Tensor) -> None:
    """Let a tensor object have the memory and the form of another one: ``tensor.data = other``, for all layouts."""
    if tensor.layout in _COMPRESSED:  # of which that assigns a part
        exchange(tensor, other.detach())
    else:
        tensor.data = other


def _is_set_to(tensor: torch.Tensor, alias: torch.Tensor) -> bool:
    if tensor.layout in _COMPRESSED:
        pairs = zip(_parts(tensor), _parts(alias), strict=True)
        return all(one.dtype == other.dtype and one.is_set_to(other) for one, other in pairs)
    try:
        return tensor.is_set_to(alias)
    except (NotImplementedError, RuntimeError):  # sparse ones, and those on the meta device
        return False


def _cut(tensor: torch.Tensor) -> None:
    """Take a tensor out of the graph of autograd, which writing to it has got it into."""
    base = tensor._base
    if base is None:
        tensor.detach_()
        return
    if not base.is_leaf:
        base.detach_()
    with torch.enable_grad():  # a view cannot be detached; another view of the same takes its place
        fresh = base.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
    exchange(tensor, fresh)


def _bounds(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """Return the addresses between which the elements of an array lie."""
    first = array.__array_interface__["data"][0]
    steps = [(count - 1) * step for count, step in zip(array.shape, array.strides, strict=True)]
    if not array.size:
        return 0, 0
    return first + sum(s for s in steps if s < 0), first + sum(s for s in steps if s > 0) + array.itemsize


def _fill(memory: StorageWeakRef, copy: torch.UntypedStorage, shared: bool) -> None:
    storage = storage_behind(memory)
    if storage is None or (shared and not storage.is_shared()):  # it is another one now
        return
    if storage.nbytes() != copy.nbytes():
        storage.resize_(copy.nbytes())
    storage.copy_(copy)
