"""No dependence of random programs of masks and scores is missed; more of them: ``python -m tests.values.programs``."""

import random

import pytest
import torch

from tests.values.drawing import Program, Statement, drawn
from tests.values.measuring import Measuring, Ordinary, outcome, structural


@pytest.mark.parametrize("seed", range(60))
def test_nothing_is_missed(seed):
    program = drawn(seed)
    first = outcome(program, seed).first
    assert first is None, f"{first} reads more than is reported:\n{program.pruned(first).source}"


def test_a_seed_is_a_program():
    assert [drawn(seed).source for seed in range(20)] == [drawn(seed).source for seed in range(20)]


def single(expression, kind, dtype=torch.float32):
    return Program({"x": (dtype, (3,))}, (Statement("a0", expression, kind),), ("a0",))


@pytest.mark.parametrize(
    ("program", "value", "kept"),
    [
        (single("x.exp()", "positive"), 8.0, True),
        (single("x.exp()", "positive"), 9.0, False),  # 8103
        (single("x.exp()", "positive"), -200.0, False),  # 0
        (single("x.exp()", "positive"), -9000.0, True),  # that is not a number of ordinary size
        (single("x * x", "product"), 65.0, False),
        (single("x * 1e9", "product"), 4000.0, True),
        (single("x * 1e38", "scaled"), 4000.0, False),  # infinite
        (single("x.sum(-1)", "row"), 2000.0, False),
        (single("x.log()", "curved"), -1.0, False),
        (single("x.to(torch.uint8)", "cast"), 255.5, True),
        (single("x.to(torch.uint8)", "cast"), 256.0, False),
        (single("x.to(torch.int64)", "cast"), 2.0**63, False),
    ],
)
def test_what_keeps_to_the_assumption(program, value, kept):
    assert Ordinary(program)([torch.full((3,), value)]) is kept


def test_what_is_measured():
    statement = Statement("a0", "x.masked_fill(torch.tensor([True, False, False]), 0.0).cumsum(-1)", "row")
    program = Program({"x": (torch.float64, (3,))}, (statement,), ("a0",))
    reported, _ = structural(program)
    changed = Measuring(program, reported, random.Random(0)).changed()
    assert changed["x"].tolist() == [[False, False, False], [False, True, True], [False, False, True]]
