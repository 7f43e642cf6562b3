"""What the graph says and what was measured, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from depgraph.dag.graph import DependencyGraph, Terminal
from depgraph.dag.runs import BoolArray, IntArray
from depgraph.metrics.paths.lengths import path_lengths
from depgraph.verification.verdict import Pairs


@dataclass(eq=False)
class Table:
    """What is known of one input and one output.

    Attributes
    ----------
    source, target : Terminal
    rows : int array
        Numbers of the input positions that are tried; columns stand for all output positions.
    structure : (rows, columns) bool array
        Where the graph has a path.
    compared : bool array
        Where something was tried.
    moved : bool array
        Where a change was seen.
    certain : bool array
        Where one was seen in the model's own precision.
    shown : bool array
        Where a change was seen, or a derivative that the graph accounts for.
    """

    source: Terminal
    target: Terminal
    rows: IntArray
    structure: BoolArray
    compared: BoolArray
    moved: BoolArray
    certain: BoolArray
    shown: BoolArray

    @classmethod
    def of(cls, graph: DependencyGraph, source: Terminal, rows: IntArray, target: Terminal) -> Table:
        """Return a table in which nothing has been measured yet."""
        structure = np.zeros((len(rows), target.count), bool)
        if structure.size:
            structure = path_lengths(graph, (source.name, rows), target.name) >= 0
        return cls(source, target, rows, structure, *(np.zeros_like(structure) for _ in range(4)))

    @property
    def open(self) -> BoolArray:
        """What the graph says and nothing has shown yet."""
        return self.structure & ~self.shown

    @property
    def doubtful(self) -> BoolArray:
        """What changes without a path, but has not in the model's own precision."""
        return self.moved & ~self.structure & ~self.certain

    def pairs(self, mask: BoolArray) -> tuple[Terminal, Terminal, IntArray]:
        """Return some cells as a part of `Pairs`."""
        row, column = np.nonzero(mask)
        return self.source, self.target, np.stack([self.rows[row], column], 1)


def missed(tables: Sequence[Table]) -> Pairs:
    """Return what changes without a path, in the precision that the graph speaks of."""
    return Pairs([table.pairs(table.certain & ~table.structure) for table in tables])


def extra(tables: Sequence[Table]) -> Pairs:
    """Return the paths that nothing has shown."""
    return Pairs([table.pairs(table.open & table.compared) for table in tables])
