"""The kinds of things that hold state in Python: what each of them holds, and how it gets that back.

Nothing of the user's runs for it: no properties, no ``__getattr__``, no methods that a subclass of a container has
overridden.
"""

from __future__ import annotations

import array
import collections
import enum
import functools
import random
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import fx, nn


class Kind(NamedTuple):
    """How something keeps its state.

    Attributes
    ----------
    held : callable
        Returns a shallow copy of what an object holds.
    inside : callable
        Returns what there is to look into further, given the object and that copy.
    put_back : callable
        Gives an object what it held; touches nothing that is still the same.
    """

    held: Callable[[Any], Any]
    inside: Callable[[Any, Any], Iterable[Any]]
    put_back: Callable[[Any, Any], None]


#: What holds nothing that a run of a model changes, or nothing that is the model's.
_OPAQUE = (
    str, bytes, int, float, complex, range, slice, enum.Enum, type, property, staticmethod, classmethod,
    types.NoneType, types.EllipsisType, types.NotImplementedType, types.ModuleType, types.BuiltinFunctionType,
    types.WrapperDescriptorType, types.MethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType,
    types.CodeType, types.FrameType, types.TracebackType,
    torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size, np.generic, np.dtype, np.ufunc, fx.Graph,
)  # fmt: skip
#: Packages whose objects are machinery: large, and not changed back without harm.
_MACHINERY = (
    "torch._dynamo", "torch._inductor", "torch._functorch", "torch._ops", "torch.fx", "torch.export", "torch.library",
    "logging", "threading", "_thread", "concurrent", "asyncio", "multiprocessing", "importlib", "inspect", "io", "_io",
)  # fmt: skip


def kinds_of(cls: type) -> tuple[Kind, ...]:
    """Return in which ways the instances of a class hold state; tensors are no matter of this file."""
    if issubclass(cls, _OPAQUE):
        return ()
    holds_tensors = issubclass(cls, (nn.Module, torch.Tensor))
    if not holds_tensors and _is_machinery(cls.__module__):
        return ()
    found = [] if cls in _BARE else [_attributes(cls)]
    found += [kind for base, kind in _KINDS if issubclass(cls, base)][:1]
    if issubclass(cls, collections.defaultdict):
        found.append(_DEFAULT)
    return tuple(kind for kind in found if kind is not None)


def _is_machinery(module: str) -> bool:
    return any(module == name or module.startswith(name + ".") for name in _MACHINERY)


def same(one: Iterable[Any], other: Iterable[Any]) -> bool:
    """Return whether two collections hold the same objects in the same order."""
    return all(a is b for a, b in zip(one, other, strict=True))


# Attributes, in a dictionary, in slots, or both; and the class, which some objects change when they are ready.

_NONE = object()


def _attributes(cls: type) -> Kind | None:
    slots = [
        member
        for base in cls.__mro__
        if "__slots__" in vars(base)
        for member in vars(base).values()
        if isinstance(member, types.MemberDescriptorType)
    ]
    if not slots and not cls.__dictoffset__:
        return None
    has_dict = bool(cls.__dictoffset__)

    def held(value: Any) -> Any:
        return (object.__getattribute__(value, "__dict__") if has_dict else None), [_slot(m, value) for m in slots]

    def inside(value: Any, content: Any) -> Iterable[Any]:
        return content[0], *content[1]

    def put_back(value: Any, content: Any) -> None:
        if type(value) is not cls:
            object.__setattr__(value, "__class__", cls)
        attributes, values = content
        if has_dict and object.__getattribute__(value, "__dict__") is not attributes:
            object.__setattr__(value, "__dict__", attributes)
        for member, before in zip(slots, values, strict=True):
            if _slot(member, value) is before:
                continue
            if before is _NONE:
                member.__delete__(value)
            else:
                member.__set__(value, before)

    return Kind(held, inside, put_back)


def _slot(member: Any, value: Any) -> Any:
    try:
        return member.__get__(value)
    except AttributeError:  # empty
        return _NONE


# Containers.


def _dict_inside(value: Any, content: dict[Any, Any]) -> Iterable[Any]:
    if not content or "__builtins__" in content:  # the names of a module
        return ()
    return [*content.values(), *(key for key in content if type(key) not in (str, int))]


def _dict_put_back(base: Any) -> Callable[[Any, Any], None]:
    def put_back(value: Any, content: dict[Any, Any]) -> None:
        now = base.items(value)
        if len(now) == len(content) and all(
            k is key and v is content[key] for (k, v), key in zip(now, content, strict=True)
        ):
            return
        base.clear(value)
        for key, held in content.items():
            base.__setitem__(value, key, held)

    return put_back


def _dict_kind(base: Any) -> Kind:
    def held(value: Any) -> Any:
        # The items of an ordered dictionary know its order; those that a dictionary shows of it do not.
        return {} if not base.__len__(value) else dict(base.items(value))

    return Kind(held, _dict_inside, _dict_put_back(base))


def _list_put_back(value: Any, content: list[Any]) -> None:
    if list.__len__(value) != len(content) or not same(list.__iter__(value), content):
        list.__setitem__(value, slice(None), content)


def _set_put_back(value: Any, content: tuple[Any, ...]) -> None:
    if set.__len__(value) != len(content) or not same(set.__iter__(value), content):
        set.clear(value)
        set.update(value, content)


def _deque_put_back(value: Any, content: tuple[Any, ...]) -> None:
    kind: Any = collections.deque
    if kind.__len__(value) != len(content) or not same(kind.__iter__(value), content):
        kind.clear(value)
        kind.extend(value, content)


def _bytes_put_back(value: Any, content: Any) -> None:
    if value != content:
        value[:] = content


def _array_held(value: np.ndarray[Any, Any]) -> Any:
    """Return shape, strides, and the elements of an array that has memory of its own and may be written to."""
    owner = not isinstance(value.base, np.ndarray) and value.flags.writeable
    return value.shape, value.strides, value.dtype, value.copy() if owner else None


def _array_put_back(value: Any, content: Any) -> None:
    shape, strides, dtype, elements = content
    if value.dtype != dtype:
        value.dtype = dtype
    if value.shape != shape:
        if elements is not None and value.size != elements.size:
            value.resize(shape, refcheck=False)
        value.shape = shape
    if value.strides != strides:
        value.strides = strides
    if elements is not None:
        value.flags.writeable = True
        np.copyto(value, elements)


def _array_inside(value: Any, content: Any) -> Iterable[Any]:
    return value.base, *(value.reshape(-1).tolist() if value.dtype.hasobject else ())


# Functions and what they close over.


def _cell_held(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _NONE


def _cell_put_back(cell: types.CellType, content: Any) -> None:
    if _cell_held(cell) is content:
        return
    if content is _NONE:
        del cell.cell_contents
    else:
        cell.cell_contents = content


def _function_put_back(value: Any, content: Any) -> None:
    code, defaults, keywords = content
    if value.__code__ is not code:
        value.__code__ = code
    if value.__defaults__ is not defaults:
        value.__defaults__ = defaults
    if value.__kwdefaults__ is not keywords:
        value.__kwdefaults__ = keywords


# Random numbers.


def _random_put_back(value: Any, content: Any) -> None:
    if content is not None:
        random.Random.setstate(value, content)


def _random_held(value: random.Random) -> Any:
    return None if isinstance(value, random.SystemRandom) else random.Random.getstate(value)


def _numpy_put_back(value: Any, content: Any) -> None:
    value.set_state(content)


def _bits_put_back(value: Any, content: Any) -> None:
    value.state = content


def _nothing(value: Any, content: Any = None) -> None:
    return None


def _leaf(value: Any, content: Any) -> Iterable[Any]:
    return ()


_DEFAULT = Kind(
    lambda value: collections.defaultdict.default_factory.__get__(value),  # type: ignore[attr-defined]
    lambda value, content: (content,),
    lambda value, content: collections.defaultdict.default_factory.__set__(value, content),  # type: ignore[attr-defined]
)
_SET = Kind(lambda value: tuple(set.__iter__(value)), lambda value, content: content, _set_put_back)
_KINDS: list[tuple[Any, Kind]] = [
    (collections.OrderedDict, _dict_kind(collections.OrderedDict)),
    (dict, _dict_kind(dict)),
    (list, Kind(lambda value: list.__getitem__(value, slice(None)), lambda value, content: content, _list_put_back)),
    (tuple, Kind(_nothing, lambda value, content: tuple.__iter__(value), _nothing)),
    (set, _SET),
    (frozenset, Kind(_nothing, lambda value, content: frozenset.__iter__(value), _nothing)),
    (collections.deque, Kind(lambda value: tuple(collections.deque.__iter__(value)), lambda value, content: content,
                             _deque_put_back)),
    (bytearray, Kind(bytes, _leaf, _bytes_put_back)),
    (array.array, Kind(lambda value: value[:], _leaf, _bytes_put_back)),
    (np.ndarray, Kind(_array_held, _array_inside, _array_put_back)),
    (types.CellType, Kind(_cell_held, lambda value, content: (content,), _cell_put_back)),
    (types.MethodType, Kind(_nothing, lambda value, content: (value.__self__, value.__func__), _nothing)),
    (functools.partial, Kind(_nothing, lambda value, content: (value.func, value.args, value.keywords), _nothing)),
    (types.FunctionType, Kind(lambda value: (value.__code__, value.__defaults__, value.__kwdefaults__),
                              lambda value, content: (*(value.__closure__ or ()), *content[1:]), _function_put_back)),
    (weakref.ref, Kind(_nothing, lambda value, content: (weakref.ref.__call__(value),), _nothing)),
    (torch.Generator, Kind(lambda value: value.get_state(), _leaf, _numpy_put_back)),
    (random.Random, Kind(_random_held, _leaf, _random_put_back)),
    (np.random.Generator, Kind(lambda value: None, lambda value, content: (value.bit_generator,), _nothing)),
    (np.random.BitGenerator, Kind(lambda value: value.state, _leaf, _bits_put_back)),
    (np.random.RandomState, Kind(lambda value: value.get_state(legacy=False), _leaf, _numpy_put_back)),
    (torch.jit.ScriptModule, Kind(_nothing, lambda value, content: (*value.parameters(), *value.buffers()), _nothing)),
]  # fmt: skip
#: Classes without attributes, of which there are many.
_BARE = frozenset({dict, list, tuple, set, frozenset, collections.deque, types.CellType, types.MethodType})
