"""What is known of tensors, and keeping it thin."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from depgraph.rules.values import (
    FIRST,
    GENERIC,
    KNOWN,
    Value,
    compress,
    core,
    forget,
    generic,
    known,
    reshape,
    together,
    uniform,
)


@st.composite
def reshapes(draw):
    """Draw a tensor with some axes of stride 0 and a shape with as many elements."""
    primes = draw(st.lists(st.sampled_from([1, 1, 2, 2, 3]), min_size=0, max_size=5))

    def grouped(factors):
        shape = []
        for factor in factors:
            if shape and draw(st.booleans()):
                shape[-1] *= factor
            else:
                shape.append(factor)
        return shape

    before, after = grouped(primes), grouped(draw(st.permutations(primes)))
    stored = [1 if draw(st.booleans()) else size for size in before]
    tensor = torch.arange(torch.Size(stored).numel()).reshape(stored).expand(before)
    return tensor, after


@given(reshapes())
def test_reshaping_keeps_what_is_thin(case):
    tensor, shape = case
    found = reshape(tensor, shape)
    assert torch.equal(found, tensor.reshape(shape))
    assert core(found).numel() <= max(1, tensor.reshape(shape).numel())
    if core(tensor).numel() == 1:
        assert core(found).numel() == 1


@given(reshapes())
def test_compressing_finds_what_is_thin(case):
    tensor, _ = case
    found = compress(tensor.contiguous())
    assert torch.equal(found, tensor)
    assert core(found).numel() == core(tensor).numel()


@given(st.lists(reshapes(), min_size=1, max_size=1))
def test_uniform_tensors_take_the_memory_of_one(cases):
    ((tensor, _),) = cases
    found = uniform(7, tensor.shape)
    assert found.shape == tensor.shape
    assert core(found).numel() == min(1, found.numel())


def test_tensors_together():
    a = torch.arange(3)[:, None].expand(3, 4)
    b = torch.tensor([5]).expand(3, 1)
    found = together(a, b)
    assert [tuple(t.shape) for t in found] == [(3, 1), (3, 1)]
    assert together(a, torch.arange(4))[0].shape == (3, 4)


@pytest.mark.parametrize(
    ("codes", "values", "zero"),
    [
        ([KNOWN, KNOWN, GENERIC], [0.0, 2.0, 0.0], [True, False, False]),
        ([KNOWN, FIRST, GENERIC], None, [True, False, False]),
        ([FIRST, FIRST + 1, GENERIC], [0.0, 0.0, 0.0], None),
        ([KNOWN, KNOWN, FIRST], [1.0, -1.0, 0.0], None),
    ],
)
def test_known_zeros(codes, values, zero):
    value = Value(torch.tensor(codes), None if values is None else torch.tensor(values), torch.float32)
    assert value.zero is None if zero is None else value.zero.tolist() == zero


def test_what_is_known_of_a_value():
    table = known(torch.tensor([1.0, 0.0]))
    assert (table.is_known, table.any_known, table.is_constant, table.plain) == (True, True, True, False)
    weight = generic((2,), torch.float32)
    assert (weight.is_known, weight.any_known, weight.is_constant, weight.plain) == (False, False, True, True)
    data = Value(torch.tensor([KNOWN, FIRST]), None, torch.float32)
    assert (data.is_known, data.any_known, data.is_constant, data.plain) == (False, True, False, False)
    assert data.values().tolist() == [0.0, 0.0]
    nothing = Value(torch.zeros(0, dtype=torch.int64), None, torch.float32)
    assert (nothing.is_known, nothing.any_known, nothing.is_constant) == (True, False, True)


def test_forgetting_values():
    codes = torch.tensor([KNOWN, GENERIC, FIRST])[:, None].expand(3, 4)
    assert forget(codes)[:, 0].tolist() == [GENERIC, GENERIC, FIRST]
    assert forget(codes).stride()[1] == 0
    untouched = torch.tensor([GENERIC, FIRST])
    assert forget(untouched) is untouched
