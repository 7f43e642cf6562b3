"""The critical path as drawings need it: its nodes, its operations, and the steps between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from depgraph.dag.graph import DependencyGraph
from depgraph.dag.levels import longest_path
from depgraph.dag.runs import IntArray


@dataclass(frozen=True, eq=False)
class Highlight:
    """A path of the position graph that is to stand out; empty where nothing is.

    Attributes
    ----------
    graph : DependencyGraph
    nodes : (length,) int64
    """

    graph: DependencyGraph
    nodes: IntArray

    @classmethod
    def of(cls, graph: DependencyGraph, wanted: bool) -> Highlight:
        """Return the critical path, or nothing where it is not wanted."""
        return cls(graph, longest_path(graph.dag) if wanted else np.zeros(0, np.int64))

    @cached_property
    def members(self) -> frozenset[int]:
        """The nodes of the path, to look up."""
        return frozenset(self.nodes.tolist())

    @cached_property
    def steps(self) -> set[tuple[int, int]]:
        """The edges of the path."""
        return set(pairwise(self.nodes.tolist()))

    @cached_property
    def operations(self) -> IntArray:
        """The operation of each node of the path."""
        return np.searchsorted(self.graph.operation_starts, self.nodes, side="right") - 1

    @cached_property
    def shares(self) -> IntArray:
        """How many nodes of the path each operation holds."""
        return np.bincount(self.operations, minlength=len(self.graph.operations))

    @cached_property
    def operation_steps(self) -> set[tuple[int, int]]:
        """The steps of the path from one operation to another."""
        return {(u, v) for u, v in pairwise(self.operations.tolist()) if u != v}

    def caption(self) -> str:
        """Say how long the path is, and how to recognise it."""
        length = len(self.nodes)
        return f"critical path: {length:,} {'step' if length == 1 else 'steps'} (orange)" if length else ""
