"""Sets of consecutive node ids, stored as runs ``[start, stop)``.

What an attention row reads is nearly always a stretch of consecutive nodes. Kept as runs, full, causal, windowed and
prefix attention over n positions take O(n) memory instead of O(n²), and nothing is lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def offsets(counts: IntArray) -> IntArray:
    """Return where each of consecutive groups of the given sizes begins, and where the last one ends."""
    result = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=result[1:])
    return result


def ragged_arange(counts: IntArray) -> IntArray:
    """Return ``0..counts[0]-1, 0..counts[1]-1, …`` in one array."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total, dtype=np.int64) - np.repeat(ends - counts, counts)


@dataclass(frozen=True, eq=False)
class Runs:
    """Many sets of node ids, one a row: row r holds the runs ``indptr[r]`` to ``indptr[r + 1]``.

    Attributes
    ----------
    indptr : (rows + 1,) int64
    starts, stops : (runs,) int64
        Within a row the runs are disjoint and ascending.
    """

    indptr: IntArray
    starts: IntArray
    stops: IntArray

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @classmethod
    def empty(cls, rows: int) -> Runs:
        """Return that many empty sets."""
        none = np.zeros(0, np.int64)
        return cls(np.zeros(rows + 1, np.int64), none, none)

    @classmethod
    def singletons(cls, ids: IntArray) -> Runs:
        """Return one set a given id; a negative id stands for the empty set."""
        real = ids >= 0
        starts = ids if real.all() else ids[real]
        return cls(offsets(real.astype(np.int64)), starts, starts + 1)

    @classmethod
    def from_elements(cls, row: IntArray, element: IntArray, rows: int) -> Runs:
        """Return the sets given as (row, element) pairs, in any order, repeats allowed."""
        order = np.lexsort((element, row))
        return cls.from_sorted(row[order], element[order], rows)

    @classmethod
    def from_sorted(cls, row: IntArray, element: IntArray, rows: int) -> Runs:
        """Return the sets given as (row, element) pairs sorted by row, then element."""
        if not len(row):
            return cls.empty(rows)
        fresh = np.empty(len(row), bool)
        fresh[0] = True
        np.not_equal(row[1:], row[:-1], out=fresh[1:])
        fresh[1:] |= element[1:] - element[:-1] > 1
        first = np.flatnonzero(fresh)
        last = np.append(first[1:], len(row)) - 1
        return cls(offsets(np.bincount(row[first], minlength=rows)), element[first], element[last] + 1)

    @property
    def counts(self) -> IntArray:
        """Runs in each row."""
        return np.diff(self.indptr)

    @property
    def rows(self) -> IntArray:
        """The row of each run."""
        return np.repeat(np.arange(len(self)), self.counts)

    @property
    def sizes(self) -> IntArray:
        """Elements in each row."""
        return np.diff(offsets(self.stops - self.starts)[self.indptr])

    def take(self, index: IntArray) -> Runs:
        """Return the rows with the given numbers, in that order; repeats allowed."""
        counts = self.counts[index]
        where = np.repeat(self.indptr[index], counts) + ragged_arange(counts)
        return Runs(offsets(counts), self.starts[where], self.stops[where])

    def followed_by(self, more: Runs) -> Runs:
        """Return these sets and, after them, some more."""
        return Runs(
            np.append(self.indptr, self.indptr[-1] + more.indptr[1:]),
            np.append(self.starts, more.starts),
            np.append(self.stops, more.stops),
        )

    def row(self, number: int) -> IntArray:
        """Return the elements of one row."""
        low, high = self.indptr[number], self.indptr[number + 1]
        return expand(self.starts[low:high], self.stops[low:high])

    def elements(self) -> tuple[IntArray, IntArray]:
        """Return every (row, element) pair, sorted."""
        return np.repeat(self.rows, self.stops - self.starts), expand(self.starts, self.stops)

    def split_at(self, boundaries: IntArray) -> Runs:
        """Return the same sets with runs cut so that none crosses one of the (ascending) boundaries."""
        first = np.searchsorted(boundaries, self.starts, side="right")
        pieces = np.searchsorted(boundaries, self.stops - 1, side="right") - first + 1
        if not len(pieces) or pieces.max() == 1:
            return self
        step = ragged_arange(pieces)
        cut = np.repeat(first, pieces) + step
        inner = step > 0
        starts, stops = np.repeat(self.starts, pieces), np.repeat(self.stops, pieces)
        starts[inner] = boundaries[cut[inner] - 1]
        inner = step < np.repeat(pieces, pieces) - 1
        stops[inner] = boundaries[cut[inner]]
        return Runs(offsets(np.diff(offsets(pieces)[self.indptr])), starts, stops)

    def labels(self) -> IntArray:
        """Return a number for each row, equal exactly where the sets are equal; empty rows get -1.

        Rows are compared through a 64-bit hash of their runs, and every match is then verified run by run.
        """
        counts, label = self.counts, np.full(len(self), -1, np.int64)
        live = np.flatnonzero(counts)
        if not len(live):
            return label
        mixed = _mix(_mix(self.starts.astype(np.uint64)) ^ self.stops.astype(np.uint64))
        _, first, inverse = np.unique(np.add.reduceat(mixed, self.indptr[live]), return_index=True, return_inverse=True)
        same = self.take(live[first][inverse])
        mine = self.take(live)
        if not (
            np.array_equal(same.indptr, mine.indptr)
            and np.array_equal(same.starts, mine.starts)
            and np.array_equal(same.stops, mine.stops)
        ):  # pragma: no cover - needs two sets whose 64-bit hashes collide
            rows: dict[tuple[bytes, bytes], int] = {}
            for position, number in enumerate(live):
                low, high = self.indptr[number], self.indptr[number + 1]
                key = (self.starts[low:high].tobytes(), self.stops[low:high].tobytes())
                inverse[position] = rows.setdefault(key, len(rows))
            first = np.unique(inverse, return_index=True)[1]
        label[live] = in_order_of_first(first, inverse)
        return label


def in_order_of_first(first: IntArray, inverse: IntArray) -> IntArray:
    """Renumber the groups that `numpy.unique` found in the order in which they first occur."""
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[inverse]


def stack(parts: list[Runs]) -> Runs:
    """Return the rows of several lists of sets, one list after the other."""
    if len(parts) == 1:
        return parts[0]
    none = [np.zeros(0, np.int64)]
    return Runs(
        offsets(np.concatenate([part.counts for part in parts] or none)),
        np.concatenate([part.starts for part in parts] or none),
        np.concatenate([part.stops for part in parts] or none),
    )


def union(parts: list[Runs]) -> Runs:
    """Return the row-wise union of several lists of sets of the same length; runs that only touch stay apart."""
    parts = [part for part in parts if len(part.starts)] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    rows, count = np.concatenate([part.rows for part in parts]), len(parts[0])
    starts = np.concatenate([part.starts for part in parts])
    stops = np.concatenate([part.stops for part in parts])
    order = np.lexsort((starts, rows))
    rows, starts, stops = rows[order], starts[order], stops[order]
    # A running maximum of the stops that restarts with each row: lift each row above everything in the rows before it.
    lift = rows * (int(stops.max()) + 1)
    reach = np.maximum.accumulate(stops + lift) - lift
    fresh = np.ones(len(rows), bool)
    fresh[1:] = (rows[1:] != rows[:-1]) | (starts[1:] >= reach[:-1])
    first = np.flatnonzero(fresh)
    last = np.append(first[1:], len(rows)) - 1
    return Runs(offsets(np.bincount(rows[first], minlength=count)), starts[first], reach[last])


def expand(starts: IntArray, stops: IntArray) -> IntArray:
    """Return the elements of the runs, one run after the other."""
    counts = stops - starts
    return np.repeat(starts, counts) + ragged_arange(counts)


def _mix(word: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Scramble 64-bit words: the finaliser of splitmix64 (Steele, Lea and Flood 2014)."""
    word = (word + np.uint64(0x9E3779B97F4A7C15)) & np.uint64(0xFFFFFFFFFFFFFFFF)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
