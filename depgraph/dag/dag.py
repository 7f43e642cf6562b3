"""The graph itself: nodes in topological order, and what each one reads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from depgraph.dag.runs import IntArray, Runs
from depgraph.dag.stretches import Stretches, in_chains

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class Dag:
    """A directed acyclic graph of n nodes, numbered 0 to n - 1.

    Attributes
    ----------
    inputs : int
        Nodes ``0 … inputs - 1`` are inputs: they read nothing and count as no work.
    reads : Runs
        Row v holds the nodes that node v reads, as runs.
    blocks : (blocks + 1,) int64
        Boundaries of the blocks, from 0 to n. A node reads only nodes of earlier blocks, so the nodes of a block can be
        worked on together; and no run crosses a boundary. The inputs fill whole blocks.
    """

    inputs: int
    reads: Runs
    blocks: IntArray

    @property
    def nodes(self) -> int:
        """Number of nodes, inputs included."""
        return len(self.reads)

    @cached_property
    def edges(self) -> int:
        """Number of edges: pairs (u, v) where v reads u."""
        return int((self.reads.stops - self.reads.starts).sum())

    @property
    def runs(self) -> int:
        """Number of runs the edges are stored in."""
        return len(self.reads.starts)

    @cached_property
    def block_of(self) -> IntArray:
        """The block of each node."""
        return np.repeat(np.arange(len(self.blocks) - 1), np.diff(self.blocks))

    @cached_property
    def stretches(self) -> Stretches:
        """The nodes in stretches whose values can be computed in one go."""
        return in_chains(self)

    @cached_property
    def levels(self) -> IntArray:
        """The depth of each node where all weigh 1; see `depgraph.dag.levels.depths`. Read only."""
        from depgraph.dag.levels import deepest

        found = deepest(self, np.ones(self.nodes, np.int64))
        found.flags.writeable = False
        return found

    def followed_by(self, rows: Runs) -> Dag:
        """Return the graph with one more node for each row, in a last block: the node reads what is in the row."""
        reads = self.reads.followed_by(rows.split_at(self.blocks[1:]))
        return Dag(self.inputs, reads, np.unique(np.append(self.blocks, self.nodes + len(rows))))

    def edge_arrays(self) -> tuple[IntArray, IntArray]:
        """Return every edge as two arrays (read node, reading node). Memory grows with the number of edges."""
        reader, read = self.reads.elements()
        return read, reader

    def adjacency(self) -> csr_array:
        """Return the (n, n) sparse matrix whose entry [v, u] is 1 where v reads u."""
        from scipy.sparse import csr_array

        _, read = self.reads.elements()
        indptr = np.append(0, np.cumsum(self.reads.sizes))
        return csr_array((np.ones(len(read), np.int8), read, indptr), shape=(self.nodes, self.nodes))
