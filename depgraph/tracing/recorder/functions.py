"""The functions of PyTorch that Python calls: the ways out of tensors, and what operators do not show."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from depgraph.tracing.origin import asked_by_a_call, called_by_others, called_by_us
from depgraph.tracing.private import in_transform, is_wrapped, unwrapped, without_upper
from depgraph.tracing.python.built import BUILDERS, built, written_data
from depgraph.tracing.python.indexing import getitem, has_place
from depgraph.tracing.python.numbers import plain
from depgraph.tracing.python.ways_out import MEMORY, SHAPING, SHOWN, TELLING, WALKS, WAYS_OUT
from depgraph.tracing.recorder.exits import Exits
from depgraph.tracing.recorder.higher_order import recorded
from depgraph.tracing.rows.steps import is_walk


class Functions(TorchFunctionMode):
    """Sees what Python calls: the ways out of tensors, and what operators do not show."""

    def __init__(self, modes: Exits) -> None:
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
        if modes.recorder.root.sized and _hashable(func) and func in TELLING and not called_by_us(func):
            _tell(modes, func, args, kwargs)
        if modes.recorder.root.sized and _hashable(func) and func in SHAPING and not called_by_us(func):
            return _shaped(modes, func, args, kwargs)
        if func in WALKS and modes.recorder.root.steps is not None and not called_by_us(func):
            return _another_time(modes, func, args, kwargs)
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


def _another_time(modes: Exits, func: Any, args: Any, kwargs: Any) -> Any:
    """Go through copies of the places at which a mask is true: fewer of them, or more, which then are the last one."""
    rows = func(*args, **kwargs)
    axis = kwargs.get("dim", args[1] if len(args) > 1 else 0)
    node, steps = modes.recorder.seen(args[0]), modes.recorder.root.steps
    if axis != 0 or steps is None or not is_walk(node) or not len(args[0]):
        return rows
    rows = list(rows)
    (mask,) = node.all_input_nodes
    wanted = steps(len(rows), len(mask.meta["val"]))
    copies = [row.clone() for row in (*rows, *rows[-1:] * wanted)[:wanted]]
    return iter(copies) if func is Tensor.__iter__ else tuple(copies)


def _shaped(modes: Exits, func: Any, args: Any, kwargs: Any) -> Any:
    """Run a function that is given sizes: those it is told are those of the example, whatever they are elsewhere."""
    result = func(*args, **kwargs)
    flat = [s for arg in (*args[1:], *kwargs.values()) for s in (arg if isinstance(arg, (tuple, list)) else [arg])]
    first = 0
    if func in (Tensor.unflatten, torch.unflatten):
        first, flat = flat[0] % args[0].ndim, flat[1:]
    if isinstance(result, Tensor) and not any(isinstance(size, torch.dtype) for size in flat):
        for axis in range(first, first + len(flat)):
            if flat[axis - first] != -1:
                modes.recorder.ask([result], axis)
    return result


def _tell(modes: Exits, func: Any, args: Any, kwargs: Any) -> None:
    """Note whose size a function tells Python, and that of which axis."""
    place = TELLING[func]
    axis = kwargs.get("dim", args[place] if place is not None and len(args) > place else _FIRST.get(func))
    tensors = [arg for arg in args if isinstance(arg, Tensor)]
    modes.recorder.ask(tensors, axis if isinstance(axis, int) else None, walk=func in WALKS and axis == 0)


#: The axis that functions tell the size of where none is named.
_FIRST: dict[Any, int] = {func: 0 for func, place in TELLING.items() if place is not None and func is not Tensor.size}

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
