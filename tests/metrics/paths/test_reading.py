from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from depgraph.metrics.paths.joins import MINIMUM, UNION, Digits, Join, SmallestSum, Sum
from depgraph.metrics.paths.reading import running, segments, selector
from tests.metrics.strategies import readings

#: Joins of tables with that many columns of values.
JOINS = {
    "minimum": lambda columns: MINIMUM,
    "union": lambda columns: UNION,
    "sum": lambda columns: Sum(np.add, False, Digits(columns, 100)),
    "smallest": lambda columns: SmallestSum(Digits(columns, 100), floats=False),
    "smallest float": lambda columns: SmallestSum(Digits(columns, 100), floats=True),
}


def random_table(rows: int, columns: int | None, seed: int) -> np.ndarray:
    shape = (rows,) if columns is None else (rows, columns)
    return np.random.default_rng(seed).integers(0, 1000, shape).astype(np.int16)


def table_for(join: Join | SmallestSum, rows: int, columns: int, seed: int) -> np.ndarray:
    """Return a random table that the join is for; smallest lengths are soon the same."""
    if isinstance(join, SmallestSum):
        lengths = random_table(rows, columns, seed).astype(np.float64 if join.floats else np.int64) % 3 / 2
        bits = lengths.view(np.int64) if join.floats else lengths.astype(np.int64)
        return np.hstack([bits, random_table(rows, 2 * columns, seed + 1)])
    table = random_table(rows, 2 * columns, seed)
    return table.astype(np.int64) if isinstance(join, Sum) else table


def joined(join: Join | SmallestSum, rows: np.ndarray) -> np.ndarray:
    """Return all rows joined, column by column."""
    if isinstance(join, Join):
        return join.ufunc.reduce(rows, axis=0)
    columns = join.digits.columns
    lengths, counts = rows[:, :columns], rows[:, columns:]
    least = lengths.min(axis=0)
    return np.append(least, (counts * np.tile(lengths == least, 2)).sum(axis=0))


@given(st.data(), st.integers(1, 40), st.integers(1, 40), st.sampled_from([None, 1, 3, 33]), st.integers(0, 9))
def test_selectors_take_minima_over_runs(
    data: st.DataObject, size: int, rows: int, columns: int | None, seed: int
) -> None:
    runs = data.draw(readings(size, rows))
    if len(runs.starts):
        check(MINIMUM, runs.starts, runs.stops, random_table(size, columns, seed))


@pytest.mark.parametrize("name", [name for name in JOINS if name != "minimum"])
@given(st.data(), st.integers(1, 40), st.integers(1, 40), st.sampled_from([1, 3, 33]), st.integers(0, 9))
def test_selectors_join_runs(name: str, data: st.DataObject, size: int, rows: int, columns: int, seed: int) -> None:
    runs, join = data.draw(readings(size, rows)), JOINS[name](columns)
    if len(runs.starts):
        check(join, runs.starts, runs.stops, table_for(join, size, columns, seed))


def check(join: Join | SmallestSum, starts: np.ndarray, stops: np.ndarray, table: np.ndarray) -> None:
    before = table.copy()
    select = selector(starts, stops, len(table), join)
    for _ in range(2):  # a selector may be used again
        found, fresh = select(table)
        expected = [joined(join, table[a:b]) for a, b in zip(starts, stops, strict=True)]
        assert np.array_equal(found, expected)
        assert found.dtype == table.dtype
        assert np.array_equal(table, before)
        if fresh:
            found[...] = -1
            assert np.array_equal(table, before)


def test_one_to_one_reading_is_the_table_itself() -> None:
    table = random_table(5, 2, 0)
    whole = selector(np.arange(5), np.arange(1, 6), 5)
    part = selector(np.arange(1, 4), np.arange(2, 5), 5)
    assert whole(table)[0] is table
    assert part(table)[0].base is table


@pytest.mark.parametrize("columns", [None, 1, 31, 32, 50])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 24, 25, 26, 35, 99, 100])
def test_running_minimum(rows: int, columns: int | None) -> None:
    table = random_table(rows, columns, rows)
    assert np.array_equal(running(table), np.minimum.accumulate(table, axis=0))
    assert np.array_equal(running(table[::-1]), np.minimum.accumulate(table[::-1], axis=0))


@pytest.mark.parametrize("columns", [1, 3, 40])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 24, 35, 100])
@pytest.mark.parametrize("name", JOINS)
def test_running_joins(name: str, rows: int, columns: int) -> None:
    join = JOINS[name](columns)
    table = table_for(join, rows, columns, rows)
    assert np.array_equal(running(table, join), [joined(join, table[: i + 1]) for i in range(rows)])


@pytest.mark.parametrize("name", JOINS)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 20)), min_size=1, max_size=20), st.integers(0, 9))
def test_segments(name: str, pieces: list[tuple[int, int]], seed: int) -> None:
    join = JOINS[name](3)
    table = table_for(join, 50, 3, seed)
    starts, counts = np.array(pieces, np.int64).T
    expected = [joined(join, table[a : a + n]) for a, n in pieces]
    assert np.array_equal(segments(table, starts, counts, join), expected)
