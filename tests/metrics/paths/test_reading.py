from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from depgraph.metrics.paths.reading import running, segments, selector
from tests.metrics.strategies import readings


def random_table(rows: int, columns: int | None, seed: int) -> np.ndarray:
    shape = (rows,) if columns is None else (rows, columns)
    return np.random.default_rng(seed).integers(0, 1000, shape).astype(np.int16)


@given(st.data(), st.integers(1, 40), st.integers(1, 40), st.sampled_from([None, 1, 3, 33]), st.integers(0, 9))
def test_selectors_take_minima_over_runs(
    data: st.DataObject, size: int, rows: int, columns: int | None, seed: int
) -> None:
    runs = data.draw(readings(size, rows))
    if not len(runs.starts):
        return
    table = random_table(size, columns, seed)
    before = table.copy()
    select = selector(runs.starts, runs.stops, size)
    for _ in range(2):  # a selector may be used again
        found, fresh = select(table)
        expected = [table[a:b].min(axis=0) for a, b in zip(runs.starts, runs.stops, strict=True)]
        assert np.array_equal(found, expected)
        assert found.dtype == np.int16
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
    assert np.array_equal(
        running(
            table,
        ),
        np.minimum.accumulate(table, axis=0),
    )
    assert np.array_equal(running(table[::-1]), np.minimum.accumulate(table[::-1], axis=0))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 20)), min_size=1, max_size=20), st.integers(0, 9))
def test_segments(pieces: list[tuple[int, int]], seed: int) -> None:
    table = random_table(50, 3, seed)
    starts, counts = np.array(pieces, np.int64).T
    expected = [table[a : a + n].min(axis=0) for a, n in pieces]
    assert np.array_equal(segments(table, starts, counts), expected)
