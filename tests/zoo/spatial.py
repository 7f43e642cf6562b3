"""Convolutions, pooling, padding, and norms over places."""

from __future__ import annotations

import torch
from torch import nn

from tests.zoo.case import Apply, Cases, normal

UNPOOLED = "where a maximum goes back to depends on where it came from: it may be anywhere"
WINDOWS = "where its windows lie is drawn at random, so each may be anywhere"


def add_spatial(cases: Cases) -> None:
    """Add them, in one to three dimensions."""
    for d in (1, 2, 3):
        _add_in_dimensions(cases, d)
    cases.add("Conv1d, strided", normal(2, 4, 9), init=(4, 4, 3), padding=1, groups=2, stride=2, dilation=2)
    cases.add("Conv1d, same", normal(1, 2, 7), init=(2, 2, 4), padding="same")
    cases.add("Conv1d, circular", normal(1, 2, 6), init=(2, 2, 3), padding=1, padding_mode="circular")
    cases.add("Conv1d, reflecting", normal(1, 2, 6), init=(2, 2, 3), padding=1, padding_mode="reflect")
    cases.add("Conv1d, replicating", normal(1, 2, 6), init=(2, 2, 3), padding=2, padding_mode="replicate")
    cases.add("Conv2d, without a batch", normal(2, 4, 5), init=(2, 4, (3, 2)), stride=(1, 2), padding=(1, 0))
    cases.add("ConvTranspose1d, without a batch", normal(2, 4), init=(2, 4, 3))
    cases.add("ConvTranspose2d, dilated", normal(1, 2, 3, 3), init=(2, 2, 3), stride=2, dilation=2, padding=1)
    cases.add("MaxPool1d, dilated", normal(1, 2, 8), init=(2,), dilation=2, stride=1)
    cases.add("FractionalMaxPool2d", normal(1, 1, 6, 6), init=(2,), output_size=3, reason=WINDOWS)
    cases.add("FractionalMaxPool3d", normal(1, 1, 4, 4, 4), init=(2,), output_size=2, reason=WINDOWS)
    cases.add("Fold", normal(1, 4, 9), init=((4, 4), 2))
    cases.add("Unfold", normal(1, 1, 3, 3), init=(2,), padding=1)
    cases.add("PixelShuffle", normal(1, 4, 2, 2), init=(2,))
    cases.add("PixelUnshuffle", normal(1, 1, 4, 4), init=(2,))
    cases.add("ChannelShuffle", normal(1, 4, 2, 2), init=(2,))
    cases.add("Upsample, nearest", normal(1, 1, 3, 3), scale_factor=2)
    cases.add("Upsample, linear", normal(1, 1, 4), size=7, mode="linear", align_corners=True)
    cases.add("Upsample, bilinear", normal(1, 1, 3, 3), scale_factor=2, mode="bilinear")
    cases.add("Upsample, bicubic", normal(1, 1, 4, 4), scale_factor=2, mode="bicubic")
    cases.add("Upsample, trilinear", normal(1, 1, 2, 2, 2), scale_factor=2, mode="trilinear")
    cases.add("UpsamplingBilinear2d", normal(1, 1, 3, 3), scale_factor=2)
    cases.add("UpsamplingNearest2d", normal(1, 1, 3, 3), scale_factor=2)


def _add_in_dimensions(cases: Cases, d: int) -> None:
    small, even = normal(1, 2, *(3,) * d), normal(1, 2, *(4,) * d)
    uneven = normal(1, 2, *((7,), (7, 5), (3, 3, 3))[d - 1])
    cases.add(f"Conv{d}d", uneven, init=(2, 2, 2), padding=1, groups=2)
    cases.add(f"ConvTranspose{d}d", small, init=(2, 2, 2), stride=2, groups=2)
    cases.add(f"LazyConv{d}d", small, init=(2, 2))
    cases.add(f"LazyConvTranspose{d}d", small, init=(2, 2))
    cases.add(f"MaxPool{d}d", uneven, init=(2,), ceil_mode=True)
    cases.add(f"AvgPool{d}d", uneven, init=(2,), ceil_mode=True)
    cases.add(f"LPPool{d}d", even, init=(2, 2))
    cases.add(f"AdaptiveAvgPool{d}d", uneven, init=(2,))
    cases.add(f"AdaptiveMaxPool{d}d", uneven, init=(2,))
    cases.made(f"MaxUnpool{d}d", lambda: _unpooling(d), normal(1, 1, *(4,) * d), reason=UNPOOLED)
    cases.add(f"BatchNorm{d}d", small, init=(2,))
    cases.add(f"BatchNorm{d}d, in training", small, init=(2,), train=True)
    cases.add(f"LazyBatchNorm{d}d", small)
    cases.add(f"InstanceNorm{d}d", small, init=(2,), affine=True)
    cases.add(f"LazyInstanceNorm{d}d", small)
    cases.add(f"ReflectionPad{d}d", small, init=(1,))
    cases.add(f"ReplicationPad{d}d", small, init=(1,))
    cases.add(f"CircularPad{d}d", small, init=(1,))
    cases.add(f"ZeroPad{d}d", small, init=(1,))
    cases.add(f"ConstantPad{d}d", small, init=((1, -1) * d, 3.0))
    cases.add(f"Dropout{d}d, in training", normal(2, 2, *(2,) * d), train=True)


def _unpooling(d: int) -> nn.Module:
    def there_and_back(unpool: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return unpool(*getattr(nn.functional, f"max_pool{d}d")(x, 2, return_indices=True))

    return Apply(there_and_back, getattr(nn, f"MaxUnpool{d}d")(2))
