"""What lies behind a symbolic number: its value, and the node of the graph that computes it.

PyTorch's ``SymInt``, ``SymFloat`` and ``SymBool`` are shells that pass everything on to an object in their attribute
``node``, by names which PyTorch's own ``SymNode`` sets. `Number` answers to these names. PyTorch's C++ code calls them
between the call of an operator in Python and its dispatch; the operators of Python itself do not come here, see
`depgraph.tracing.python.numbers`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import reduce
from typing import Any, Literal, Protocol

from torch import fx

Plain = int | float | bool
Kind = Literal["condition", "number"]


class Ledger(Protocol):
    """Where the numbers of one run are written down."""

    def compute(self, function: Callable[..., Any], args: tuple[Any, ...], value: Plain) -> fx.Node:
        """Write down that a plain Python function was called on numbers, which gave a value.

        Parameters
        ----------
        function
            A function of numbers, such as ``operator.add``, ``math.sqrt``, ``round`` or ``float``.
        args
            Nodes and plain numbers.
        value
            What the function gave.
        """

    def settle(self, number: Number, kind: Kind) -> Any:
        """Note that Python made a plain value of a number, and return the value to go on with."""


class Number:
    """What lies behind a symbolic number.

    Parameters
    ----------
    value
        The value in this run.
    node
        The node that computes it; None for a constant.
    ledger
        Where to write down what is computed of it and when it ends.

    Attributes
    ----------
    hashed
        The value whose hash was asked for, or None. That settled which value it is, so that a look-up in a dictionary
        need not settle once more whether the number equals the key.
    """

    __slots__ = ("hashed", "ledger", "node", "value")

    def __init__(self, value: Plain, node: fx.Node | None, ledger: Ledger) -> None:
        self.value = value
        self.node = node
        self.ledger = ledger
        self.hashed: Any = None

    def settle(self, kind: Kind) -> Any:
        """Make a plain value of it, which is noted where it is no constant."""
        return self.value if self.node is None else self.ledger.settle(self, kind)

    def __getattr__(self, name: str) -> Any:
        function = FUNCTIONS.get(name)
        if function is None:
            raise AttributeError(f"PyTorch asked a number that was read off a tensor for {name!r}")
        return lambda *others: self._constant(apply(function, self, *others))

    def _constant(self, result: Any) -> Number:
        return result if isinstance(result, Number) else Number(result, None, self.ledger)

    def sym_sum(self, terms: tuple[Number, ...]) -> Number:
        """Add any number of terms."""
        return self._constant(reduce(lambda a, b: apply(operator.add, a, b), terms))

    # What kind of number it is.

    def is_int(self) -> bool:
        """Tell whether it is an integer."""
        return type(self.value) is int

    def is_float(self) -> bool:
        """Tell whether it is a float."""
        return type(self.value) is float

    def is_bool(self) -> bool:
        """Tell whether it is a bool."""
        return type(self.value) is bool

    def is_symbolic(self) -> bool:
        """Tell PyTorch to ask here."""
        return True

    def is_constant(self) -> bool:
        """Tell PyTorch to ask here; `maybe_as_int` gives the constants."""
        return False

    def is_nested_int(self) -> bool:
        """Tell that it is not the length of a ragged axis."""
        return False

    def nested_int(self) -> None:
        """Tell that it is not the length of a ragged axis."""

    def has_hint(self) -> bool:
        """Tell that there is a value."""
        return True

    def maybe_as_int(self) -> Any:
        """Return the value of a constant."""
        return self.value if self.node is None else None

    maybe_as_float = maybe_as_bool = maybe_as_int

    # Making more of them.

    def wrap_int(self, value: Plain) -> Number:
        """Make a constant."""
        return Number(value, None, self.ledger)

    wrap_float = wrap_bool = wrap_int

    def clone(self) -> Number:
        """Return itself; it does not change."""
        return self

    # Making plain values.

    def guard_int(self, file: str = "", line: int = 0) -> int:
        """Make a plain integer of it."""
        return int(self.settle("number"))

    def guard_float(self, file: str = "", line: int = 0) -> float:
        """Make a plain float of it."""
        return float(self.settle("number"))

    def guard_bool(self, file: str = "", line: int = 0) -> bool:
        """Make a plain condition of it."""
        return bool(self.settle("condition"))

    int_, float_, bool_, guard_size_oblivious = guard_int, guard_float, guard_bool, guard_bool

    def guard_or_false(self, file: str = "", line: int = 0) -> bool:
        """Answer a question that PyTorch asks to save work: no, unless it holds for every value."""
        return self.node is None and bool(self.value)

    statically_known_true = guard_or_false

    def guard_or_true(self, file: str = "", line: int = 0) -> bool:
        """Answer a question that PyTorch asks to save work: yes, unless it holds for no value."""
        return self.node is not None or bool(self.value)

    def expect_true(self, file: str = "", line: int = 0) -> bool:
        """Check what has to be so. An assertion that holds steers nothing, so only one that fails is noted."""
        return bool(self.value) or self.guard_bool(file, line)

    def __str__(self) -> str:
        """Show the value to whoever reads a message of PyTorch's."""
        return f"{self.value}"

    __repr__ = _graph_repr = str = __str__


def apply(function: Callable[..., Any], *operands: Any) -> Any:
    """Call a function on numbers and plain values, and write down that it was called.

    Parameters
    ----------
    function
        A plain Python function of numbers.
    *operands
        At least one `Number`, and plain values. None is left out.

    Returns
    -------
    Number or plain
        A `Number`. Where the result is no int, float or bool (a root of a negative number is complex), or where Python
        raises an error because of the values, the operands are settled first: then it is a plain value or that error.
    """
    operands = tuple(operand for operand in operands if operand is not None)
    numbers = [operand for operand in operands if isinstance(operand, Number)]
    try:
        value = function(*(o.value if isinstance(o, Number) else o for o in operands))
    except (ArithmeticError, ValueError):
        return function(*(o.settle("condition") if isinstance(o, Number) else o for o in operands))
    if type(value) not in (int, float, bool):
        return function(*(o.settle("number") if isinstance(o, Number) else o for o in operands))
    ledger = numbers[0].ledger
    if all(number.node is None for number in numbers):
        return Number(value, None, ledger)
    return Number(value, ledger.compute(function, tuple(map(_argument, operands)), value), ledger)


def _argument(operand: Any) -> Any:
    """Return what stands in the graph for an operand: its node, or a constant without a class of its own."""
    if isinstance(operand, Number):
        return operand.value if operand.node is None else operand.node
    return operand if isinstance(operand, (bool, complex)) else (int if isinstance(operand, int) else float)(operand)


def choose(condition: bool, then: Any, otherwise: Any) -> Any:
    """Return one of two values.

    >>> choose(True, 1, 2)
    1
    """
    return then if condition else otherwise


def is_whole(number: float) -> bool:
    """Tell whether a float has nothing after the point.

    >>> is_whole(2.0)
    True
    """
    return number.is_integer()


MATH = ("sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan", "log2")

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "mod", "neg", "pos", "lshift", "rshift")},
    **{name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge", "and_", "or_")},
    **dict.fromkeys(("truediv", "float_truediv", "int_truediv"), operator.truediv),
    **dict.fromkeys(("floordiv", "int_floordiv"), operator.floordiv),
    **dict.fromkeys(("pow", "float_pow", "pow_by_natural"), operator.pow),
    **{"sym_and": operator.and_, "bitwise_and": operator.and_, "sym_or": operator.or_, "bitwise_or": operator.or_},
    **{"bitwise_xor": operator.xor, "sym_not": operator.not_, "sym_ite": choose, "sym_max": max, "sym_min": min},
    **{"sym_float": float, "sym_int": int, "abs": operator.abs, "round": round, "is_integer": is_whole},
    **{"floor": math.floor, "ceil": math.ceil, "trunc": math.trunc},
    **{f"sym_{name}": getattr(math, name) for name in MATH},
}
"""PyTorch's names of what can be computed with numbers, and the Python functions which do that."""
