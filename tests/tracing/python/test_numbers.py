"""Symbolic numbers against plain ones: the same values, the same errors, and what is written down of them."""

import copy
import fractions
import json
import math
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from depgraph.tracing.python.encoding import json_takes_numbers
from hypothesis import given
from hypothesis import strategies as st
from torch.utils import _pytree as pytree

from depgraph.tracing.python.numbers import Number, is_symbolic, node_of, nodes, plain, value_of
from tests.tracing.python.book import Book, rows, same

# Any way to compute with them gives what plain Python gives.

TWO = [
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow),
    *(operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne),
    *(operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, divmod, max, min),
]
ONE = [operator.neg, operator.pos, abs, operator.invert, round, math.floor, math.ceil, math.trunc, bool, int, float]
LEAVES = st.tuples(
    st.sampled_from(["number", "constant"]),
    st.one_of(st.integers(-6, 6), st.sampled_from([-2.5, -1.0, -0.0, 0.0, 0.5, 1.5, 3.0, math.inf]), st.booleans()),
)
TREES = st.recursive(
    LEAVES,
    lambda trees: st.one_of(
        st.tuples(st.sampled_from(ONE), trees),
        st.tuples(st.sampled_from(TWO), trees, trees),
        st.tuples(st.just(round), trees, st.tuples(st.just("constant"), st.integers(0, 2))),
    ),
    max_leaves=8,
)


def evaluate(tree: Any, read: Callable[[Any], Any]) -> Any:
    head, *parts = tree
    if isinstance(head, str):
        return read(parts[0]) if head == "number" else parts[0]
    values = [evaluate(part, read) for part in parts]
    if any(isinstance(value, tuple) for value in values):  # a pair from divmod
        values = [value[0] if isinstance(value, tuple) else value for value in values]
    if head in (operator.pow, operator.lshift) and any(abs(plain(value)) > 64 for value in values):
        return values[0]
    return head(*values)


def outcome(tree: Any, read: Callable[[Any], Any]) -> Any:
    try:
        return evaluate(tree, read)
    except (ArithmeticError, ValueError) as error:
        return type(error), str(error)
    except TypeError as error:
        return type(error)


@given(TREES)
def test_like_plain_python(tree: Any) -> None:
    book = Book()
    result, expected = outcome(tree, book.read), outcome(tree, lambda value: value)
    for value, other in zip(pytree.tree_leaves(result), pytree.tree_leaves(expected), strict=True):
        assert same(plain(value), other)
    book.again()


@given(st.one_of(st.integers(), st.floats(allow_nan=False)), st.one_of(st.integers(), st.floats(allow_nan=False)))
def test_comparisons_are_exact(left: Any, right: Any) -> None:
    # Python compares an int with a float as they are, without rounding the int.
    book = Book()
    for compare in (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge):
        for a, b in [(book.read(left), right), (left, book.read(right)), (book.read(left), book.read(right))]:
            assert value_of(compare(a, b)) is compare(left, right)
    assert not book.settled


# What stays symbolic, and what ends: with m = 2.5, n = 2, b = True.

STAYS = """
m + 1      | 1 - m       | m * n       | n / 2      | 7 // n    | m // 1     | n % 2      | -m        | +n
m ** 2     | n ** 0.5    | 2 ** n      | n ** -1    | pow(n, 3, 5) | abs(-m)  | round(m)   | round(m, 1) | round(n)
n << 1     | n >> 1      | n & 1       | operator.or_(n, 1) | n ^ 3     | ~n         | b + 1      | b & (m > 1)
m > 1      | 1 < m       | m == m      | n != 2     | m <= n    | b == True  | sum([m, n, 1]) | divmod(n, m)[0]
math.floor(m) | math.ceil(m) | math.trunc(m) | math.prod([m, n]) | m.is_integer() | m.conjugate()
copy.copy(n) | copy.deepcopy([n])[0] | torch.sym_max(n, 3.0) | torch.sym_min(m, n) | torch.sym_sqrt(m)
torch.sym_int(m) | torch.sym_float(n) | torch.sym_not(b) | torch.sym_ite(b, n, n) | torch.sym_sum([n, n, 1])
max([m])   | operator.or_(b, False)
"""

ENDS = {
    "condition": """
bool(m)    | bool(n)     | not m       | m > 1 and 3 | 1 if b else 2 | n in (1,)  | max(m, 1.0) | min(n, 3)
n / 0      | divmod(m, 0) | (b or 3) and 4 | sorted([2.0, m])
""",
    "number": """
int(m)     | float(m)    | float(n)    | int(b)     | complex(m)   | range(n)   | [1, 2, 3][n] | "ab" * n  | [0] * n
[1, 2, 3][:n] | hash(m)  | {2: "two"}[n] | {2.5, m}  | f"{m}"      | f"{m:.2f}" | str(n)      | repr(m)   | "%.1f" % m
"%d" % n   | "{}".format(n) | math.sqrt(m) | math.exp(m) | math.isnan(m) | math.gcd(n, 4) | math.log(n)
m.hex()    | n.bit_length() | m.as_integer_ratio() | m.real | n.numerator | (-m) ** 0.5 | m + 1j
np.array(m) | np.float64(2) * m | m * np.float64(2) | np.sqrt(m) | np.zeros(n) | np.ones(3)[n] | np.ones(3) * m
pickle.loads(pickle.dumps(m)) | json.dumps({"scale": m}) | json.dumps([1, (n,)], indent=1) | json.dumps({n: 1})
operator.index(n) | bytes(n) | round(2.567, n)
""",
}


def run(source: str, book: Book | None) -> Any:
    m, n, b = map(book.read, (2.5, 2, True)) if book is not None else (2.5, 2, True)
    modules = [copy, fractions, json, math, operator, pickle, torch]
    names = {module.__name__: module for module in modules} | {"np": np, "m": m, "n": n, "b": b}
    with json_takes_numbers():
        try:
            return eval(source, names)
        except ZeroDivisionError as error:
            return str(error)


@pytest.mark.parametrize("source", rows(STAYS))
def test_stays(source: str) -> None:
    book = Book()
    result = run(source, book)
    assert is_symbolic(result)
    assert same(value_of(result), run(source, None))
    assert not book.settled
    book.again()


@pytest.mark.parametrize(("kind", "source"), [(kind, source) for kind, table in ENDS.items() for source in rows(table)])
def test_ends_once(kind: str, source: str) -> None:
    book = Book()
    result, expected = run(source, book), run(source, None)
    assert [k for k, _ in book.settled] == [kind] * (2 if source == "json.dumps({n: 1})" else 1)  # hashed, then written
    assert type(plain(result)) is type(expected)
    assert str(result) == str(expected)


def test_a_chain_of_comparisons_is_a_chain_of_conditions() -> None:
    book = Book()
    m = book.read(2.5)
    assert 0 < m < 3
    assert book.settled == [("condition", True), ("condition", True)]


def test_some_read_a_number_twice() -> None:
    book = Book()
    assert np.array([book.read(2.5), 1.0]).tolist() == [2.5, 1.0]
    assert fractions.Fraction(book.read(2)) == 2
    assert book.settled == [("number", 2.5)] * 2 + [("number", 2)] * 2


def test_a_settled_value_may_be_another() -> None:
    class Changing(Book):
        def settle(self, number: Number, kind: str) -> Any:
            return not number.value if kind == "condition" else number.value + 1

    n = Changing().read(2)
    assert (n > 1 or "less") == "less"
    assert int(n) == len(range(n)) == 3
    assert {3: "three"}[n] == "three"


def test_seen_as_the_plain_class() -> None:
    book = Book()
    m, n, b = map(book.read, (2.5, 2, True))
    assert isinstance(m, float) and isinstance(m, torch.SymFloat) and not isinstance(m, int)  # noqa: PT018
    assert isinstance(n, int) and isinstance(n, torch.SymInt) and not isinstance(n, bool)  # noqa: PT018
    assert isinstance(b, bool) and isinstance(b, torch.SymBool)  # noqa: PT018
    assert type(m) is not float
    assert not hasattr(m, "shape")
    assert m != "text"
    assert m is not None
    assert not book.settled
    with pytest.raises(TypeError, match="unsupported operand"):
        m + "text"


def test_trees() -> None:
    book = Book()
    m, n = book.read(2.5), book.read(2)
    tree = {"a": [m, slice(None, n)], "b": (torch.Size([n, 3]), 1, None)}
    assert plain(tree) == {"a": [2.5, slice(None, 2)], "b": (torch.Size([2, 3]), 1, None)}
    assert nodes(tree) == {"a": [node_of(m), slice(None, node_of(n))], "b": ((node_of(n), 3), 1, None)}
    assert type(plain(tree)["b"][0]) is torch.Size
    assert not book.settled
    with pytest.raises(TypeError, match="not a symbolic number"):
        node_of(2)


def test_in_a_class_of_pytorch() -> None:
    # C++ code wraps what is behind a number in PyTorch's own class.
    book = Book()
    m, n = torch.SymFloat(book.read(2.5).node), torch.SymInt(book.read(2).node)
    results = [
        m + n,
        n * 3,
        m / 2,
        round(m, 1),
        n // 2,
        n % 2,
        -m,
        abs(m),
        math.floor(m),
        n**0.5,
        n & 1,
        torch.sym_sqrt(m),
    ]
    plain_results = [4.5, 6, 1.25, 2.5, 1, 0, -2.5, 2.5, 2, 2**0.5, 0, 2.5**0.5]
    assert all(same(value_of(r), p) for r, p in zip(results, plain_results, strict=True))
    assert value_of(m > n) is True
    book.again()
    with pytest.raises(AttributeError, match="nothing"):
        m.node.nothing()
