"""Interpolation reads the places that have a weight; sampling by a grid may read any."""

import torch
import torch.nn.functional as F

from tests.jacobian import check

R = torch.randn


def test_resampling():
    check(
        lambda x, y: {
            "nearest": F.interpolate(x, scale_factor=2),
            "linear": F.interpolate(x, size=7, mode="linear"),
            "aligned": F.interpolate(x, size=7, mode="linear", align_corners=True),
            "bilinear": F.interpolate(y, scale_factor=2, mode="bilinear"),
            "unfold": F.unfold(y, (2, 2)),
            "fold": F.fold(F.unfold(y, (2, 2)).sin(), (2, 3), (2, 2)),
            "shuffle": F.pixel_shuffle(y.expand(1, 4, 2, 3), 2),
        },
        *(R(1, 2, 4), R(1, 1, 2, 3)),
    )


def test_a_sampling_grid_is_read():
    check(lambda x, g: F.grid_sample(x, g.tanh(), align_corners=False), R(1, 1, 3, 3), R(1, 2, 2, 2), draws=30)


def test_smooth_resampling():
    check(
        lambda x: {
            "bicubic": F.interpolate(x, size=(2, 3), mode="bicubic"),
            "antialiased": F.interpolate(x, size=(2, 2), mode="bilinear", antialias=True),
            "area": F.interpolate(x, size=(2, 2), mode="area"),
        },
        R(1, 1, 3, 4),
    )
