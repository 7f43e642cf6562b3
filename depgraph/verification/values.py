"""Other values for inputs and parameters, such that the model still takes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

Kind = Literal["exchange", "step", "leap", "nudge"]
KINDS: tuple[Kind, ...] = ("exchange", "step", "leap")
_SIZES: dict[Kind, float] = {"exchange": 1.0, "step": 1.0, "leap": 3.0, "nudge": 1e-4}


class Draws:
    """Random numbers that are the same every time."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, like: Tensor) -> Tensor:
        """Return standard normal numbers of a tensor's shape and dtype."""
        dtype = like.dtype if like.dtype in (torch.complex64, torch.complex128) else torch.float64
        return torch.randn(like.shape, generator=self.generator, dtype=dtype).to(like.device, like.dtype)

    def uniform(self, like: Tensor, stop: int) -> Tensor:
        """Return whole numbers from 0 to ``stop - 1`` in a tensor's shape."""
        return torch.randint(stop, like.shape, generator=self.generator).to(like.device)

    def parameter(self, tensor: Tensor) -> Tensor:
        """Return generic numbers, of a size that keeps activations in the range where nothing saturates."""
        if not is_real_or_complex(tensor) or tensor.layout != torch.strided:
            return tensor
        fan_in = math.prod(tensor.shape[1:]) if tensor.ndim > 1 else 1
        return self.normal(tensor) / math.sqrt(max(fan_in, 1))

    def argument(self, tensor: Tensor, kind: Kind, special: Sequence[int] = ()) -> Tensor:
        """Return other values for a whole argument: its own in another order, or others in their range.

        Parameters
        ----------
        tensor : torch.Tensor
        kind : {"exchange", "step", "leap", "nudge"}
        special : sequence of int
            Whole numbers that may mean more than others; about half of what is drawn are of them.
        """
        if not tensor.numel():
            return tensor
        if kind == "exchange":
            order = torch.randperm(tensor.numel(), generator=self.generator).to(tensor.device)
            return tensor.reshape(-1)[order].reshape(tensor.shape)
        if is_real_or_complex(tensor):
            mean, scale = _moments(tensor)
            return torch.where(tensor.isfinite(), mean + scale * self.normal(tensor), tensor)
        if tensor.dtype == torch.bool:
            return self.uniform(tensor if kind != "leap" else tensor.new_zeros(()), 2).bool().expand(tensor.shape)
        low, span = _range(tensor)
        drawn = self.uniform(tensor, span) + low
        if special:
            drawn = torch.where(self.uniform(tensor, 2).bool(), self._one_of(special, tensor), drawn)
        return drawn.to(tensor.dtype)

    def _one_of(self, numbers: Sequence[int], like: Tensor) -> Tensor:
        return torch.tensor(numbers, device=like.device)[self.uniform(like, len(numbers))]

    def special(self, block: Tensor, numbers: Sequence[int], which: int) -> Tensor | None:
        """Return one of some whole numbers for all of a part of an argument, the next one for what is that already."""
        first, second = (numbers[(which + step) % len(numbers)] for step in (0, 1))
        found = torch.full_like(block, first)
        found = torch.where(found == block, torch.full_like(block, second), found)
        return None if bool((found == block).any()) else found

    def other(self, block: Tensor, whole: Tensor, kind: Kind) -> Tensor | None:
        """Return other values for a part of an argument, all of them different; None where there are none.

        Parameters
        ----------
        block, whole : tensor
            The part, and the argument that it is a part of.
        kind : {"exchange", "step", "leap", "nudge"}
            Values found elsewhere in the argument; about as far away as those are from each other; further; hardly.
        """
        moved = self._moved(block, whole, kind)
        if moved is None or kind != "exchange" or block.dtype == torch.bool:
            return moved
        found = whole.reshape(-1)[self.uniform(block, whole.numel())]
        return torch.where(found == block, moved, found)

    def _moved(self, block: Tensor, whole: Tensor, kind: Kind) -> Tensor | None:
        if is_real_or_complex(block):
            return block + _SIZES[kind] * _moments(whole)[1] * self.normal(block)
        if kind == "nudge":
            return None
        if block.dtype == torch.bool:
            flips = self.uniform(block, 2).bool() if kind == "leap" else torch.ones_like(block)
            return block ^ flips if bool(flips.any()) else ~block
        low, span = _range(whole)
        if span == 1:  # what else it could be is anybody's guess
            return block + 1 if kind != "leap" else block - 1
        return ((block.long() - low + 1 + self.uniform(block, span - 1)) % span + low).to(block.dtype)


def widened(tensor: Tensor, dtype: torch.dtype | None) -> Tensor:
    """Return a tensor of real or complex numbers in another precision; others, and all for None, as they are."""
    if dtype is None:
        return tensor
    if tensor.is_complex():
        return tensor.to(torch.complex128 if dtype == torch.float64 else torch.complex64)
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


def dense(tensor: Tensor) -> Tensor:
    """Return a tensor with all its elements, the zeros that a sparse one leaves out included."""
    return tensor if tensor.layout == torch.strided else tensor.to_dense()


def laid_out(tensor: Tensor, like: Tensor) -> Tensor:
    """Return a dense tensor in the layout of another one; what is zero is left out of a sparse one."""
    if like.layout == torch.strided:
        return tensor
    if like.layout == torch.sparse_coo:
        return tensor.to_sparse(like.sparse_dim())
    if like.layout in (torch.sparse_bsr, torch.sparse_bsc):
        blocks = like.values().shape
        return tensor.to_sparse(layout=like.layout, blocksize=(blocks[like.ndim - 1], blocks[like.ndim]))
    return tensor.to_sparse(layout=like.layout, dense_dim=like.dense_dim())


def is_real_or_complex(tensor: Tensor) -> bool:
    """Return whether a tensor holds neither whole numbers nor truth values."""
    return tensor.is_floating_point() or tensor.is_complex()


def _moments(tensor: Tensor) -> tuple[Tensor, float]:
    """Return the mean and the standard deviation of what is finite; 1 where nothing differs."""
    finite = tensor[tensor.isfinite()]
    wide = finite.to(torch.complex128 if finite.is_complex() else torch.float64)
    scale = float(wide.std(correction=0)) if wide.numel() else 0.0
    mean = wide.mean() if wide.numel() else wide.new_zeros(())
    return mean.to(tensor.dtype), scale or 1.0


def _range(tensor: Tensor) -> tuple[int, int]:
    low = int(tensor.min())
    return low, int(tensor.max()) - low + 1
