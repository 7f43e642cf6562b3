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
        How much enters, and how much may leave, at each node.
    passed : int
        How much has been accounted for already.
    steps : tuple of (nodes before,) int64
        How the graph came to be, step by step: where each node went, or one of the two numbers after the last node,
        for nodes left out because nothing enters there and because nothing leaves.
    """

    dag: Dag
    origin: IntArray
    fed: IntArray
    drained: IntArray
    passed: int = 0
    steps: tuple[IntArray, ...] = ()

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
        )

    def joined(self, moves: BoolArray, target: IntArray) -> Supply:
        """Draw each node that moves together with the node where the targets lead, if they are many."""
        moving = np.flatnonzero(moves)
        if len(moving) <= _WORTHWHILE * len(moves):
            return self
        representative, kept = ends(moves, target), ~moves
        step = (np.cumsum(kept) - 1)[representative]
        fed, drained = self.fed[kept], self.drained[kept]
        np.add.at(fed, step[moving], self.fed[moving])
        np.add.at(drained, step[moving], self.drained[moving])
        smaller = quotient(self.dag, representative)
        return Supply(smaller, self.origin[kept], fed, drained, self.passed, (*self.steps, step))

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
        single, read = single_reads(supply.dag)
        supply = supply.joined(single & (supply.fed == 0), read)

        number, sole = readers(supply.dag)
        supply = supply.joined((number == 1) & (supply.drained == 0), sole)

        if unlimited:
            supply = supply.settled()
        enters = (supply.dag.reads.counts > 0) | (supply.fed > 0)
        leaves = (reader_counts(supply.dag) > 0) | (supply.drained > 0)
        supply = supply.only(enters & leaves, enters)
        if supply.dag.nodes > (1 - _WORTHWHILE) * before:
            break
    return supply
