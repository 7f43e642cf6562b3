"""How low a number has to be to mask, and what is left of a group."""

import math

import pytest
import torch

from depgraph.rules.masking import ORDINARY, alone, masked_out, negligible
from depgraph.rules.values import FIRST, KNOWN, Value

INF = float("inf")


def scores(known, dtype=torch.float32, codes=None):
    known = torch.tensor(known, dtype=dtype)
    codes = torch.arange(known.numel()).reshape(known.shape) + FIRST if codes is None else codes
    return Value(codes, known, dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_what_is_negligible_vanishes_beside_ordinary_scores(dtype):
    numbers = torch.linspace(-2000, 0, 20001, dtype=torch.float64)
    found = negligible(numbers, dtype)
    # Softmax is computed in single precision, and in double for doubles.
    exact = torch.float64 if dtype == torch.float64 else torch.float32
    assert (torch.exp((numbers[found] + ORDINARY).to(exact)) == 0).all()
    # It is no far cry from what vanishes by itself.
    assert numbers[found].max() > math.log(torch.finfo(exact).smallest_normal) - 2 * ORDINARY
    assert found.sum() == (numbers <= numbers[found].max()).sum()


@pytest.mark.parametrize("low", [-INF, -1e9, -1e4, torch.finfo(torch.float32).min])
def test_low_numbers_mask(low):
    assert masked_out(scores([[0.0, low, 0.0]]), 1).tolist() == [[False, True, False]]
    assert masked_out(scores([[0.0, low, 0.0]]), 0) is None or low == -INF


@pytest.mark.parametrize("low", [-1.0, -50.0, -100.0])
def test_other_numbers_do_not(low):
    assert masked_out(scores([[0.0, low, 0.0]]), 1) is None


def test_the_whole_group_may_be_low():
    # Shifted alike, scores are what they were.
    assert masked_out(scores([-1e9, -1e9]), 0) is None
    assert masked_out(scores([-1e9, -2e9]), 0).tolist() == [False, True]
    assert masked_out(scores([-INF, -INF]), 0).tolist() == [True, True]


def test_nothing_is_masked_where_nothing_is_known():
    assert masked_out(Value(torch.arange(3) + FIRST, None, torch.float32), 0) is None


def test_masks_along_stride_0_stay_thin():
    known = torch.tensor([0.0, -INF])[:, None].expand(2, 5)
    codes = torch.tensor(KNOWN).expand(2, 5)
    found = masked_out(Value(codes, known, torch.float32), 0)
    assert found.tolist() == [[False] * 5, [True] * 5]
    assert found.stride()[1] == 0


def test_what_is_left_alone():
    gone = torch.tensor([[False, True, True], [False, False, True], [True, True, True]])
    assert alone(gone, gone.shape, 1).tolist() == [[True], [False], [True]]
    assert alone(torch.zeros(2, 2).bool(), torch.Size((2, 2)), 1) is None
    assert alone(None, torch.Size((2, 3)), 1) is None
    assert alone(None, torch.Size((2, 1)), 1).all()
    thin = torch.tensor([[False], [True]]).expand(2, 4)
    assert alone(thin, thin.shape, 1).tolist() == [[False], [True]]
