"""Where a tensor lies in memory, and how a view of it is put back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, fx

from depgraph.tracing.private import address

aten = torch.ops.aten

#: An operator, and its arguments.
Call = tuple[Any, tuple[Any, ...]]


class Geometry(NamedTuple):
    """Which elements of a memory a tensor shows, and how."""

    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    conjugated: bool = False
    negated: bool = False

    @classmethod
    def of(cls, tensor: Tensor) -> Geometry:
        """Return that of a tensor; of one without strides (sparse, quantised) only its shape and dtype."""
        if not has_strides(tensor):
            return cls(0, tuple(tensor.shape), (), tensor.dtype)
        return cls(
            int(tensor.storage_offset()), tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.is_conj(),
            tensor.is_neg(),
        )  # fmt: skip

    @property
    def plain(self) -> bool:
        """Whether the elements are those that lie in memory, neither conjugated nor negated."""
        return not self.conjugated and not self.negated

    @property
    def elements(self) -> int:
        """Number of elements."""
        return torch.Size(self.size).numel()

    @property
    def overlaps(self) -> bool:
        """Whether some element of memory may be shown more than once."""
        extent = 0
        for step, count in sorted((s, n) for s, n in zip(self.stride, self.size, strict=False) if n > 1):
            if step <= extent:
                return True
            extent += (count - 1) * step
        return False

    def order(self) -> tuple[int, ...] | None:
        """Return the axes from the slowest to the fastest if the elements fill one stretch of memory, each once."""
        axes = sorted(range(len(self.size)), key=lambda a: (self.stride[a], self.size[a] != 1), reverse=True)
        expected = 1
        for axis in reversed(axes):
            if self.size[axis] != 1 and self.stride[axis] != expected:
                return None
            expected *= self.size[axis]
        return tuple(axes)


def has_strides(tensor: Tensor) -> bool:
    """Return whether the elements of a tensor lie in memory at regular distances."""
    return tensor.layout is torch.strided and not tensor.is_quantized


def memory_of(tensor: Tensor) -> tuple[int, Any]:
    """Return what tells the memory of a tensor from others, and its owner; of one without storage the tensor itself."""
    try:
        storage = tensor.untyped_storage()
    except (NotImplementedError, RuntimeError, ValueError):
        return id(tensor), tensor
    return address(storage), storage


#: How a new value of a view becomes one of what it is a view of: from the node and the new node to a call.
INVERSES: dict[Any, Callable[..., Call]] = {}


def _inverse(*operators: Any) -> Callable[[Callable[..., Call]], Callable[..., Call]]:
    def register(function: Callable[..., Call]) -> Callable[..., Call]:
        INVERSES.update(dict.fromkeys(operators, function))
        return function

    return register


@_inverse(aten.select.int)
def _(parent: fx.Node, new: fx.Node, axis: int, index: int) -> Call:
    return aten.select_scatter.default, (parent, new, axis, index)


@_inverse(aten.slice.Tensor)
def _(parent: fx.Node, new: fx.Node, *where: Any) -> Call:
    return aten.slice_scatter.default, (parent, new, *where)


@_inverse(aten.diagonal.default)
def _(parent: fx.Node, new: fx.Node, *where: Any) -> Call:
    return aten.diagonal_scatter.default, (parent, new, *where)


@_inverse(
    aten.view.default, aten.reshape.default, aten._unsafe_view.default, aten._reshape_alias.default,
    aten.unsqueeze.default, aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims,
    aten.flatten.using_ints, aten.unflatten.int, aten.view_as.default,
)  # fmt: skip
def _(parent: fx.Node, new: fx.Node, *_: Any) -> Call:
    return aten.reshape.default, (new, list(parent.meta["val"].shape))


@_inverse(aten.transpose.int)
def _(parent: fx.Node, new: fx.Node, one: int, other: int) -> Call:
    return aten.transpose.int, (new, one, other)


@_inverse(aten.t.default)
def _(parent: fx.Node, new: fx.Node) -> Call:
    return aten.t.default, (new,)


@_inverse(aten.permute.default)
def _(parent: fx.Node, new: fx.Node, axes: list[int]) -> Call:
    back = sorted(range(len(axes)), key=lambda k: axes[k] % len(axes))
    return aten.permute.default, (new, back)


@_inverse(aten.alias.default, aten.detach.default, aten.lift_fresh.default)
def _(parent: fx.Node, new: fx.Node) -> Call:
    return aten.alias.default, (new,)


@_inverse(aten.view_as_real.default)
def _(parent: fx.Node, new: fx.Node) -> Call:
    return aten.view_as_complex.default, (new,)


@_inverse(aten.view_as_complex.default)
def _(parent: fx.Node, new: fx.Node) -> Call:
    return aten.view_as_real.default, (new,)


@_inverse(aten._conj.default)
def _(parent: fx.Node, new: fx.Node) -> Call:
    return aten._conj.default, (new,)


@_inverse(aten._neg_view.default)
def _(parent: fx.Node, new: fx.Node) -> Call:
    return aten._neg_view.default, (new,)


@_inverse(aten.view.dtype)
def _(parent: fx.Node, new: fx.Node, *_: Any) -> Call:
    return aten.view.dtype, (new, parent.meta["val"].dtype)


def piece(whole: Geometry, part: Geometry) -> Call | None:
    """Return the slice or the selection by which one view comes from another, None where it is neither."""
    offset = part.offset - whole.offset
    if part.dtype != whole.dtype or part[4:] != whole[4:] or offset < 0:
        return None
    if len(part.size) == len(whole.size):
        differ = [a for a, (p, w) in enumerate(zip(part.size, whole.size, strict=True)) if p != w]
        if part.stride != whole.stride or len(differ) > 1:
            return None
        axis = differ[0] if differ else 0
        step = whole.stride[axis] if whole.stride else 0
        if not differ:
            return (aten.alias.default, ()) if not offset else None
        start, rest = divmod(offset, step) if step else (0, offset)
        fits = not rest and start + part.size[axis] <= whole.size[axis]
        return (aten.slice.Tensor, (axis, start, start + part.size[axis])) if fits else None
    if len(part.size) == len(whole.size) - 1:
        for axis, (size, step) in enumerate(zip(whole.size, whole.stride, strict=True)):
            without = [tuple(x for a, x in enumerate(xs) if a != axis) for xs in (whole.size, whole.stride)]
            if without == [part.size, part.stride] and step and not offset % step and offset // step < size:
                return aten.select.int, (axis, offset // step)
    return None
