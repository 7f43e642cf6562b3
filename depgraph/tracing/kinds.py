"""The kinds of things that hold state in Python: what each of them holds, and how it gets that back.

Nothing of the user's runs for it: no properties, no ``__getattr__``, no methods that a subclass of a container has
overridden.
"""

from __future__ import annotations

import collections
import enum
import functools
import random
import types
import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import fx, nn

from depgraph.tracing.containers import CONTAINERS, Kind, no_more, nothing

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


@functools.lru_cache(maxsize=1 << 12)
def kinds_of(cls: Any) -> tuple[Kind, ...]:
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
    if not slots:
        return _ATTRIBUTES
    has_dict = bool(cls.__dictoffset__)

    def held(value: Any) -> Any:
        return (
            type(value),
            object.__getattribute__(value, "__dict__") if has_dict else None,
            [_slot(m, value) for m in slots],
        )

    def inside(value: Any, content: Any) -> Iterable[Any]:
        return content[1], *content[2]

    def put_back(value: Any, content: Any) -> None:
        if has_dict:
            _attributes_put_back(value, content)
        elif type(value) is not content[0]:
            object.__setattr__(value, "__class__", content[0])
        for member, before in zip(slots, content[2], strict=True):
            if _slot(member, value) is before:
                continue
            if before is _NONE:
                member.__delete__(value)
            else:
                member.__set__(value, before)

    return Kind(held, inside, put_back)


def _attributes_held(value: Any) -> Any:
    return type(value), object.__getattribute__(value, "__dict__")


def _attributes_put_back(value: Any, content: Any) -> None:
    if type(value) is not content[0]:
        object.__setattr__(value, "__class__", content[0])
    if object.__getattribute__(value, "__dict__") is not content[1]:
        object.__setattr__(value, "__dict__", content[1])


_ATTRIBUTES = Kind(_attributes_held, lambda value, content: (content[1],), _attributes_put_back)


def _slot(member: Any, value: Any) -> Any:
    try:
        return member.__get__(value)
    except AttributeError:  # empty
        return _NONE


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


_FACTORY: Any = vars(collections.defaultdict)["default_factory"]
_DEFAULT = Kind(
    lambda value: _FACTORY.__get__(value),
    lambda value, content: (content,),
    lambda value, content: _FACTORY.__set__(value, content),
)
_KINDS: list[tuple[Any, Kind]] = [
    *CONTAINERS,
    (types.CellType, Kind(_cell_held, lambda value, content: (content,), _cell_put_back)),
    (types.MethodType, Kind(nothing, lambda value, content: (value.__self__, value.__func__), nothing)),
    (functools.partial, Kind(nothing, lambda value, content: (value.func, value.args, value.keywords), nothing)),
    (types.FunctionType, Kind(lambda value: (value.__code__, value.__defaults__, value.__kwdefaults__),
                              lambda value, content: (*(value.__closure__ or ()), *content[1:]), _function_put_back)),
    (weakref.ref, Kind(nothing, lambda value, content: (weakref.ref.__call__(value),), nothing)),
    (torch.Generator, Kind(lambda value: value.get_state(), no_more, _numpy_put_back)),
    (random.Random, Kind(_random_held, no_more, _random_put_back)),
    (np.random.Generator, Kind(lambda value: None, lambda value, content: (value.bit_generator,), nothing)),
    (np.random.BitGenerator, Kind(lambda value: value.state, no_more, _bits_put_back)),
    (np.random.RandomState, Kind(lambda value: value.get_state(legacy=False), no_more, _numpy_put_back)),
    (torch.jit.ScriptModule, Kind(nothing, lambda value, content: (*value.parameters(), *value.buffers()), nothing)),
]  # fmt: skip
#: Classes without attributes, of which there are many.
_BARE = frozenset({dict, list, tuple, set, frozenset, collections.deque, types.CellType, types.MethodType})
