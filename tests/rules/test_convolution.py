"""Convolution and pooling read a window, padding is not read."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.jacobian import check

R = torch.randn


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
def test_one_dimension():
    check(
        lambda x, w, b: {
            "plain": F.conv1d(x, w),
            "bias": F.conv1d(x, w, b),
            "stride": F.conv1d(x, w, stride=2),
            "padding": F.conv1d(x, w, b, padding=2, stride=2),
            "dilation": F.conv1d(x, w, dilation=2, padding=1),
            "same": F.conv1d(x, w, padding="same"),
            "same, even kernel": F.conv1d(x, w[..., :2], padding="same", dilation=3),
            "valid": F.conv1d(x, w, padding="valid"),
            "one example": F.conv1d(x[0], w, b, padding=1),
        },
        *(R(1, 2, 6), R(2, 2, 3), R(2)),
    )


@pytest.mark.parametrize("groups", [2, 4])
def test_groups(groups):
    check(
        lambda x, w, b: {
            "conv": F.conv1d(x, w, b, padding=1, groups=groups),
            "transposed": F.conv_transpose1d(x, w.transpose(0, 1).reshape(4, -1, 2), groups=groups),
        },
        *(R(1, 4, 4), R(4, 4 // groups, 2), R(4)),
    )


def test_two_and_three_dimensions():
    check(
        lambda x, w, y, v: {
            "2-d": F.conv2d(x, w, stride=(1, 2), padding=(1, 0), dilation=(1, 2)),
            "3-d": F.conv3d(y, v, padding=1),
            "2-d transposed": F.conv_transpose2d(x, w, stride=(2, 1), padding=(1, 0), output_padding=(1, 0)),
        },
        *(R(1, 1, 3, 6), R(1, 1, 2, 3), R(1, 1, 2, 2, 3), R(1, 1, 2, 1, 2)),
        draws=3,
    )


def test_transposed():
    check(
        lambda x, w, b: {
            "plain": F.conv_transpose1d(x, w, b),
            "stride": F.conv_transpose1d(x, w, stride=3),
            "padding": F.conv_transpose1d(x, w, b, stride=2, padding=1),
            "output padding": F.conv_transpose1d(x, w, stride=2, output_padding=1),
            "dilation": F.conv_transpose1d(x, w, dilation=2, padding=3),
            "one example": F.conv_transpose1d(x[0], w),
        },
        *(R(1, 2, 4), R(2, 2, 3), R(2)),
    )


@pytest.mark.parametrize("mode", ["zeros", "circular", "reflect", "replicate"])
def test_padding_modes(mode):
    check(nn.Conv1d(2, 2, 3, padding=2, padding_mode=mode), R(1, 2, 5))


def test_known_zeros_in_the_kernel():
    mask = torch.tensor([1.0, 1.0, 0.0]).double()
    square = torch.ones(3, 3).flatten().cumsum(0).lt(5).double().view(3, 3)
    check(
        lambda x, y, w, v: {
            "causal": F.conv1d(x, w * mask, padding=1),
            "fixed": F.conv1d(x, mask.expand(1, 2, 3), padding=1),
            "dilated": F.conv1d(x, mask.view(1, 1, 3).expand(2, 1, 3), dilation=2, groups=2),
            "raster": F.conv2d(y, v * square, padding=1),
            "transposed": F.conv_transpose1d(x, (w * mask).transpose(0, 1)),
        },
        *(R(1, 2, 5), R(1, 1, 3, 3), R(1, 2, 3), R(1, 1, 3, 3)),
        draws=3,
    )


def test_mean_pooling():
    check(
        lambda x, y: {
            "1-d": F.avg_pool1d(x, 2),
            "overlapping": F.avg_pool1d(x, 3, stride=1, padding=1),
            "ceil": F.avg_pool1d(x, 3, stride=2, ceil_mode=True),
            "2-d": F.avg_pool2d(y, (1, 2), stride=(1, 1)),
            "adaptive": F.adaptive_avg_pool1d(x, 4),
            "adaptive 2-d": F.adaptive_avg_pool2d(y, (2, 2)),
            "global": F.adaptive_avg_pool2d(y, 1),
            "power": F.lp_pool1d(x.exp(), 2.0, 2),
        },
        *(R(1, 2, 6), R(1, 1, 3, 4)),
    )


def test_maximum_pooling():
    check(
        lambda x, y: {
            "1-d": F.max_pool1d(x, 2),
            "padded": F.max_pool1d(x, 3, stride=2, padding=1),
            "dilated": F.max_pool1d(x, 2, stride=1, dilation=3),
            "ceil": F.max_pool2d(y, 2, ceil_mode=True),
            "with indices": F.max_pool2d(y, 2, return_indices=True)[0],
            "adaptive": F.adaptive_max_pool1d(x, 4),
        },
        *(R(1, 2, 6), R(1, 1, 3, 4)),
        draws=30,
    )
