from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from depgraph.metrics.paths.joins import Digits, DigitsFullError


@given(
    st.lists(st.tuples(*[st.integers(0, 2**61)] * 3), min_size=1, max_size=4),
    st.sampled_from([1, 2, 1000, 2**30, 2**45]),
)
def test_carrying_changes_no_number(rows: list[tuple[int, ...]], summands: int) -> None:
    digits = Digits(2, summands)
    # Two columns of three digits and nothing above them.
    table = np.array([[value for digit in row for value in (digit, digit // 3)] + [0] * 20 for row in rows])
    before = digits.integers(table)
    expected = [[sum(d // q << digits.base * k for k, d in enumerate(row)) for q in (1, 3)] for row in rows]
    assert before.tolist() == expected
    digits.carry(table)
    assert digits.integers(table).tolist() == expected
    assert table.min() >= 0
    assert table.max() < 2**digits.most
    assert int(table.max()) * summands < 2**63  # so many may be added up


def test_what_fits_is_left_alone() -> None:
    digits = Digits(1, 1)
    table = np.array([[2**digits.most - 1, 5]])
    digits.carry(table)
    assert table.tolist() == [[2**digits.most - 1, 5]]


@pytest.mark.parametrize("row", [[2**61], [2**62], [1, 2**61]])
def test_numbers_that_need_more_digits(row: list[int]) -> None:
    with pytest.raises(DigitsFullError):
        Digits(1, 1).carry(np.array([row]))
