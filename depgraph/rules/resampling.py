"""Resampling on a grid, and pooling by windows that are drawn at random.

Reads: interpolation   out[n, c, t] ← x[n, c, the places whose weight for t is not 0]
       grid sampling   out[n, c, p] ← grid[n, p, :] and x[n, c, anywhere]
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
def grid_sampler(call: Call, x: Value, grid: Value, *_: Any) -> Value:
    """Sample every channel where the grid says."""
    return call.result(call.nodes(call.shape, Read(grid.codes.unsqueeze(1), 1), anywhere(x, x.ndim - 2)))


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
