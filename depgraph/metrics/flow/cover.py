"""A least cover of a graph's nodes by chains, as a flow, and the antichain that meets each of its chains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from depgraph.dag.dag import Dag
from depgraph.dag.runs import BoolArray, IntArray, Runs, offsets
from depgraph.metrics.flow.contraction import Supply, contract
from depgraph.metrics.flow.network import Arcs, flow_through
from depgraph.metrics.flow.quotient import readers, single_reads


@dataclass(frozen=True)
class Halves:
    """A graph with every node that counts in two halves, the one that takes (drained) and the one that gives (fed).

    The halves of a block are two blocks, one after the other. The giving half reads the taking one: what a node does
    not take passes through it. Nodes that do not count stay whole, and so do those that have a single reader, which
    give where that one takes, and those that read a single other one, which take where that one gives.

    Attributes
    ----------
    supply : Supply
        Contracted. What flows through it is the number of nodes that follow another one in a chain.
    takes, gives : (nodes that count,) int64
        Where they took and gave before the contraction.
    total : int
        How much the nodes count, all in all.
    """

    supply: Supply
    takes: IntArray
    gives: IntArray
    total: int

    @property
    def chains(self) -> int:
        """The number of chains of the cover found so far."""
        return self.total - self.supply.passed

    def least(self, arcs: Arcs | None = None) -> tuple[int, BoolArray]:
        """Return the number of chains of a least cover, and which of the nodes that count an antichain meets them in.

        The antichain holds the nodes whose giving half lies on the near side of a minimum cut and whose taking half
        lies on the far side. No edge leads from near to far, and so none of them leads to another, directly or through
        others; every other node that counts adds 1 to the cut, and the antichain is as large as the total less the cut.
        """
        supply, flow, near = self.supply, 0, np.zeros(self.supply.dag.nodes, np.bool_)
        if supply.dag.nodes:
            flow, near = flow_through(supply, arcs)
        near = supply.lifted(near)
        return self.chains - flow, near[self.gives] & ~near[self.takes]


def halved(dag: Dag, amount: IntArray) -> Halves:
    """Return the network whose largest flow is the number of successions in a least chain cover.

    Parameters
    ----------
    dag : Dag
    amount : (nodes,) int64
        How much each node counts: how many chains must go through it.
    """
    counted = amount > 0
    number, reader = readers(dag)
    sole = (number == 1) & counted
    single, read = single_reads(dag)
    single &= counted & ~sole & ~sole[read]
    split = counted & ~sole & ~single
    before = offsets(split.astype(np.int64))
    sizes = np.diff(dag.blocks)
    whole = np.arange(dag.nodes) + np.repeat(before[dag.blocks[1:]], sizes)
    reading = np.where(split, before[:-1] + np.repeat(dag.blocks[:-1], sizes), whole)
    takes = np.where(single, whole[read], reading)
    gives = np.where(sole, reading[reader], whole)
    size = dag.nodes + int(before[-1])
    counts = np.ones(size, np.int64)
    counts[reading] = dag.reads.counts
    indptr = offsets(counts)
    starts, stops = np.empty((2, int(indptr[-1])), np.int64)
    between = indptr[whole[split]]
    starts[between], stops[between] = reading[split], reading[split] + 1
    where = np.repeat(indptr[reading] - dag.reads.indptr[:-1], dag.reads.counts) + np.arange(dag.runs)
    starts[where], stops[where] = whole[dag.reads.starts], whole[dag.reads.stops - 1] + 1
    bounds = np.unique(np.append(dag.blocks + before[dag.blocks], dag.blocks[:-1] + before[dag.blocks[1:]]))
    fed, drained = np.zeros((2, size), np.int64)
    np.add.at(fed, gives[counted], amount[counted])
    np.add.at(drained, takes[counted], amount[counted])
    doubled = Dag(int(dag.inputs + before[dag.inputs]), Runs(indptr, starts, stops), bounds)
    supply = contract(Supply(doubled, np.arange(size), fed, drained))
    return Halves(supply, takes[counted], gives[counted], int(amount.sum()))
