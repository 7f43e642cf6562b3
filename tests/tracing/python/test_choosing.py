"""Python's max, min and sorted of symbolic numbers."""

import builtins
import statistics

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from depgraph.tracing.python.choosing import choosing, ordered
from depgraph.tracing.python.numbers import is_symbolic, plain, symbolic
from tests.tracing.python.book import Book

NUMBERS = st.lists(st.one_of(st.integers(-9, 9), st.floats(-9, 9)), min_size=1, max_size=6)
FUNCTIONS = {
    "max": max, "min": min, "max of many": lambda values: max(*values, 0), "sorted": sorted,
    "descending": lambda values: sorted(values, reverse=True), "median": statistics.median,
    "by a key": lambda values: max(values, key=abs), "of some": lambda values: min(v for v in values),
    "or else": lambda values: max([], default=values[0]),
}  # fmt: skip


def taken(value, book):
    return symbolic(value, book.graph.placeholder("x"), book)


@pytest.mark.parametrize("name", FUNCTIONS)
@given(NUMBERS)
def test_they_give_what_python_gives(name, values):
    expected = FUNCTIONS[name](values)
    book = Book()
    with choosing():
        function = {"max": lambda v: max(v), "min": lambda v: min(v), "sorted": lambda v: sorted(v)}.get(
            name, FUNCTIONS[name]
        )
        result = function([taken(value, book) for value in values])
    assert plain(result) == expected


@pytest.mark.parametrize("function", [lambda v: max(v), lambda v: min(v), lambda v: sorted(v)])
def test_nothing_is_settled(function):
    book = Book()
    with choosing():
        result = function([taken(2.0, book), taken(1.0, book), 3])
    assert all(map(is_symbolic, result if isinstance(result, list) else [result]))
    assert book.settled == []


def test_they_are_put_back():
    before = max, min, sorted
    with pytest.raises(ZeroDivisionError), choosing():
        raise ZeroDivisionError
    assert (max, min, sorted) == before == (builtins.max, builtins.min, builtins.sorted)
    assert "sorted" not in vars(torch)
    with choosing():
        assert max([1, 5, 3]) == 5
        assert sorted("bca", key=str) == ["a", "b", "c"]
        with pytest.raises(ValueError, match="empty"):
            max([])


def test_a_place_in_a_sorted_list():
    assert [ordered(k, False, 3, 1, 2) for k in range(3)] == [1, 2, 3]
