"""Shrink a graph without changing how much can flow through it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from depgraph.dag.dag import Dag
from depgraph.dag.runs import BoolArray, IntArray
from depgraph.metrics.flow.quotient import induced, quotient, reader_counts

#: Rounds of drawing together end when one of them removes less than this share of the nodes.
_WORTHWHILE = 0.02


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
    capacity : (nodes,) int64 or None
        How much each node lets through, None for any amount.
    """

    dag: Dag
    origin: IntArray
    fed: IntArray
    drained: IntArray
    passed: int = 0
    capacity: IntArray | None = None

    def only(self, keep: BoolArray) -> Supply:
        """Leave out the nodes that are not kept."""
        if keep.all():
            return self
        capacity = self.capacity if self.capacity is None else self.capacity[keep]
        parts = self.origin[keep], self.fed[keep], self.drained[keep]
        return Supply(induced(self.dag, keep), *parts, self.passed, capacity)

    def joined(self, target: IntArray) -> Supply:
        """Draw each node together with the node at the end of the way that leads from target to target.

        Together they let through what the narrowest of them does, and stand for that one.
        """
        representative = _ends(target)
        kept = representative == np.arange(self.dag.nodes)
        if kept.all():
            return self
        group = (np.cumsum(kept) - 1)[representative]
        fed, drained = np.zeros((2, int(kept.sum())), np.int64)
        np.add.at(fed, group, self.fed)
        np.add.at(drained, group, self.drained)
        origin, capacity = self.origin[kept], None
        if self.capacity is not None:
            capacity = self.capacity[kept]
            np.minimum.at(capacity, group, self.capacity)
            narrowest = (self.capacity == capacity[group]) & (self.capacity[representative] > capacity[group])
            origin[group[narrowest]] = self.origin[narrowest]
        return Supply(quotient(self.dag, representative), origin, fed, drained, self.passed, capacity)

    def settled(self) -> Supply:
        """Let what enters at a node leave at that same node as far as it can, if nodes let any amount through."""
        both = np.minimum(self.fed, self.drained)
        passed = self.passed + int(both.sum())
        return replace(self, fed=self.fed - both, drained=self.drained - both, passed=passed)


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
            nodes, read = _single_read(supply)
            alone = (reader_counts(supply.dag)[read] == 1) & (supply.drained[read] == 0)
            supply = _joined(supply, nodes[alone], read[alone])
        supply = _joined(supply, *_no_narrower(supply, *_single_read(supply)))
        single = np.flatnonzero((reader_counts(supply.dag) == 1) & (supply.drained == 0))
        reader = reader_counts(supply.dag, np.arange(supply.dag.nodes))[single]
        supply = _joined(supply, *_no_narrower(supply, single, reader))
        if supply.capacity is None:
            supply = supply.settled()
        enters = (supply.dag.reads.sizes > 0) | (supply.fed > 0)
        leaves = (reader_counts(supply.dag) > 0) | (supply.drained > 0)
        supply = supply.only(enters & leaves)
        if supply.dag.nodes > (1 - _WORTHWHILE) * before:
            break
    return supply


def _single_read(supply: Supply) -> tuple[IntArray, IntArray]:
    """Return the nodes that all comes to through a single other one, and that other one."""
    nodes = np.flatnonzero((supply.dag.reads.sizes == 1) & (supply.fed == 0))
    return nodes, supply.dag.reads.starts[supply.dag.reads.indptr[nodes]]


def _no_narrower(supply: Supply, nodes: IntArray, others: IntArray) -> tuple[IntArray, IntArray]:
    """Leave out what is narrower than its other one, with its block: else runs would come apart into single nodes."""
    if supply.capacity is None:
        return nodes, others
    narrow = supply.capacity[nodes] < supply.capacity[others]
    block = supply.dag.block_of[nodes]
    keep = ~np.isin(block, block[narrow])
    return nodes[keep], others[keep]


def _joined(supply: Supply, nodes: IntArray, others: IntArray) -> Supply:
    target = np.arange(supply.dag.nodes)
    target[nodes] = others
    return supply.joined(target)


def _ends(target: IntArray) -> IntArray:
    """Return where one gets by following the targets as far as they lead, in jumps that double in length."""
    while True:
        further = target[target]
        if np.array_equal(further, target):
            return target
        target = further
