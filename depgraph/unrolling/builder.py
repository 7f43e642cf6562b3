"""Making nodes: from what an operation's elements read to numbered nodes and their runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from depgraph.dag.dag import Dag
from depgraph.dag.graph import Operation
from depgraph.dag.runs import IntArray, Runs, offsets, stack, union
from depgraph.rules.call import Read
from depgraph.rules.values import FIRST, GENERIC, KNOWN
from depgraph.unrolling.calls import Elements, Made, alike
from depgraph.unrolling.footprints import Footprint, footprint, unify
from depgraph.unrolling.memory import reserve


@dataclass(frozen=True, slots=True)
class Mark:
    """How far the making of a graph has got."""

    count: int
    operations: int
    blocks: int
    reads: int
    calls: int


@dataclass(frozen=True)
class Label:
    """What an operation's nodes are called."""

    name: str
    module: str
    source: str
    contraction: bool


class Builder:
    """Collects the nodes of a graph, operation by operation.

    Attributes
    ----------
    operations : list of Operation
    elements : list
        For each operation, how many elements of its result a node stands for, as it was made: a number, or one a node.
    chains : list of int
        For each operation, the layer and direction of its call that it is, -1 where it is none of a recurrent layer.
    calls : list of Made
        What the calls of operators became, of those that became nodes.
    """

    def __init__(self) -> None:
        self.count = 0
        self.inputs = 0
        self.operations: list[Operation] = []
        self.elements: list[Elements] = []
        self.chains: list[int] = []
        self.calls: list[Made] = []
        self._blocks = [0]
        self._boundaries: IntArray | None = None
        self._reads: list[Runs] = []

    @property
    def boundaries(self) -> IntArray:
        """Where blocks end, the last one being the number of nodes so far."""
        if self._boundaries is None or len(self._boundaries) != len(self._blocks) - 1:
            self._boundaries = np.array(self._blocks[1:], np.int64)
        return self._boundaries

    def mark(self) -> Mark:
        """Return where the graph stands, for `rewind`."""
        return Mark(self.count, len(self.operations), len(self._blocks), len(self._reads), len(self.calls))

    def rewind(self, mark: Mark) -> None:
        """Forget all nodes made since."""
        self.count = mark.count
        del self.operations[mark.operations :], self.elements[mark.operations :], self.chains[mark.operations :]
        del self._blocks[mark.blocks :], self._reads[mark.reads :], self.calls[mark.calls :]
        self._boundaries = None

    def reads_since(self, mark: Mark) -> list[Runs]:
        """Return what the nodes made since read."""
        return self._reads[mark.reads :]

    def blocks_since(self, mark: Mark) -> IntArray:
        """Return where the blocks made since end."""
        return np.array(self._blocks[mark.blocks :], np.int64)

    def extend(self, reads: Runs, ends: IntArray, shift: int) -> None:
        """Add nodes in blocks that end so much later than the given ones do."""
        self._reads.append(reads)
        self._blocks.extend((ends + shift).tolist())
        self.count = self._blocks[-1]

    def add_input(self, count: int) -> int:
        """Make nodes that read nothing and return the first one's number."""
        start = self.count
        self._append(Runs.empty(count), [count])
        self.inputs = self.count
        return start

    def add(self, label: Label, shape: Sequence[int], reads: Sequence[Read]) -> Tensor:
        """Make the nodes of one operation; see `depgraph.rules.call.Call.nodes`."""
        shape = tuple(shape)
        if 0 in shape:
            return torch.zeros(shape, dtype=torch.int64)
        prints = [footprint(read, len(shape), self.boundaries) for read in reads]
        thin = np.broadcast_shapes((1,) * len(shape), *(p.labels.shape for p in prints))
        real = [p for p in prints if p.labels.max(initial=-1) >= 0]
        reserve(math.prod(thin), label.name, label.source)
        group, first, empty = unify([p.labels for p in real], thin)
        start = self.count
        if len(first):
            self._append(union([p.of(first, thin) for p in real]), [len(first)])
            bundled = math.prod(shape) // math.prod(thin)
            self._operation(label, start, first, thin, bundled * _members(group, empty, len(first)))
        codes = group + (start + FIRST)
        if empty.any():
            codes[empty] = _constants(prints, thin)[empty]
        return torch.from_numpy(codes.reshape(thin)).expand(shape)

    def add_steps(
        self,
        label: Label,
        inputs: Read,
        state: Sequence[Read],
        active: np.ndarray | None = None,
        backwards: bool = False,
        chain: int = 0,
    ) -> Tensor:
        """Make a chain of nodes along the first axis; see `depgraph.rules.call.Call.steps`."""
        prints = [footprint(inputs, 2, self.boundaries), *(footprint(read, 2, self.boundaries) for read in state)]
        steps, batch = inputs.codes.shape[0], math.prod(inputs.codes.shape[1:2])
        flags = [p.labels for p in prints] + ([] if active is None else [active])
        wide = np.broadcast_shapes((1, 1), *(f.shape[1:] for f in flags))[-1]
        thin = (steps, wide)
        on = np.ones(thin, bool) if active is None else np.broadcast_to(active, thin)
        read = np.where(on, np.broadcast_to(prints[0].labels, thin), -1)
        begin = np.concatenate([np.broadcast_to(p.labels, (1, wide)) for p in prints[1:]] or [np.full((1, wide), -1)])
        # A chain starts where it first reads something, be it in its input or in its state.
        alive = on & ((np.cumsum(read >= 0, axis=0) > 0) | (begin >= 0).any(0))
        # Two columns share their nodes for as long as all that they have read so far is the same.
        group = _prefix_groups(np.concatenate([begin, np.where(on, read + 1, -1)]))[len(begin) :]
        group_number, first, _ = unify([np.where(alive, group + wide * np.arange(steps)[:, None], -1)], thin)
        start = self.count
        ids = np.where(alive, group_number.reshape(thin) + start, -1)
        if len(first):
            step, column = np.divmod(first, wide)
            before = np.maximum.accumulate(np.where(alive, np.arange(steps)[:, None], -1), axis=0)
            last = np.where(step > 0, before[step - 1, column], -1)
            previous = np.where(last >= 0, ids[last, column], -1)
            sets = [_masked(prints[0].of(first, thin), np.ones(len(first), bool)), Runs.singletons(previous)]
            fresh = previous < 0
            for p in prints[1:]:
                sets.append(_masked(p.of(column, (1, wide)), fresh))
            sizes = np.bincount(step, minlength=steps)
            sizes = sizes[sizes > 0]
            cuts = np.append(self.boundaries, start + np.cumsum(sizes))
            self._append(union(sets).split_at(cuts), sizes.tolist())
            members = batch // wide * _members(group_number, ~alive.reshape(-1), len(first))
            places = (steps - 1 - step) * wide + column if backwards else first
            self._operation(label, start, places, thin, members, chain)
        codes = np.where(alive, ids + FIRST, GENERIC)
        return torch.from_numpy(codes).expand(steps, batch)

    def finish(self) -> Dag:
        """Return all nodes made as one graph."""
        return Dag(self.inputs, stack(self._reads), np.array(self._blocks, np.int64))

    def _append(self, reads: Runs, sizes: Sequence[int]) -> None:
        self._reads.append(reads)
        for size in sizes:
            self.count += size
            self._blocks.append(self.count)

    def _operation(
        self, label: Label, start: int, first: IntArray, shape: tuple[int, ...], elements: Elements, chain: int = -1
    ) -> None:
        axes = [axis for axis, size in enumerate(shape) if size > 1]
        if len(first) == math.prod(shape) and bool((first[1:] > first[:-1]).all()):
            grid, coordinates = tuple(shape[axis] for axis in axes), None
        else:
            where = np.unravel_index(first, shape)
            grid, coordinates = (), np.stack([where[axis] for axis in axes], 1) if axes else None
        self.operations.append(
            Operation(label.name, label.module, label.source, label.contraction, start, self.count, grid, coordinates)
        )
        self.elements.append(elements)
        self.chains.append(chain)


def _members(group: IntArray, empty: np.ndarray, groups: int) -> Elements:
    """Return how many elements are in each group: one number where it is the same for all."""
    if groups == len(group):
        return 1
    return alike(np.bincount(group[~empty] if empty.any() else group, minlength=groups))


def _prefix_groups(keys: IntArray) -> IntArray:
    """Number the columns of a matrix so that, in each row, equal numbers mean equal columns down to that row."""
    order = np.lexsort(keys[::-1])
    differs = keys[:, order[1:]] != keys[:, order[:-1]]
    groups = np.zeros(keys.shape, np.int64)
    groups[:, order[1:]] = np.cumsum(np.maximum.accumulate(differs, axis=0), axis=1)
    return groups


def _any_generic(prints: Sequence[Footprint], shape: tuple[int, ...]) -> np.ndarray:
    generic = np.zeros((1,) * len(shape), bool)
    for p in prints:
        if p.generic is not None:
            generic = generic | p.generic
    return np.broadcast_to(generic, shape)


def _constants(prints: Sequence[Footprint], shape: tuple[int, ...]) -> IntArray:
    return np.where(_any_generic(prints, shape), GENERIC, KNOWN).reshape(-1)


def _masked(sets: Runs, keep: np.ndarray) -> Runs:
    """Return the same rows, those not kept emptied."""
    if keep.all():
        return sets
    wanted = keep[sets.rows]
    return Runs(offsets(np.where(keep, sets.counts, 0)), sets.starts[wanted], sets.stops[wanted])
