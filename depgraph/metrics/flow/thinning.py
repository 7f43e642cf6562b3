"""Shrink a graph without changing the size of its largest antichain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from depgraph.dag.dag import Dag
from depgraph.dag.runs import BoolArray, IntArray
from depgraph.metrics.flow.quotient import ends, induced, quotient, reader_counts, readers, single_reads

#: Nodes are drawn together if that removes at least this share of them, and rounds end when they remove less.
_WORTHWHILE = 0.05


@dataclass(frozen=True)
class Candidates:
    """A graph in which some nodes may be members of an antichain, and the others only connect them.

    Attributes
    ----------
    dag : Dag
    origin : (nodes,) int64
        The node that each node is in the graph that this one was made of.
    counted : (nodes,) bool
        Which of them may be members.
    """

    dag: Dag
    origin: IntArray
    counted: BoolArray

    def only(self, keep: BoolArray) -> Candidates:
        """Leave out the nodes that are not kept."""
        if keep.all():
            return self
        return Candidates(induced(self.dag, keep), self.origin[keep], self.counted[keep])

    def joined(self, moves: BoolArray, target: IntArray) -> Candidates:
        """Draw those that move together with the node where the targets lead, if they are many."""
        if np.count_nonzero(moves) <= _WORTHWHILE * len(moves):
            return self
        representative = ends(moves, target)
        kept = ~moves
        return Candidates(quotient(self.dag, representative), self.origin[kept], self.counted[kept])


def thinned(dag: Dag) -> Candidates:
    """Return a smaller graph, some largest antichain of which is one of the whole graph, inputs left out.

    Whatever depends on u, or is depended on by it, stands in the same relation to u's only reader v, and to the only
    node t that u reads. In an antichain u can therefore take the place of v or of t: these need not be counted. A node
    that is not counted and reads a single other one, or has a single reader, is drawn together with it: that connects
    nothing anew.
    """
    found = Candidates(dag, np.arange(dag.nodes), np.arange(dag.nodes) >= dag.inputs)
    while found.dag.nodes:
        before = found.dag.nodes
        counted = found.counted.copy()
        number, sole = readers(found.dag)
        counted[sole[(number == 1) & counted]] = False
        single, read = single_reads(found.dag)
        counted[read[single & counted]] = False
        found = Candidates(found.dag, found.origin, counted)

        smaller = found.joined(single & ~counted, read)
        if smaller is not found:
            found, (number, sole) = smaller, readers(smaller.dag)
        found = found.joined((number == 1) & ~found.counted, sole)

        inner = (found.dag.reads.counts > 0) & (reader_counts(found.dag) > 0)
        found = found.only(inner | found.counted)
        if found.dag.nodes > (1 - _WORTHWHILE) * before:
            break
    return found
