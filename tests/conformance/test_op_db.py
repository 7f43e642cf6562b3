"""What every operator of PyTorch's database reads: nothing missed, nothing invented, nothing passed over in silence."""

import pytest

from tests.conformance.exceptions import INEXACT, REFUSED, UNTRIED
from tests.conformance.outcome import expected, glance
from tests.conformance.samples import database


@pytest.mark.parametrize("name", database())
def test_operator(name):
    found = glance(name)
    assert found.state == expected(name), f"{found.state}: {found.detail}"


def test_the_tables_name_operators_that_exist():
    named = [*INEXACT, *REFUSED, *UNTRIED]
    assert set(named) <= set(database())
    assert len(named) == len(set(named))
