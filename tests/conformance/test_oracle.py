"""The oracle itself, on functions whose dependences are plain."""

import numpy as np
import pytest
import torch

from tests.conformance import oracle
from tests.conformance.check import values
from tests.conformance.samples import TENSOR, Sample, chosen, database, samples


def measured(function, *tensors, draws=6):
    """Return what is shown and what is possible, one pair of matrices a tensor."""
    sample = Sample("add", 10**6, function, list(tensors), (TENSOR,) * len(tensors), {})
    found = oracle.start(sample, 100)
    want = [np.ones_like(seen.shown) for seen in found]
    for seed, given in zip(range(draws), values(sample), strict=False):
        oracle.perturb(sample, given, found, seed, want, 10**6)
    return [(seen.shown, seen.possible) for seen in found]


def x(*shape):
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize(
    ("function", "tensors", "expected"),
    [
        (lambda a: a.cumsum(0), [x(4)], [np.triu(np.ones((4, 4)))]),
        (lambda a: a.flip(0), [x(3)], [np.eye(3)[::-1]]),
        (lambda a, b: a @ b, [x(1, 2), x(2, 2)], [np.ones((2, 2)), np.tile(np.eye(2), (2, 1))]),
        (lambda a: a.max(), [x(5)], [np.ones((5, 1))]),
        (lambda a: a.argsort(), [x(3)], [np.ones((3, 3))]),
        (lambda a: a > 0, [x(3)], [np.eye(3)]),
        (lambda a: a.relu(), [-x(3).abs()], [np.eye(3)]),
        (lambda a, i: a[i], [x(3), torch.tensor([0, 2])], [np.ones((3, 2)), np.eye(2)]),
        (lambda a, m: torch.where(m, a, 0), [x(3), torch.tensor([True, False, True])], [np.eye(3), np.eye(3)]),
        (lambda a: torch.zeros_like(a), [x(3)], [np.zeros((3, 3))]),
        (lambda a: torch.rand_like(a), [x(3)], [np.zeros((3, 3))]),
        (lambda a: torch.empty_like(a), [x(3)], [np.zeros((3, 3))]),
        (lambda a: torch.nn.functional.dropout(a), [x(3)], [np.eye(3)]),
        (lambda a: torch.rrelu(a, 0.1, 0.9, True), [x(4)], [np.eye(4)]),
        (lambda a: a * (1 + 2j), [x(2)], [np.eye(2)]),
    ],
)
def test_what_is_read(function, tensors, expected):
    for (shown, _), matrix in zip(measured(function, *tensors, draws=16), expected, strict=True):
        assert np.array_equal(shown, matrix.astype(bool))


def test_infinite_results_are_possible_but_not_shown():
    ((shown, possible),) = measured(lambda a: torch.where(a == 0, 1.0, torch.inf), torch.ones(2, dtype=torch.float64))
    assert not shown.any()
    assert np.array_equal(possible, np.eye(2, dtype=bool))


def test_what_only_not_a_number_tells_apart_is_possible():
    ((shown, possible),) = measured(torch.isnan, x(2))
    assert not possible[~np.eye(2, dtype=bool)].any()
    assert possible.diagonal().all()
    assert not shown.any()


def test_an_output_whose_size_depends_on_an_element_depends_on_it():
    ((shown, _),) = measured(torch.nonzero, torch.ones(3, dtype=torch.float64))
    assert shown.all()


def test_derivatives():
    sample = Sample("add", 0, lambda a, b: a[:2] * b, [x(3), x(2)], (TENSOR, TENSOR), {})
    found = oracle.start(sample, 100)
    slopes = oracle.differentiate(sample, found, 100)
    assert np.array_equal(slopes[0], np.eye(3, 2, dtype=bool))
    assert np.array_equal(slopes[1], np.eye(2, dtype=bool))


class Claims(torch.autograd.Function):
    """Claims a derivative that is not there."""

    @staticmethod
    def forward(ctx, a):
        return torch.ones_like(a)

    @staticmethod
    def backward(ctx, slope):
        return slope


def test_a_derivative_of_what_does_not_change_is_not_believed():
    sample = Sample("add", 0, Claims.apply, [x(2)], (TENSOR,), {})
    found = oracle.start(sample, 100)
    slopes = oracle.differentiate(sample, found, 100)
    assert slopes[0].diagonal().all()
    oracle.confirm(sample, found, slopes)
    assert not found[0].shown.any()


def test_samples_differ_in_kind_before_size():
    picked = chosen("sum", 3)
    assert len({sample.kind for sample in picked}) == 3
    assert [s.number for s in picked] == [s.number for s in chosen("sum", 3)]


def test_values_are_drawn_anew_with_the_same_form():
    first, second = (next(iter(samples("add", seed))) for seed in (0, 1))
    assert first.form == second.form
    assert not torch.equal(first.tensors[0], second.tensors[0])


def test_the_database_is_all_there():
    assert len(database()) > 600
