"""Which output position depends on which input position."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from depgraph.dag.graph import DependencyGraph
from depgraph.dag.runs import IntArray, offsets
from depgraph.metrics.paths.joins import UNION, Table
from depgraph.metrics.paths.passage import Passage
from depgraph.metrics.paths.sweep import Sweep
from depgraph.metrics.select import Selection

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_WORD = 64
#: Pairs of a source and a target that are looked at, a byte each, at a time.
_PAIRS = 1 << 26


def dependence_matrix(graph: DependencyGraph, source: Selection = None, target: Selection = None) -> csr_array:
    """Return which output position depends on which input position.

    Parameters
    ----------
    graph : DependencyGraph
    source : optional
        A key of ``graph.inputs``, or (key, positions) for some positions only. The first tracked input by default.
    target : optional
        A key of ``graph.outputs``, or (key, positions). The first output by default.

    Returns
    -------
    (inputs, outputs) scipy.sparse.csr_array of bool
        True where there is a path, in the rows and columns of `path_lengths`. Besides what the graph itself takes up,
        memory grows with the number of those entries.

    Raises
    ------
    PositionError
        Where a name or a position does not exist.
    GraphError
        Where the graph has no inputs or no outputs.

    Examples
    --------
    >>> import networkx as nx
    >>> import depgraph
    >>> rnn = nx.DiGraph([("x0", "h0"), ("x1", "h1"), ("x2", "h2"), ("h0", "h1"), ("h1", "h2")])
    >>> graph = depgraph.from_networkx(rnn, sources=["x0", "x1", "x2"], targets=["h0", "h1", "h2"])
    >>> depgraph.dependence_matrix(graph).toarray().astype(int)
    array([[1, 1, 1],
           [0, 1, 1],
           [0, 0, 1]])
    """
    from scipy.sparse import csr_array

    passage = Passage.between(graph, source, target)
    number = np.int32 if passage.targets <= np.iinfo(np.int32).max else np.int64
    counts, reached = np.zeros(len(passage.sources), np.int64), [np.zeros(0, number)]
    if passage.exists:
        sweep = Sweep(passage.stretches, UNION)
        nothing = passage.with_targets(np.zeros(passage.dag.nodes, np.int64))
        for part in _whole_words(passage):
            sources = passage.sources[part]
            words = passage.arrive(sweep, nothing, 0, _starts(passage, sources)).table
            columns = max(1, _PAIRS // (_WORD * len(words)))
            for first in range(0, words.shape[1], columns):
                # Little-endian bytes: bit k of the row of bytes is source k.
                some = np.ascontiguousarray(words[:, first : first + columns].astype("<u8", copy=False))
                bits = np.unpackbits(some.view(np.uint8), axis=1, bitorder="little")
                depends = np.ascontiguousarray(bits.T[: len(sources) - first * _WORD]).view(bool)
                low = part.start + first * _WORD
                counts[low : low + len(depends)] = np.count_nonzero(depends, axis=1)
                reached.append(np.nonzero(depends)[1].astype(number))
    indices = np.concatenate(reached)
    return csr_array((np.ones(len(indices), bool), indices, offsets(counts)), shape=passage.shape)


def _whole_words(passage: Passage) -> list[slice]:
    """Return which sources to take at a time: so many that they fill words, but for the last ones."""
    parts = list(passage.parts(1 / 8))
    size = -(-parts[0].stop // _WORD) * _WORD
    return [slice(first, first + size) for first in range(0, len(passage.sources), size)]


def _starts(passage: Passage, sources: IntArray) -> Callable[[int], Table | None]:
    """Return the tables of the stretches of inputs: of each input, which of the sources it is."""

    def blank(rows: int) -> Table:
        return np.zeros((rows, -(-len(sources) // _WORD)), np.uint64)

    def mark(table: Table, rows: IntArray, columns: IntArray) -> None:
        word, bit = np.divmod(columns, _WORD)
        np.bitwise_or.at(table, (rows, word), np.uint64(1) << bit.astype(np.uint64))

    return passage.starts(sources, blank, mark)
