"""What containers hold, and how they get it back: by the methods of their base classes, not those of the user's."""

from __future__ import annotations

import array
import collections
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np


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


def _same(one: Iterable[Any], other: Iterable[Any]) -> bool:
    """Return whether two collections hold the same objects in the same order."""
    return all(a is b for a, b in zip(one, other, strict=True))


def _dict_inside(value: Any, content: dict[Any, Any]) -> Iterable[Any]:
    if not content or "__builtins__" in content:  # the names of a module
        return ()
    return [*content.values(), *(key for key in content if type(key) not in (str, int))]


def _dict_held(value: Any) -> dict[Any, Any]:
    if not dict.__len__(value):
        return EMPTY
    return dict.copy(value) if type(value) is dict else dict(dict.items(value))


def _dict_put_back(value: Any, content: dict[Any, Any]) -> None:
    if dict.__len__(value) != len(content) or (content and not _same_items(dict.items(value), content)):
        dict.clear(value)
        dict.update(value, content)


def _same_items(now: Iterable[tuple[Any, Any]], content: dict[Any, Any]) -> bool:
    return all(k is key and v is content[key] for (k, v), key in zip(now, content, strict=True))


# Of an ordered dictionary, the methods of dict do not show the order.
_ORDERED: Any = collections.OrderedDict
#: What an empty dictionary holds.
EMPTY: dict[Any, Any] = {}


def _ordered_held(value: Any) -> dict[Any, Any]:
    return dict(_ORDERED.items(value)) if dict.__len__(value) else EMPTY


def _ordered_put_back(value: Any, content: dict[Any, Any]) -> None:
    if dict.__len__(value) != len(content) or (content and not _same_items(_ORDERED.items(value), content)):
        _ORDERED.clear(value)
        for key, held in content.items():
            _ORDERED.__setitem__(value, key, held)


def _list_put_back(value: Any, content: list[Any]) -> None:
    if list.__len__(value) != len(content) or not _same(list.__iter__(value), content):
        list.__setitem__(value, slice(None), content)


def _set_put_back(value: Any, content: tuple[Any, ...]) -> None:
    if set.__len__(value) != len(content) or not _same(set.__iter__(value), content):
        set.clear(value)
        set.update(value, content)


def _deque_put_back(value: Any, content: tuple[Any, ...]) -> None:
    kind: Any = collections.deque
    if kind.__len__(value) != len(content) or not _same(kind.__iter__(value), content):
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
        if not value.flags.writeable:
            value.flags.writeable = True
        np.copyto(value, elements)


def _array_inside(value: Any, content: Any) -> Iterable[Any]:
    return value.base, *(value.reshape(-1).tolist() if value.dtype.hasobject else ())


def nothing(value: Any, content: Any = None) -> None:
    """Hold nothing, or put nothing back."""


def no_more(value: Any, content: Any) -> Iterable[Any]:
    """Return that there is nothing to look into."""
    return ()


_SET = Kind(lambda value: tuple(set.__iter__(value)), lambda value, content: content, _set_put_back)
#: What instances of these classes, and of others made of them, hold.
CONTAINERS: list[tuple[Any, Kind]] = [
    (_ORDERED, Kind(_ordered_held, _dict_inside, _ordered_put_back)),
    (dict, Kind(_dict_held, _dict_inside, _dict_put_back)),
    (list, Kind(lambda value: list.__getitem__(value, slice(None)), lambda value, content: content, _list_put_back)),
    (tuple, Kind(nothing, lambda value, content: tuple.__iter__(value), nothing)),
    (set, _SET),
    (frozenset, Kind(nothing, lambda value, content: frozenset.__iter__(value), nothing)),
    (collections.deque, Kind(lambda value: tuple(collections.deque.__iter__(value)), lambda value, content: content,
                             _deque_put_back)),
    (bytearray, Kind(bytes, no_more, _bytes_put_back)),
    (array.array, Kind(lambda value: value[:], no_more, _bytes_put_back)),
    (np.ndarray, Kind(_array_held, _array_inside, _array_put_back)),
]  # fmt: skip
