"""How low a number has to be to mask, and what is left of a group."""

import math

import pytest
import torch
import torch.nn.functional as F

import depgraph
from depgraph.rules.masking import ORDINARY, alone, far, masked_out, negligible, of_any_size, ordinary
from depgraph.rules.values import FIRST, GENERIC, KNOWN, Value, generic, known
from tests.jacobian import check

R = torch.randn
INF, NAN = float("inf"), float("nan")


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


def test_what_is_not_of_ordinary_size():
    assert far(scores([0.0, ORDINARY, -1e9, NAN])).tolist() == [False, True, True, True]
    assert far(scores([0.0, 1.0])) is None
    assert far(known(torch.tensor([1e9]))) is None  # its size is known: there is nothing to take for granted
    assert far(generic((2,), torch.float32)) is None


def test_marking_unknowns():
    value = Value(torch.tensor([KNOWN, GENERIC, FIRST, FIRST + 1]), torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.float32)

    def marked(*args, **options):
        return of_any_size(value, *args, **options).known.isnan().tolist()

    assert marked() == [False, True, True, True]
    assert marked(torch.tensor([True, True, False, True])) == [False, True, False, True]
    assert marked(first=FIRST + 1) == [False, False, False, True]
    assert ordinary(of_any_size(value)).tolist() == [1.0, 0.0, 0.0, 0.0]
    assert ordinary(value) is value.known
    whole = Value(value.codes, None, torch.int64)
    assert of_any_size(whole) is whole


def test_a_number_of_any_size_masks_nothing_and_may_be_masked_by_infinity_only():
    assert masked_out(scores([0.0, -1e9, NAN]), 0) is None
    assert masked_out(scores([0.0, -INF, NAN]), 0).tolist() == [False, True, False]


# Rows with all, some, none and one element left.
MASK = torch.tensor([[1, 1, 1], [0, 1, 1], [0, 0, 0], [1, 0, 0]]).bool()
LOW = torch.where(MASK, 0.0, -1e9).double()


def weights(x):
    return x.exp() / x.exp().sum(-1, keepdim=True)


def test_softmax_by_hand():
    graph = check(
        lambda x: {
            "less the largest": weights(x + LOW - (x + LOW).amax(-1, keepdim=True)),
            "less the largest and its index": weights(x + LOW - (x + LOW).max(-1, keepdim=True).values),
            "less the logarithm": (x + LOW - (x + LOW).logsumexp(-1, keepdim=True)).exp(),
            "exp of the logarithm": (x + LOW).log_softmax(-1).exp(),
        },
        R(4, 3),
        exact=False,  # what is alone is 1
    )
    # Neither is more read than the softmax itself reads: rows by themselves, and in a row what is left of it.
    allowed = torch.block_diag(*[row[:, None] & row[None] if row.any() else ~row[:, None] | ~row[None] for row in MASK])
    for name in graph.outputs:
        assert not (depgraph.path_lengths(graph, 0, name) >= 0)[~allowed.numpy()].any()


def test_what_is_made_of_low_numbers_may_be_low_itself():
    check(
        lambda x: {
            "mean": (x + LOW - (x + LOW).mean(-1, keepdim=True)).sigmoid(),
            "sums": (x + LOW - (x + LOW).cumsum(-1)).softmax(-1),
            "product": ((x + LOW) @ torch.eye(3).double() - LOW).softmax(-1),
            "ratio": torch.exp((x + LOW) / (x + LOW).abs().amax(-1, keepdim=True)),
            "two unknowns": ((x + LOW) * x / 1e9 + LOW).softmax(-1),
            "choice": torch.where(x > 0, x + LOW, x - LOW).softmax(-1),
            "high": ((x + 1e9).mean(-1, keepdim=True) - 1e9 + x).sigmoid(),
            "stretched": (x * 1e9 + LOW).softmax(-1),
            "shrunk": ((x + LOW) * 1e-9).softmax(-1),
            "taken back": (x + LOW - LOW).softmax(-1),
            "through a cast": (x + LOW).half().double().softmax(-1),
            "padded": F.pad(x + LOW, (0, 1)).softmax(-1),
        },
        R(4, 3),
        exact=False,
        draws=12,
    )


def test_what_is_bounded_is_ordinary_again():
    norm = torch.nn.LayerNorm(3).double()
    check(
        lambda x: {
            "norm": (norm(x + LOW) * x + LOW).softmax(-1),
            "sine": (torch.sin(x + LOW) * x + LOW).softmax(-1),
            "attention": (F.scaled_dot_product_attention(x, x, x, LOW @ LOW.T / 1e9 - 1e9) + LOW).softmax(-1),
        },
        R(4, 3),
        exact=False,
    )


def test_unknowns_beside_known_numbers_for_which_a_function_is_infinite_at_0():
    def padded(x):
        return F.pad(x, (0, 1), value=1.0)

    check(
        lambda x: {
            "logarithm": padded(x.exp()).log() + 1,
            "reciprocal": padded(x).reciprocal() - 1,
            "largest": torch.maximum(padded(x).reciprocal(), torch.tensor(-1e3).double()),
            "root": padded(x.exp()).rsqrt().neg(),
            "power": padded(x) ** -2 + 1,
            "softmax": padded(x.exp()).log()[:, :3].softmax(-1),
        },
        R(4, 3),
    )
