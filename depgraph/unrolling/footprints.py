"""From the views that say what is read to sets of nodes: one row an output element, equal rows found."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from depgraph.dag.runs import BoolArray, IntArray, Runs, in_order_of_first, offsets, stack
from depgraph.rules.call import Read
from depgraph.rules.values import FIRST, GENERIC

Array = npt.NDArray[Any]

CHUNK = 1 << 22  # elements looked at in one go: what bounds memory when a mask has n² elements
_MASKS = 4


@dataclass(frozen=True, eq=False)
class Footprint:
    """The sets that the elements of an output read of one argument.

    Attributes
    ----------
    labels : int64 array
        Equal exactly where the sets are, -1 where nothing is read; broadcasts against the output's shape.
    sets : Runs or None
        One row an element of ``labels``; None where each set is the single node ``labels``.
    generic : bool array or None
        Whether anything generic is read, where nothing else is; broadcasts against the output's shape. None: nowhere.
    """

    labels: IntArray
    sets: Runs | None
    generic: BoolArray | None

    def of(self, elements: IntArray, shape: tuple[int, ...]) -> Runs:
        """Return the sets of the elements with those row-major numbers in an array of the given shape."""
        where = project(elements, shape, self.labels.shape)
        if self.sets is None:
            return Runs.singletons(self.labels.reshape(-1)[where])
        return self.sets.take(where)


def footprint(read: Read, rank: int, boundaries: IntArray) -> Footprint:
    """Find the sets behind a read; the leading axes are padded to the given rank."""
    codes, dead = read.codes, read.dead
    inner = read.inner
    if codes.ndim - inner < rank:
        codes = codes.reshape((1,) * (rank - codes.ndim + inner) + codes.shape)
    if dead is not None:
        dead = thin(dead.reshape((1,) * (codes.ndim - dead.ndim) + dead.shape))
    codes = thin(codes)
    if dead is not None:
        # Where all codes along an inner axis are equal, one is read as long as any of them is.
        for axis in range(rank, codes.ndim):
            if codes.shape[axis] == 1 and dead.shape[axis] > 1:
                dead = dead.all(axis, keepdim=True)
        if not dead.numpy().any():  # which stops at the first that is
            dead = None
    codes = _without_repeats(codes, rank, dead)
    width = codes.shape[rank:]
    if dead is not None:
        width = torch.broadcast_shapes(width, dead.shape[rank:])
    if math.prod(width) == 0:
        return Footprint(np.full((1,) * rank, -1), None, None)
    if math.prod(width) == 1:
        codes = codes.reshape(codes.shape[:rank])
        if dead is not None:
            codes = torch.where(dead.reshape(dead.shape[:rank]), 0, codes)
        labels = codes.numpy() - FIRST
        generic = None
        if labels.size and labels.min() < 0:
            is_generic = labels == GENERIC - FIRST
            generic = is_generic if is_generic.any() else None
            labels = np.maximum(labels, -1)
        return Footprint(labels, None, generic)
    if dead is not None and (sets := _along_one_axis(codes, dead, rank, boundaries)) is not None:
        return Footprint(sets.labels().reshape(dead.shape[:rank]), sets, None)
    flat = codes.expand(*codes.shape[:rank], *width).reshape(*codes.shape[:rank], -1)
    gone = None if dead is None else dead.expand(*dead.shape[:rank], *width).reshape(*dead.shape[:rank], -1)
    return rows(flat.numpy(), None if gone is None else gone.numpy(), boundaries)


def rows(codes: Array, dead: Array | None, boundaries: IntArray) -> Footprint:
    """Find the sets in rows of codes (…, width); ``dead`` broadcasts against them."""
    ascending = _ascending(codes, strictly=dead is not None)
    outer = np.broadcast_shapes(codes.shape[:-1], () if dead is None else dead.shape[:-1])
    count, width = math.prod(outer), codes.shape[-1]
    step = max(1, CHUNK // width)
    parts: list[Runs] = []
    generic = np.zeros(count, bool)
    shared = codes.reshape(-1, width) if codes.size == width else None
    for low in range(0, count, step):
        pick = np.arange(low, min(low + step, count))
        block = shared if shared is not None else codes.reshape(-1, width)[project(pick, outer, codes.shape[:-1])]
        gone = None if dead is None else dead.reshape(-1, width)[project(pick, outer, dead.shape[:-1])]
        valid = (block >= FIRST) if gone is None else (block >= FIRST) & ~gone
        if block.min(initial=FIRST) <= GENERIC:
            is_generic = (block == GENERIC) if gone is None else (block == GENERIC) & ~gone
            generic[pick] = is_generic.any(-1)
        if not ascending:
            block = np.sort(np.where(valid, block, 0), axis=-1)
            valid = block >= FIRST
        gap = block[:, 1:] - block[:, :-1] > 1
        valid = np.broadcast_to(valid, (len(pick), width))
        opens, closes = valid.copy(), valid.copy()
        opens[:, 1:] &= ~valid[:, :-1] | gap
        closes[:, :-1] &= ~valid[:, 1:] | gap
        row, first = np.divmod(np.flatnonzero(opens), width)
        last = np.flatnonzero(closes) % width
        picked = row if len(block) > 1 else np.zeros_like(row)
        parts.append(
            Runs(
                offsets(np.bincount(row, minlength=len(pick))),
                block[picked, first] - FIRST,
                block[picked, last] - FIRST + 1,
            )
        )
    sets = stack(parts).split_at(boundaries)
    generic_mask = generic.reshape(outer) if generic.any() else None
    return Footprint(sets.labels().reshape(outer), sets, generic_mask)


def _without_repeats(codes: Tensor, rank: int, dead: Tensor | None) -> Tensor:
    """Leave out, along each inner axis, what is the same as its neighbour for all elements."""
    for axis in range(rank, codes.ndim):
        if codes.shape[axis] > 1 and (dead is None or dead.shape[axis] == 1):
            rest = [a for a in range(codes.ndim) if a != axis]
            new = (codes.narrow(axis, 1, codes.shape[axis] - 1) != codes.narrow(axis, 0, codes.shape[axis] - 1)).any(
                rest
            )
            if not bool(new.all()):
                codes = codes.index_select(axis, torch.cat([new.new_ones(1), new]).nonzero().squeeze(1))
    return codes


def _along_one_axis(codes: Tensor, dead: Tensor, rank: int, boundaries: IntArray) -> Runs | None:
    """Find the sets where all elements read of one ascending list, from which a mask along one axis takes parts away.

    What is left of the axis is looked up once for each mask: a model's layers share theirs. None where it is otherwise.
    """
    axes = [axis for axis in range(rank, dead.ndim) if dead.shape[axis] > 1]
    if len(axes) != 1 or math.prod(codes.shape[: axes[0]]) != 1 or codes.shape[axes[0]] == 1:
        return None
    tail = math.prod(codes.shape[axes[0] + 1 :])
    ids = codes.reshape(-1).numpy() - FIRST
    step = ids[1:] - ids[:-1]
    # The same node may occur again, but not across what a mask can take apart.
    if ids[0] < 0 or not (step >= 0).all() or not step[tail - 1 :: tail].all():
        return None
    kept = _kept(dead.reshape(*dead.shape[:rank], -1))
    breaks = np.flatnonzero(step > 1) + 1
    pieces = Runs(kept.indptr, kept.starts * tail, kept.stops * tail).split_at(np.append(breaks, len(ids)))
    return Runs(pieces.indptr, ids[pieces.starts], ids[pieces.stops - 1] + 1).split_at(boundaries)


_masks: list[tuple[Tensor, Runs]] = []
"""Copies of the masks met last, each with what it leaves."""


def _kept(dead: Tensor) -> Runs:
    """Return, for each row of a mask, the runs along its last axis where it is False."""
    for mask, runs in _masks:
        if mask.shape == dead.shape and torch.equal(mask, dead):
            return runs
    flat, width = dead.reshape(-1, dead.shape[-1]).numpy(), dead.shape[-1]
    parts = []
    step = max(1, CHUNK // width)
    for low in range(0, len(flat), step):
        alive = ~flat[low : low + step]
        opens, closes = alive.copy(), alive.copy()
        opens[:, 1:] &= ~alive[:, :-1]
        closes[:, :-1] &= ~alive[:, 1:]
        row, first = np.divmod(np.flatnonzero(opens), width)
        last = np.flatnonzero(closes) % width
        parts.append(Runs(offsets(np.bincount(row, minlength=len(alive))), first, last + 1))
    _masks.append((dead.clone(), stack(parts)))
    del _masks[:-_MASKS]
    return _masks[-1][1]


def thin(tensor: Tensor) -> Tensor:
    """Cut axes of stride 0 to length 1."""
    for axis, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.shape[axis] > 1:
            tensor = tensor.narrow(axis, 0, 1)
    return tensor


def project(elements: IntArray, shape: tuple[int, ...], onto: tuple[int, ...]) -> IntArray:
    """Turn row-major numbers in ``shape`` into those in ``onto``, which broadcasts to it."""
    if shape == onto:
        return elements
    result = np.zeros_like(elements)
    for axis in range(len(shape) - 1, -1, -1):
        elements, where = np.divmod(elements, shape[axis])
        back = axis - len(shape)
        if -back <= len(onto) and onto[back] > 1:
            result += where * math.prod(onto[back + 1 :] if back < -1 else ())
    return result


def unify(labels: list[IntArray], shape: tuple[int, ...]) -> tuple[IntArray, IntArray, BoolArray]:
    """Group the elements of an output by what they read.

    Parameters
    ----------
    labels : list of arrays
        One an argument, broadcasting to ``shape``; -1 where nothing of it is read.
    shape : tuple of int

    Returns
    -------
    group : (elements,) int64
        Groups are numbered in the order in which they first occur; meaningless where ``empty``.
    first : (groups,) int64
        The first element of each group.
    empty : (elements,) bool
        Where nothing is read at all.
    """
    kept = [_fresh(labels, axis, size) for axis, size in enumerate(shape)]
    if any(len(k) < size for k, size in zip(kept, shape, strict=True)):
        small = tuple(map(len, kept))
        cut = [
            label[np.ix_(*(k if n > 1 else [0] for k, n in zip(kept, label.shape, strict=True)))] for label in labels
        ]
        group, first, empty = _grouped(cut, small)
        where = np.unravel_index(first, small)
        first = np.ravel_multi_index([k[w] for k, w in zip(kept, where, strict=True)], shape)
        back = np.ix_(*(_places(k, size) for k, size in zip(kept, shape, strict=True)))
        return group.reshape(small)[back].reshape(-1), first, empty.reshape(small)[back].reshape(-1)
    return _grouped(labels, shape)


def _fresh(labels: list[IntArray], axis: int, size: int) -> IntArray:
    """Return where, along an axis, the labels differ from those just before."""
    wide = [label for label in labels if label.shape[axis] > 1]
    if size < 2 or not wide:
        return np.arange(min(size, 1))
    differs = np.zeros(size - 1, bool)
    for label in wide:
        along = np.moveaxis(label, axis, 0)
        differs |= (along[1:] != along[:-1]).reshape(size - 1, -1).any(1)
    return np.flatnonzero(np.append(True, differs))


def _places(kept: IntArray, size: int) -> IntArray:
    """Return, for each index of an axis, the place of the last kept one up to it."""
    return np.searchsorted(kept, np.arange(size), side="right") - 1


def _grouped(labels: list[IntArray], shape: tuple[int, ...]) -> tuple[IntArray, IntArray, BoolArray]:
    size = math.prod(shape)
    key = np.zeros((1,) * len(shape), np.int64)
    span = 1
    for label in labels:
        radix = int(label.max(initial=-1)) + 2
        if span * radix >= 1 << 62:
            key = np.unique(key, return_inverse=True)[1].reshape(key.shape)
            span = int(key.max()) + 1
        key = key * radix + (label + 1)
        span *= radix
    empty = np.ones((1,) * len(shape), bool)
    for label in labels:
        empty = empty & (label < 0)
    flat = np.broadcast_to(key, shape).reshape(-1)
    hollow = np.broadcast_to(empty, shape).reshape(-1)
    any_hollow = bool(hollow.any())
    live = np.flatnonzero(~hollow) if any_hollow else None
    dense = flat if live is None else flat[live]
    if len(dense) < 2 or bool((dense[1:] > dense[:-1]).all()):
        first, inverse = np.arange(len(dense)), np.arange(len(dense))
    elif bool((dense[1:] >= dense[:-1]).all()):
        fresh = np.append(True, dense[1:] > dense[:-1])
        first, inverse = np.flatnonzero(fresh), np.cumsum(fresh) - 1
    else:
        _, first, inverse = np.unique(dense, return_index=True, return_inverse=True)
        first, inverse = np.sort(first), in_order_of_first(first, inverse)
    if live is None:
        return inverse, first, hollow
    group = np.zeros(size, np.int64)
    group[live] = inverse
    return group, live[first], hollow


def _ascending(codes: Array, strictly: bool) -> bool:
    """Tell whether every row ascends, constants apart, so that no sorting is needed to find the runs."""
    if codes.shape[-1] < 2:
        return True
    left, right = codes[..., :-1], codes[..., 1:]
    if strictly:
        return bool((left < right).all()) and bool((codes >= FIRST).all())
    return bool((left <= right).all())
