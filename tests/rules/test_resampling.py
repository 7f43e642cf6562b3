"""Interpolation reads the places that have a weight; sampling by an unknown grid may read any."""

import pytest
import torch
import torch.nn.functional as F

import depgraph
from tests.jacobian import Apply, check

R = torch.randn
SMOOTH = {"mode": "bilinear", "antialias": True}


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


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_a_known_grid_says_what_is_sampled(padding):
    plane, space = R(2, 3, 2, 2).double() * 0.8, R(1, 2, 2, 1, 3).double() * 0.8
    corners = torch.tensor([[[[-1.0, -1.0], [0.0, 0.0], [1.0, 1.0], [1.5, -3.0]]]]).double()
    turned = F.affine_grid(torch.tensor([[[0.0, -1.0, 0.0], [1.0, 0.0, 0.0]]]).double(), [1, 1, 4, 4], False)

    def sampled(x, grid, mode="bilinear", aligned=False):
        return F.grid_sample(x, grid, mode, padding, aligned)

    check(
        lambda x, y: {
            "bilinear": sampled(x, plane),
            "aligned": sampled(x, plane, aligned=True),
            "nearest": sampled(x, plane, "nearest"),
            "bicubic": sampled(x, plane, "bicubic"),
            "corners": sampled(x[:1], corners),
            "corners aligned": sampled(x[:1], corners, aligned=True),
            "corners nearest": sampled(x[:1], corners, "nearest", True),
            "turned": sampled(x[:1], turned),
            "space": sampled(y, space),
            "space nearest": sampled(y, space, "nearest"),
        },
        *(R(2, 2, 4, 3), R(1, 1, 3, 2, 4)),
    )


@pytest.mark.parametrize("size", [7, 100])
def test_sampling_where_the_pixels_are_reads_at_most_their_neighbours(size):
    # Where a pixel is comes out of single precision a little aside: what that leaves to a neighbour is a weight.
    grid = F.affine_grid(torch.eye(2, 3)[None], [1, 1, 2, size], align_corners=False)
    graph = depgraph.trace(
        Apply(lambda x: F.grid_sample(x, grid, align_corners=False)),
        (R(1, 3, 2, size),),
        positions={0: 3, "output": 3},
    )
    read = torch.from_numpy(depgraph.path_lengths(graph) >= 0)
    weights = F.grid_sample(torch.eye(size)[None, :, None].expand(1, size, 2, size), grid, align_corners=False)
    assert read[weights[0, :, 0] != 0].all()
    assert not (read.tril(-2) | read.triu(2)).any()


def test_smooth_resampling():
    check(
        lambda x: {
            "bicubic": F.interpolate(x, size=(2, 3), mode="bicubic"),
            "antialiased": F.interpolate(x, size=(2, 2), mode="bilinear", antialias=True),
            "antialiased and wider": F.interpolate(x, size=(9, 7), **SMOOTH),
            "antialiased cubes": F.interpolate(x, size=(2, 3), mode="bicubic", antialias=True),
            "area": F.interpolate(x, size=(2, 2), mode="area"),
        },
        R(1, 1, 3, 4),
    )
