"""The classes of symbolic numbers, and Python's operators on them.

PyTorch's own operators on its classes are not used: they differ from Python's (an int is compared with a float as a
float, a negative number has no powers, a ``SymInt`` has no hash), and they settle more than need be. Here, every
operator is the plain Python function on the plain values; which operators a type has, that function knows.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from depgraph.tracing.python.behind import FUNCTIONS, MATH, Number, apply, choose, is_whole

_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


def number_of(value: object) -> Number | None:
    """Return what lies behind a symbolic number, None for anything else."""
    node = value.node if isinstance(value, _SYMBOLIC) else None
    return node if isinstance(node, Number) else None


def dress(result: Any) -> Any:
    """Put a number into the class that its value calls for."""
    return _CLASSES[type(result.value)](result) if isinstance(result, Number) else result


def _operand(value: object) -> Any:
    """Return a number to compute with, NotImplemented for all that has a way of its own with numbers."""
    if (number := number_of(value)) is not None:
        return number
    # NumPy's float64 is a float, but computes in NumPy's way, and settles the other number by reading it.
    ours = isinstance(value, (int, float, complex)) and not hasattr(type(value), "__array_ufunc__")
    return value if ours else NotImplemented


def _call(function: Callable[..., Any], *values: Any) -> Any:
    operands = [None if value is None else _operand(value) for value in values]
    if any(operand is NotImplemented for operand in operands):
        return NotImplemented
    return dress(apply(function, *operands))


class _Operators:
    """The operators of Python, the same for all three classes."""

    node: Number

    def __bool__(self) -> bool:
        return self.node.guard_bool()

    def __int__(self) -> int:
        return int(self.node.settle("number"))

    def __float__(self) -> float:
        return float(self.node.settle("number"))

    def __complex__(self) -> complex:
        return complex(self.node.settle("number"))

    def __hash__(self) -> int:
        self.node.hashed = self.node.settle("number")
        return hash(self.node.hashed)

    def __eq__(self, other: object) -> Any:
        return self._compare(operator.eq, other)

    def __ne__(self, other: object) -> Any:
        return self._compare(operator.ne, other)

    def _compare(self, function: Callable[..., Any], other: object) -> Any:
        operand = _operand(other)
        settled = operand.hashed if isinstance(operand, Number) else operand
        if self.node.hashed is None or settled is None or operand is NotImplemented:
            return _call(function, self, other)
        return function(self.node.hashed, settled)

    def __repr__(self) -> str:
        return repr(self.node.settle("number"))

    __str__ = __repr__

    def __format__(self, specification: str) -> str:
        return format(self.node.settle("number"), specification)

    def __round__(self, digits: Any = None) -> Any:
        return _call(round, self, digits)

    def __pow__(self, exponent: Any, modulus: Any = None) -> Any:
        return _call(operator.pow if modulus is None else pow, self, exponent, modulus)

    def __divmod__(self, other: Any) -> Any:
        return _divmod(self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return _divmod(other, self)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        value = self.node.settle("number")
        return type(value), (value,)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.node.settle("number"), dtype)

    def __getattr__(self, name: str) -> Any:
        """Read the rest (``bit_count``, ``real`` …) off the plain value; a method, not before it is called."""
        kind = type(self.node.value)
        if name.startswith("_") or not hasattr(kind, name):
            raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}", name=name)
        if callable(getattr(kind, name)):
            return lambda *args, **kwargs: getattr(self.node.settle("number"), name)(*args, **kwargs)
        return getattr(self.node.settle("number"), name)

    # PyTorch's classes have methods of their own by these names.
    as_integer_ratio = property(lambda self: self.__getattr__("as_integer_ratio"))
    bit_length = property(lambda self: self.__getattr__("bit_length"))
    hex = property(lambda self: self.__getattr__("hex"))

    def conjugate(self) -> Any:
        """Return the number, which is real; an int in place of a bool, as in Python."""
        return +self  # type: ignore[operator]

    def is_integer(self) -> Any:
        """Tell whether a float has nothing after the point."""
        return _call(is_whole, self)

    def __sym_max__(self, other: Any) -> Any:
        return _extreme(max, self, other)

    def __sym_min__(self, other: Any) -> Any:
        return _extreme(min, self, other)

    def __sym_ite__(self, then: Any, otherwise: Any) -> Any:
        return _call(choose, self, then, otherwise)


def _divmod(left: Any, right: Any) -> Any:
    if _operand(left) is NotImplemented or _operand(right) is NotImplemented:
        return NotImplemented
    try:
        divmod(_value(left), _value(right))
    except ZeroDivisionError:
        return _call(divmod, left, right)  # which words the error in its own way
    return _call(operator.floordiv, left, right), _call(operator.mod, left, right)


def _value(value: Any) -> Any:
    number = number_of(value)
    return value if number is None else number.value


def _extreme(function: Callable[..., Any], left: Any, right: Any) -> Any:
    # PyTorch's sym_max is a float as soon as one of the two is.
    values: tuple[Any, ...] = (left, right)
    if any(isinstance(value, float) for value in values):
        values = tuple(v if isinstance(v, float) else _call(float, v) if number_of(v) else float(v) for v in values)
    return _call(function, *values)


def _install() -> None:
    def add(name: str, function: Callable[..., Any]) -> None:
        setattr(_Operators, f"__{name}__", lambda self, *others: _call(function, self, *others))

    def reflect(name: str, function: Callable[..., Any]) -> None:
        setattr(_Operators, f"__r{name}__", lambda self, other: _call(function, other, self))

    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "lshift", "rshift", "xor", "and_", "or_"):
        add(name.strip("_"), getattr(operator, name))
        reflect(name.strip("_"), getattr(operator, name))
    reflect("pow", operator.pow)
    for name in ("lt", "le", "gt", "ge", "neg", "pos", "abs", "invert"):
        add(name, getattr(operator, name))
    for name in ("trunc", "floor", "ceil"):
        add(name, getattr(math, name))
    for name in ("sym_float", "sym_int", "sym_not", *(f"sym_{name}" for name in MATH)):
        add(name, FUNCTIONS[name])


_install()


def _seen_as(kind: type) -> Any:
    """Make the class that ``isinstance`` sees: that of the plain value.

    A model that asks ``isinstance(scale, float)`` shall go the way it goes without being traced. Code written in C
    looks at the type itself and is not deceived, so no value is taken without being settled.
    """
    return property(lambda self: kind)


class Int(_Operators, torch.SymInt):
    """A symbolic int."""

    __class__ = _seen_as(int)
    __hash__ = _Operators.__hash__

    def __index__(self) -> int:
        return self.node.guard_int()


class Float(_Operators, torch.SymFloat):
    """A symbolic float."""

    __class__ = _seen_as(float)
    __hash__ = _Operators.__hash__


class Bool(_Operators, torch.SymBool):
    """A symbolic bool, which is an int to Python's arithmetic."""

    __class__ = _seen_as(bool)
    __hash__ = _Operators.__hash__

    def __index__(self) -> int:
        return self.node.guard_int()


_CLASSES: dict[type, type] = {int: Int, float: Float, bool: Bool}
