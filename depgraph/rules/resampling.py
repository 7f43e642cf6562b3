"""Resampling on a grid, and pooling by windows that are drawn at random.

Reads: interpolation   out[n, c, t] ← x[n, c, the places whose weight for t is not 0]
       grid sampling   out[n, c, p] ← grid[n, p, :] and x[n, c, anywhere]; by a known grid, the places with a weight
       random windows  out[n, c, any] ← x[n, c, anywhere] and what the windows of the channel are drawn from
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from depgraph.rules.call import Call, Read
from depgraph.rules.convolution import stretches
from depgraph.rules.elementwise import outputs
from depgraph.rules.registry import rule
from depgraph.rules.values import Value


@rule("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa", "_upsample_lanczos2d_aa")
def smooth(call: Call, x: Value, size: Any, align_corners: bool, *scales: Any) -> Value:
    """Interpolate with filters as wide as the scale: the axes are independent, and so asked for their weights."""
    op = getattr(torch.ops.aten, call.op._schema.name.partition("::")[2]).default
    if call.op._overloadname == "vec":
        scales = tuple(scales[0] or (None, None))
    patterns = []
    for axis, (n, m) in enumerate(zip(x.shape[-2:], call.shape[-2:], strict=True)):
        # The other axis is kept at length 2: at length 1 the kernels mistake the memory format.
        unit = torch.eye(n, dtype=torch.float64)[:, None, :, None].repeat(1, 1, 1, 2)
        given = [s if a == axis else None for a, s in enumerate(scales)]
        if axis == 0:
            weights = op(unit, [m, 2], align_corners, *given)[:, 0, :, 0]
        else:
            weights = op(unit.transpose(2, 3).contiguous(), [2, m], align_corners, *given)[:, 0, 0, :]
        patterns.append(weights.t() != 0)
    return call.result(call.nodes(call.shape, stretches(x.codes, patterns)[0]))


@rule("grid_sampler_2d", "grid_sampler_3d", "grid_sampler")
def grid_sampler(call: Call, x: Value, grid: Value, *how: Any) -> Value:
    """Sample every channel where the grid says."""
    axes = x.ndim - 2
    if not grid.is_known or not x.codes.numel():
        return call.result(call.nodes(call.shape, Read(grid.codes.unsqueeze(1), 1), anywhere(x, axes)))
    place = torch.zeros((*call.shape[:1], *call.shape[2:], 1), dtype=torch.int64)
    live = torch.ones_like(place, dtype=torch.bool)
    for axis, size in enumerate(x.shape[2:]):
        # The last axis of the data comes first in the grid.
        spots, weighs = taps(grid.values()[..., axes - 1 - axis], size, axis, axes, how)
        place = (place.unsqueeze(-1) * size + spots.unsqueeze(-2)).flatten(-2)
        live = (live.unsqueeze(-1) & weighs.unsqueeze(-2)).flatten(-2)
    codes = x.codes[:, :1] if x.codes.stride(1) == 0 else x.codes
    example = torch.arange(len(place)).reshape(-1, *(1,) * (place.ndim - 1))
    found = codes.flatten(2).transpose(1, 2)[example, place].movedim(-1, 1)
    return call.result(call.nodes(call.shape, Read(found, 1, ~live.unsqueeze(1))))


def taps(points: Tensor, size: int, axis: int, axes: int, how: tuple[Any, ...]) -> tuple[Tensor, Tensor]:
    """Return, for points along an axis, the places with a weight and which of them are any: both (*points, most).

    The axes are independent: along one, the operator is asked for the weights, the others held at the middle of three.
    """
    given = torch.zeros((*points.shape, size), dtype=torch.bool)
    shape = [size if a == axis else 1 for a in range(axes)]
    for dtype in (torch.float64, torch.float32):  # what rounding leaves over is a weight, in whatever precision it is
        unit = torch.eye(size, dtype=dtype).reshape(1, size, *shape)
        unit = unit.expand(1, size, *[size if a == axis else 3 for a in range(axes)]).contiguous()
        grid = torch.zeros(1, points.numel(), *(1,) * (axes - 1), axes, dtype=dtype)
        grid[..., axes - 1 - axis] = points.to(dtype).reshape(grid.shape[:-1])
        weights = torch.ops.aten.grid_sampler(unit, grid, *how)[0].reshape(size, *points.shape).movedim(0, -1)
        given |= weights != 0
    most = max(1, int(given.sum(-1).max()) if points.numel() else 1)
    weighs, spots = given.int().topk(most, -1)
    return spots, weighs > 0


@rule("fractional_max_pool2d", "fractional_max_pool3d")
def fractional_max_pool(call: Call, x: Value, kernel: Any, size: Any, samples: Value) -> Any:
    """Read a channel and what its windows are drawn from."""
    axes = int(call.op._schema.name.partition("pool")[2][0])
    drawn = samples.codes if x.ndim == axes + 2 else samples.codes[0]
    reads = [anywhere(x, axes), Read(drawn[(...,) + (None,) * axes + (slice(None),)], 1)]
    return outputs(call, call.nodes(call.shape, *reads))


def anywhere(x: Value, axes: int) -> Read:
    """Read all along the last axes, whatever the place along as many output axes."""
    codes: Tensor = x.codes[(slice(None),) * (x.ndim - axes) + (None,) * axes]
    return Read(codes, axes)
