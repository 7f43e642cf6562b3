"""Python's ``max``, ``min`` and ``sorted`` of symbolic numbers, which are symbolic too.

Python itself would compare the numbers one with another, and each comparison would be a condition.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any

import torch

from depgraph.tracing.origin import is_of_the_user
from depgraph.tracing.python.behind import apply
from depgraph.tracing.python.operators import dress, number_of

_max, _min, _sorted = max, min, sorted


def ordered(place: int, reverse: bool, *numbers: float) -> float:
    """Return the number at a place of a sorted list.

    >>> ordered(0, True, 1, 3, 2)
    3
    """
    return _sorted(numbers, reverse=reverse)[place]


@contextmanager
def choosing() -> Iterator[None]:
    """Let Python's functions take symbolic numbers where the user's code calls them. Anything else they take as ever.

    They are given to the user's modules, not to Python: other modules may be imported meanwhile, and keep them.
    """
    given: list[tuple[dict[str, Any], str]] = []
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", None)
        if not isinstance(names, dict) or not _is_asked(module):
            continue
        for name, function in _FUNCTIONS.items():
            if name not in names:
                names[name] = function
                given.append((names, name))
    try:
        yield
    finally:
        for names, name in given:
            if names.get(name) is _FUNCTIONS[name]:
                del names[name]


def _is_asked(module: Any) -> bool:
    return module is statistics or is_of_the_user(getattr(module, "__file__", None), module.__name__)


def _extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    def extreme(*args: Any, **kwargs: Any) -> Any:
        if kwargs or not args:
            return function(*args, **kwargs)
        values = list(args[0]) if len(args) == 1 else args
        if len(values) > 1 and _are_tensors(values):
            return reduce(torch.maximum if function is _max else torch.minimum, values)
        if len(values) < 2 or not _are_symbolic(values):
            return function(values) if len(args) == 1 else function(*args)
        return dress(apply(function, *map(_plain, values)))

    return extreme


def _ordering(values: Any, /, *, key: Any = None, reverse: bool = False) -> list[Any]:
    values = list(values)
    if key is None and len(values) > 1 and _are_tensors(values):
        return list(torch.stack(values).sort(descending=bool(reverse), stable=True).values)
    if key is not None or not _are_symbolic(values):
        return _sorted(values, key=key, reverse=reverse)
    numbers = list(map(_plain, values))
    return [dress(apply(ordered, place, bool(reverse), *numbers)) for place in range(len(numbers))]


_FUNCTIONS: dict[str, Callable[..., Any]] = {"max": _extreme(_max), "min": _extreme(_min), "sorted": _ordering}


def _are_symbolic(values: Any) -> bool:
    found = [number_of(value) for value in values]
    others = [value for value, number in zip(values, found, strict=True) if number is None]
    return any(number is not None for number in found) and all(type(value) in (int, float, bool) for value in others)


def _are_tensors(values: Any) -> bool:
    """Return whether values are single numbers in tensors, of one kind."""
    first = values[0]
    return isinstance(first, torch.Tensor) and all(
        isinstance(v, torch.Tensor) and not v.ndim and v.dtype == first.dtype and v.device == first.device
        for v in values
    )


def _plain(value: Any) -> Any:
    number = number_of(value)
    return value if number is None else number
