"""Lines that check values, and lines on which numbers are written down."""

import linecache

import pytest

from depgraph.tracing.origin import Line
from depgraph.tracing.python.checks import is_check, is_literal


def line(tmp_path, code, number):
    file = tmp_path / "model.py"
    file.write_text(code)
    linecache.checkcache(str(file))
    return Line(str(file), number)


@pytest.mark.parametrize(
    ("code", "number", "check"),
    [
        ("assert x.sum() > 0", 1, True),
        ("assert (\n    x.sum()\n    > 0\n)", 3, True),
        ("torch._assert(x.sum() > 0, 'positive')", 1, True),
        ("torch._check(bool(x.sum() > 0))", 1, True),
        ("assert (n := float(x[0])) > 0", 1, False),
        ("assert x.ndim == 1; n = float(x[0])", 1, False),
        ("if x.sum() > 0: assert True", 1, False),
        ("def f(x):\n    assert x.sum() > 0", 2, True),
        ("n = assert_positive(x)", 1, False),
        ("asserted = float(x[0])", 1, False),
        ("not python (", 1, False),
    ],
)
def test_checks(tmp_path, code, number, check):
    assert is_check(line(tmp_path, code, number)) is check


def test_a_line_that_is_not_known():
    assert not is_check(None)
    assert not is_literal(None)
    assert not is_check(Line("nowhere.py", 3))


@pytest.mark.parametrize(
    ("code", "literal"),
    [
        ("y = torch.tensor([1, 2.5, True])", True),
        ("y = torch.tensor([1, n])", False),
        ("y[0] = -1", True),
        ("y[0] = n", False),
        ("y = f(1)", False),
        ("y = torch.tensor([1]); z = torch.tensor(n)", False),
    ],
)
def test_numbers_that_are_written_down(tmp_path, code, literal):
    assert is_literal(line(tmp_path, code, 1)) is literal
