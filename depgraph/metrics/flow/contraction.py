"""Shrink a graph without changing how much can flow through it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from depgraph.dag.dag import Dag
from depgraph.dag.runs import BoolArray, IntArray
from depgraph.metrics.flow.quotient import ends, induced, quotient, reader_counts, readers, single_reads

#: Nodes are drawn together if that removes at least this share of them, and rounds end when they remove less.
_WORTHWHILE = 0.05


@dataclass(frozen=True)
class Supply:
    """A graph that something flows through, along its edges, from where it is fed to where it is drained.

    Attributes
    ----------
    dag : Dag
    origin : (nodes,) int64
        The node that each node stands for in the graph that this one was made of.
    fed, drained : (nodes,) int64
        How much enters, and how much may leave, at each node; where nodes have a capacity, any amount if not 0.
    passed : int
        How much has been accounted for already.
    steps : tuple of (nodes before,) int64
        How the graph came to be, step by step: where each node went, or one of the two numbers after the last node,
        for nodes left out because nothing enters there and because nothing leaves.
    capacity : (nodes,) int64 or None
        How much each node lets through, None for any amount.
    """

    dag: Dag
    origin: IntArray
    fed: IntArray
    drained: IntArray
    passed: int = 0
    steps: tuple[IntArray, ...] = ()
    capacity: IntArray | None = None

    def only(self, keep: BoolArray, enters: BoolArray | None = None) -> Supply:
        """Leave out the nodes that are not kept: because nothing enters there, or else because nothing leaves."""
        if keep.all():
            return self
        left = int(keep.sum())
        nothing_enters = np.zeros(len(keep), np.bool_) if enters is None else ~enters
        step = np.where(keep, np.cumsum(keep) - 1, np.where(nothing_enters, left, left + 1))
        return Supply(
            induced(self.dag, keep),
            self.origin[keep],
            self.fed[keep],
            self.drained[keep],
            self.passed,
            (*self.steps, step),
            None if self.capacity is None else self.capacity[keep],
        )

    def joined(self, moves: BoolArray, target: IntArray) -> Supply:
        """Draw each node that moves together with the node where the targets lead, if they are many.

        Together they let through what the narrowest of them does, and stand for that one.
        """
        moving = np.flatnonzero(moves)
        if len(moving) <= _WORTHWHILE * len(moves):
            return self
        representative, kept = ends(moves, target), ~moves
        step = (np.cumsum(kept) - 1)[representative]
        fed, drained = self.fed[kept], self.drained[kept]
        np.add.at(fed, step[moving], self.fed[moving])
        np.add.at(drained, step[moving], self.drained[moving])
        origin, capacity = self.origin[kept], None
        if self.capacity is not None:
            capacity = self.capacity[kept]
            np.minimum.at(capacity, step[moving], self.capacity[moving])
            least = capacity[step[moving]]
            narrowest = moving[(self.capacity[moving] == least) & (self.capacity[representative[moving]] > least)]
            origin[step[narrowest]] = self.origin[narrowest]
        smaller = quotient(self.dag, representative)
        return Supply(smaller, origin, fed, drained, self.passed, (*self.steps, step), capacity)

    def settled(self) -> Supply:
        """Let what enters at a node leave at that same node as far as it can, if nodes let any amount through."""
        both = np.minimum(self.fed, self.drained)
        return replace(self, fed=self.fed - both, drained=self.drained - both, passed=self.passed + int(both.sum()))

    def lifted(self, near: BoolArray) -> BoolArray:
        """Return on which side of a cut each node of the graph before all steps lies, given the sides of those left.

        A cut that no edge leads across from the near side to the far one is paid for by what is fed on the far side
        and drained on the near side. Nodes drawn together lie on one side, which costs what it cost before. A node
        that nothing enters lies on the far side and one that nothing leaves on the near side: no edge forbids that,
        and it costs nothing.
        """
        for step in reversed(self.steps):
            near = np.append(near, [False, True])[step]
        return near


def contract(supply: Supply) -> Supply:
    """Draw nodes together that make no difference to how much can flow.

    All that comes through a node that reads a single other one comes through that other one; all that comes through a
    node that a single other one reads goes on through that other one. Neither can be what limits the flow, unless it
    is narrower than the other, or something enters or leaves the graph there; and where each is all that goes on from
    or comes to the other, the narrower one limits both. So an attention layer on n positions, its n² scores included,
    shrinks to n nodes.

    Parameters
    ----------
    supply : Supply

    Returns
    -------
    Supply
        Of each group, the narrowest node stays through which all goes.
    """
    while supply.dag.nodes:
        before = supply.dag.nodes
        if supply.capacity is not None and np.ptp(supply.capacity):
            single, read = single_reads(supply.dag)
            alone = (reader_counts(supply.dag)[read] == 1) & (supply.drained[read] == 0)
            supply = supply.joined(single & (supply.fed == 0) & alone, read)
        single, read = single_reads(supply.dag)
        supply = supply.joined(_wide(supply, single & (supply.fed == 0), read), read)

        number, sole = readers(supply.dag)
        supply = supply.joined(_wide(supply, (number == 1) & (supply.drained == 0), sole), sole)

        if supply.capacity is None:
            supply = supply.settled()
        enters = (supply.dag.reads.counts > 0) | (supply.fed > 0)
        leaves = (reader_counts(supply.dag) > 0) | (supply.drained > 0)
        supply = supply.only(enters & leaves, enters)
        if supply.dag.nodes > (1 - _WORTHWHILE) * before:
            break
    return supply


def _wide(supply: Supply, moves: BoolArray, target: IntArray) -> BoolArray:
    """Leave out what is narrower than its target, with its block: else runs would come apart into single nodes."""
    if supply.capacity is None:
        return moves
    narrow = moves & (supply.capacity < supply.capacity[target])
    if not narrow.any():
        return moves
    blocks = np.zeros(len(supply.dag.blocks) - 1, np.bool_)
    blocks[supply.dag.block_of[narrow]] = True
    return moves & ~blocks[supply.dag.block_of]
