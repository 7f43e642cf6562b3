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
        return self._of(induced(self.dag, keep), keep, self.fed[keep], self.drained[keep])

    def joined(self, target: IntArray) -> Supply:
        """Draw each node together with the node at the end of the way that leads from target to target."""
        representative = _ends(target)
        kept = representative == np.arange(self.dag.nodes)
        if kept.all():
            return self
        group = (np.cumsum(kept) - 1)[representative]
        fed, drained = np.zeros((2, int(kept.sum())), np.int64)
        np.add.at(fed, group, self.fed)
        np.add.at(drained, group, self.drained)
        return self._of(quotient(self.dag, representative), kept, fed, drained)

    def _of(self, dag: Dag, kept: BoolArray, fed: IntArray, drained: IntArray) -> Supply:
        capacity = self.capacity if self.capacity is None else self.capacity[kept]
        return Supply(dag, self.origin[kept], fed, drained, self.passed, capacity)

    def settled(self) -> Supply:
        """Let what enters at a node leave at that same node as far as it can, if nodes let any amount through."""
        both = np.minimum(self.fed, self.drained)
        passed = self.passed + int(both.sum())
        return replace(self, fed=self.fed - both, drained=self.drained - both, passed=passed)


def contract(supply: Supply) -> Supply:
    """Draw nodes together that make no difference to how much can flow.

    All that comes through a node that reads a single other one comes through that other one; all that comes through a
    node that a single other one reads goes on through that other one. Neither can be what limits the flow, unless it
    is narrower than the other, or something enters or leaves the graph there. So an attention layer on n positions,
    its n² scores included, shrinks to n nodes.

    Parameters
    ----------
    supply : Supply

    Returns
    -------
    Supply
        Of each group, the node stays through which all goes.
    """
    while supply.dag.nodes:
        before = supply.dag.nodes
        single = np.flatnonzero((supply.dag.reads.sizes == 1) & (supply.fed == 0))
        supply = _joined(supply, single, supply.dag.reads.starts[supply.dag.reads.indptr[single]])
        single = np.flatnonzero((reader_counts(supply.dag) == 1) & (supply.drained == 0))
        supply = _joined(supply, single, reader_counts(supply.dag, np.arange(supply.dag.nodes))[single])
        if supply.capacity is None:
            supply = supply.settled()
        enters = (supply.dag.reads.sizes > 0) | (supply.fed > 0)
        leaves = (reader_counts(supply.dag) > 0) | (supply.drained > 0)
        supply = supply.only(enters & leaves)
        if supply.dag.nodes > (1 - _WORTHWHILE) * before:
            break
    return supply


def _joined(supply: Supply, nodes: IntArray, others: IntArray) -> Supply:
    """Draw each node together with the other one through which all goes, unless it is the narrower of the two."""
    target = np.arange(supply.dag.nodes)
    if supply.capacity is not None:
        wide = supply.capacity[nodes] >= supply.capacity[others]
        nodes, others = nodes[wide], others[wide]
    target[nodes] = others
    return supply.joined(target)


def _ends(target: IntArray) -> IntArray:
    """Return where one gets by following the targets as far as they lead, in jumps that double in length."""
    while True:
        further = target[target]
        if np.array_equal(further, target):
            return target
        target = further
