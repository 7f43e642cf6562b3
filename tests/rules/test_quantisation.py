"""Rounding to few numbers reads each element, and the scale and the zero point that go with it."""

import pytest
import torch

import depgraph
from tests.jacobian import Apply

R = torch.randn


def pairs(function, *args, source=0):
    """Return which elements of an argument the first output reads; there must be no warning."""
    axes = {k: tuple(range(a.ndim)) for k, a in enumerate(args)}
    result = function(*args)
    graph = depgraph.trace(Apply(function), args, positions=axes | {"output": tuple(range(result.ndim))})
    assert not graph.warnings
    return torch.from_numpy(depgraph.path_lengths(graph, source) >= 0)


CHANNELS, ZEROS = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 1, 2])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127),
        lambda x: torch.fake_quantize_per_tensor_affine(x, torch.tensor(0.1), torch.tensor(0), -128, 127),
        lambda x: torch.fake_quantize_per_channel_affine(x, CHANNELS, ZEROS.int(), 1, -128, 127),
        lambda x: torch.ops.aten.fake_quantize_per_tensor_affine_cachemask(x, 0.1, 0, -128, 127)[0],
        lambda x: torch.ops.aten._fake_quantize_learnable_per_tensor_affine(
            x, torch.tensor([0.1]), torch.tensor([0.0]), -128, 127
        ),
    ],
)
def test_elements_by_themselves(function):
    assert torch.equal(pairs(function, R(2, 3)), torch.eye(6).bool())


def test_a_scale_is_read():
    x, zero = R(2, 3), torch.tensor(0)
    one = pairs(lambda x, s: torch.fake_quantize_per_tensor_affine(x, s, zero, -8, 7), x, torch.tensor(0.1), source=1)
    assert one.all()
    each = pairs(
        lambda x, s: torch.fake_quantize_per_channel_affine(x, s, ZEROS.int(), 1, -8, 7), x, CHANNELS, source=1
    )
    assert torch.equal(each, torch.eye(3).bool().repeat(1, 2))


def test_operators_of_exported_quantised_models():
    pytest.importorskip("torch.ao.quantization.fx._decomposed")
    ops = torch.ops.quantized_decomposed
    by_tensor = (0.1, 0, -128, 127, torch.int8)
    by_channel = (CHANNELS, ZEROS, 1, -128, 127, torch.int8)

    def dynamic(x):
        scale, zero = ops.choose_qparams_per_token_asymmetric(x, torch.int8)
        small = ops.quantize_per_token(x, scale, zero, -128, 127, torch.int8)
        return ops.dequantize_per_token(small, scale, zero, -128, 127, torch.int8, torch.float32)

    def whole(x):
        scale, zero = ops.choose_qparams.tensor(x, -128, 127, 1e-6, torch.int8)
        return ops.quantize_per_tensor.tensor(x, scale, zero, -128, 127, torch.int8)

    alone, rows = torch.eye(6).bool(), torch.block_diag(torch.ones(3, 3), torch.ones(3, 3)).bool()
    x = R(2, 3)
    expected = [
        (lambda x: ops.dequantize_per_tensor(ops.quantize_per_tensor(x, *by_tensor), *by_tensor), alone),
        (lambda x: ops.dequantize_per_channel(ops.quantize_per_channel(x, *by_channel), *by_channel), alone),
        (dynamic, rows),
        (whole, torch.ones(6, 6).bool()),
    ]
    for function, pattern in expected:
        assert torch.equal(pairs(function, x), pattern)


def test_groups_of_the_last_axis():
    pytest.importorskip("torch.ao.quantization.fx._decomposed")
    ops = torch.ops.quantized_decomposed
    scales, zeros = torch.tensor([[0.1, 0.2]]), torch.zeros(1, 2)
    found = pairs(
        lambda x, s: ops.quantize_per_channel_group(x, s, zeros, -8, 7, torch.int8, 2), R(1, 4), scales, source=1
    )
    assert torch.equal(found, torch.eye(2).bool().repeat_interleave(2, 1))
