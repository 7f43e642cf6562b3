"""Shrink a graph without changing how much can flow through it."""

from __future__ import annotations

from dataclasses import dataclass

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
        How much enters, and how much may leave, at each node.
    passed : int
        How much has been accounted for already.
    """

    dag: Dag
    origin: IntArray
    fed: IntArray
    drained: IntArray
    passed: int = 0

    def only(self, keep: BoolArray) -> Supply:
        """Leave out the nodes that are not kept."""
        if keep.all():
            return self
        return Supply(induced(self.dag, keep), self.origin[keep], self.fed[keep], self.drained[keep], self.passed)

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
        return Supply(quotient(self.dag, representative), self.origin[kept], fed, drained, self.passed)

    def settled(self) -> Supply:
        """Let what enters at a node leave at that same node as far as it can, if nodes let any amount through."""
        both = np.minimum(self.fed, self.drained)
        return Supply(self.dag, self.origin, self.fed - both, self.drained - both, self.passed + int(both.sum()))


def contract(supply: Supply, *, unlimited: bool) -> Supply:
    """Draw nodes together that make no difference to how much can flow.

    All that comes through a node that reads a single other one comes through that other one; all that comes through a
    node that a single other one reads goes on through that other one. Neither can be what limits the flow, unless
    something enters or leaves the graph there. So an attention layer on n positions, its n² scores included, shrinks
    to n nodes.

    Parameters
    ----------
    supply : Supply
    unlimited : bool
        Whether nodes let any amount through, or all of them the same.

    Returns
    -------
    Supply
        Of each group, the node stays through which all goes.
    """
    while supply.dag.nodes:
        before = supply.dag.nodes
        nodes = np.arange(before)
        sizes = supply.dag.reads.sizes
        single = (sizes == 1) & (supply.fed == 0)
        target = nodes.copy()
        target[single] = supply.dag.reads.starts[supply.dag.reads.indptr[:-1][single]]
        supply = supply.joined(target)

        nodes = np.arange(supply.dag.nodes)
        single = (reader_counts(supply.dag) == 1) & (supply.drained == 0)
        supply = supply.joined(np.where(single, reader_counts(supply.dag, nodes), nodes))

        if unlimited:
            supply = supply.settled()
        enters = (supply.dag.reads.sizes > 0) | (supply.fed > 0)
        leaves = (reader_counts(supply.dag) > 0) | (supply.drained > 0)
        supply = supply.only(enters & leaves)
        if supply.dag.nodes > (1 - _WORTHWHILE) * before:
            break
    return supply


def _ends(target: IntArray) -> IntArray:
    """Return where one gets by following the targets as far as they lead, in jumps that double in length."""
    while True:
        further = target[target]
        if np.array_equal(further, target):
            return target
        target = further
