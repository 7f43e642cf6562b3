"""Codes: which node each element of a tensor comes from, one code an element.

=================  =====================================================================================
``KNOWN`` (0)      a known value: it comes from buffers, literals and their arithmetic alone
``GENERIC`` (1)    a constant of which no more than a range is known: it comes from parameters
``FIRST + v``      it was produced by node v
=================  =====================================================================================

An operation that only moves data moves codes the same way, so it is followed by calling it on the codes. Zero means
known so that whatever such an operation fills in (padding, the other half of ``tril``) is a known zero by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

KNOWN, GENERIC, FIRST = 0, 1, 2


def uniform(code: int, shape: Sequence[int]) -> Tensor:
    """Return the same code for every element, in the memory of one."""
    return torch.tensor(code).expand(tuple(shape))


def forget(codes: Tensor) -> Tensor:
    """Return codes with KNOWN made GENERIC: constants whose values are not carried along."""
    thin = core(codes)
    return torch.where(thin == KNOWN, GENERIC, thin).expand(codes.shape) if bool((thin == KNOWN).any()) else codes


def core(tensor: Tensor) -> Tensor:
    """Return the tensor with every axis of stride 0 cut to length 1."""
    for axis, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if stride == 0 and size > 1:
            tensor = tensor.narrow(axis, 0, 1)
    return tensor


def together(*tensors: Tensor) -> list[Tensor]:
    """Broadcast tensors against each other, then cut every axis along which none of them differs to length 1."""
    tensors = tuple(torch.broadcast_tensors(*tensors))
    for axis, size in enumerate(tensors[0].shape):
        if size > 1 and all(t.stride(axis) == 0 for t in tensors):
            tensors = tuple(t.narrow(axis, 0, 1) for t in tensors)
    return list(tensors)


def compress(codes: Tensor) -> Tensor:
    """Return the same codes with stride 0 along every axis along which nothing differs."""
    shape = codes.shape
    if not codes.numel():
        return codes
    codes = core(codes)
    for axis, size in enumerate(codes.shape):
        if size > 1:
            first = codes.narrow(axis, 0, 1)
            if torch.equal(first, codes.narrow(axis, size - 1, 1)) and bool((codes == first).all()):
                codes = first
    return codes.expand(shape)


def reshape(tensor: Tensor, shape: Sequence[int]) -> Tensor:
    """Reshape without giving up stride 0 where the whole group of axes that merge or split has it."""
    shape = tuple(shape)
    if tensor.numel() == 0:
        return tensor.reshape(shape)
    sizes: list[int] = []
    for old, new in groups(tuple(tensor.shape), shape):
        if all(tensor.stride(axis) == 0 or tensor.shape[axis] == 1 for axis in old):
            for axis in old:
                tensor = tensor.narrow(axis, 0, 1)
            sizes.extend(1 for _ in new)
        else:
            sizes.extend(shape[axis] for axis in new)
    return tensor.reshape(sizes).expand(shape)


def groups(old: tuple[int, ...], new: tuple[int, ...]) -> Iterator[tuple[range, range]]:
    """Split a reshape into the smallest groups of neighbouring axes that hold the same number of elements."""
    i = j = 0
    while i < len(old) or j < len(new):
        first, left, right = (i, j), 1, 1
        if i < len(old):
            left, i = old[i], i + 1
        if j < len(new):
            right, j = new[j], j + 1
        while left != right:
            if left < right:
                left, i = left * old[i], i + 1
            else:
                right, j = right * new[j], j + 1
        yield range(first[0], i), range(first[1], j)
