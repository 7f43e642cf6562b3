"""Making values of intervals, and what is asked of them."""

import math

import pytest
import torch

from depgraph.rules.values import FIRST, GENERIC, KNOWN, ORDINARY, Value, generic, known, uniform
from depgraph.rules.values.intervals import (
    bounded,
    doubted,
    far,
    fitted,
    largest,
    of_any_size,
    same,
    size,
    sized,
    spoilt,
    stretch,
    wild,
    within,
)

CODES = torch.tensor([KNOWN, GENERIC, FIRST])
TOP = torch.finfo(torch.float32).max


def test_an_element_is_known_just_where_its_interval_is_one_number():
    value = bounded(CODES, torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.5, 2.0, 4.0]), torch.float32)
    assert value.codes.tolist() == [GENERIC, KNOWN, FIRST]
    doubtful = bounded(CODES, torch.ones(3), torch.ones(3), torch.float32, torch.tensor([False, True, False]))
    assert doubtful.codes.tolist() == [KNOWN, GENERIC, KNOWN]
    nothing = bounded(CODES, torch.full((3,), math.nan), torch.full((3,), math.nan), torch.float32)
    assert nothing.is_known


def test_the_usual_range_is_not_stored():
    value = bounded(
        CODES, torch.tensor([0.0, -ORDINARY, -ORDINARY]), torch.tensor([0.0, ORDINARY, ORDINARY]), torch.float32
    )
    assert value.low is None
    assert value.high is None
    assert value.bounds[1].tolist() == [0.0, ORDINARY, ORDINARY]
    flags = bounded(CODES, torch.tensor([True, False, False]), torch.ones(3).bool(), torch.bool)
    assert flags.high is None
    assert flags.values().tolist() == [True, False, False]


def test_finite_ends_stay_finite_in_a_narrower_dtype():
    assert fitted(torch.tensor([1e300, -math.inf], dtype=torch.float64), torch.float32).tolist() == [TOP, -math.inf]
    assert fitted(torch.tensor([1e30, -1e30, 3.7]), torch.int8).tolist() == [127, -128, 3]


def test_sizes():
    value = bounded(CODES[1:], torch.tensor([-3.0, 5.0]), torch.tensor([2.0, 6.0]), torch.float32)
    assert size(value).tolist() == [3.0, 6.0]
    assert largest(value) == 6.0
    assert stretch(value) == 1.0
    assert stretch(known(torch.tensor([ORDINARY * 3]))) == 3.0
    assert largest(generic((0,), torch.float32)) == 0.0


def test_what_is_of_more_than_ordinary_size():
    value = bounded(CODES, torch.tensor([1e9, -1e9, -1.0]), torch.tensor([1e9, 1.0, 1.0]), torch.float32)
    assert far(value).tolist() == [False, True, False]
    assert far(generic((3,), torch.float32)) is None
    assert wild(value) is None
    assert wild(known(torch.tensor([1.0, math.inf, math.nan]))).tolist() == [False, True, True]


def test_of_any_size_are_the_unknown_numbers_that_are_meant():
    value = Value(CODES, None, torch.float32)
    assert of_any_size(value).bounds[1].tolist() == [0.0, TOP, TOP]
    assert of_any_size(value, first=FIRST).bounds[1].tolist() == [0.0, ORDINARY, TOP]
    assert of_any_size(value, torch.tensor([True, True, False])).bounds[1].tolist() == [0.0, TOP, ORDINARY]
    assert of_any_size(value, nan=True).nan.tolist() == [False, True, True]
    assert of_any_size(known(torch.ones(3))).is_known
    assert of_any_size(generic((3,), torch.int64)).plain


def test_a_result_is_spoilt_by_what_it_is_made_of():
    value = Value(uniform(FIRST, (2,)), None, torch.float32)
    vast = of_any_size(value)
    assert spoilt(value, [generic((2,), torch.float32)]) is value
    assert spoilt(value, [vast]).bounds[1].tolist() == [TOP, TOP]
    assert spoilt(value, [vast]).nan is None
    assert spoilt(value, [known(torch.tensor([math.inf]))]).nan.tolist() == [True, True]
    assert spoilt(value, [doubted(value, torch.tensor([True, False]))]).nan.tolist() == [True, True]
    assert spoilt(value, [generic((2,), torch.int64)]) is value


def test_intervals_are_cut_where_they_reach_into_the_limit():
    low, high = torch.tensor([-9.0, -9.0, 6.0]), torch.tensor([9.0, -6.0, 9.0])
    found = within((low, high), 5.0, torch.tensor([True, True, True]))
    assert found[0].tolist() == [-5.0, -9.0, 6.0]
    assert found[1].tolist() == [5.0, -6.0, 9.0]
    assert sized(Value(CODES, None, torch.float32), 10.0).bounds[0].tolist() == [0.0, -10.0, -10.0]


@pytest.mark.parametrize(
    ("one", "other", "expected"), [(math.nan, math.nan, True), (0.0, -0.0, True), (1.0, 2.0, False)]
)
def test_sameness(one, other, expected):
    assert bool(same(torch.tensor(one), torch.tensor(other))) is expected
