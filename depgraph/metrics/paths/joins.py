"""How the values of several nodes become one: the smallest, the union, the sum, or how often the smallest occurs.

A table holds one row a node. Each of these takes two tables to one, row by row, and does so in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[Any]


@dataclass(frozen=True)
class Join:
    """A ufunc that joins tables entry by entry.

    Attributes
    ----------
    ufunc : numpy.ufunc
        Associative and commutative.
    idempotent : bool
        Whether a row may be joined more than once without changing the result.
    """

    ufunc: np.ufunc
    idempotent: bool

    def __call__(self, one: Table, other: Table, out: Table | None = None) -> Table:
        """Join two tables of the same shape."""
        result: Table = self.ufunc(one, other, out=out)
        return result

    def reduce(self, table: Table, axis: int, keepdims: bool = False) -> Table:
        """Join all rows along an axis (not the last one) of a table of at least one row."""
        result: Table = self.ufunc.reduce(table, axis=axis, keepdims=keepdims)
        return result

    def shift(self, table: Table, amount: Any, out: Table | None = None) -> Table:
        """Add an amount to all lengths of a table: a number, or one for each row."""
        result: Table = np.add(table, np.asarray(amount).astype(table.dtype, copy=False), out=out)
        return result

    def fill(self, table: Table, value: Any) -> None:
        """Set all entries to what stands for nothing."""
        table[...] = value

    def settle(self, table: Table) -> None:
        """Bring a table that was just joined into the form that may be joined again, in place."""


MINIMUM = Join(np.minimum, idempotent=True)
UNION = Join(np.bitwise_or, idempotent=True)


class DigitsFullError(Exception):
    """A count that does not fit into its digits."""


@dataclass(frozen=True)
class Digits:
    """Counts as digits in a base that is a power of two, each in an int64 with room to spare: sums carry now and then.

    Attributes
    ----------
    columns : int
        Counts in a row. A row holds the lowest digit of each of them, then the next digit of each, and so on.
    summands : int
        Digits that are added up before there is a chance to carry.
    """

    columns: int
    summands: int

    @property
    def most(self) -> int:
        """Bits of a digit at most: as many as that number of summands leaves room for."""
        return 62 - self.summands.bit_length()

    @property
    def base(self) -> int:
        """Bits of the base. With a few more in use, a few sums need no carry."""
        return self.most - min(8, self.most // 2)

    def split(self, table: Table) -> Table:
        """Return a view of a table that has one more axis, for the places, before that of the columns."""
        return table.reshape(*table.shape[:-1], table.shape[-1] // self.columns, self.columns)

    def carry(self, table: Table) -> None:
        """Make digits smaller than the base where any of them has become too large, in place.

        Raises
        ------
        DigitsFullError
            Where that needs more digits.
        """
        digits = self.split(table)
        rest, highest = digits[..., :-1, :], digits[..., -1, :]
        while table.size and int(table.max()) >> self.most:
            if int(highest.max()) >> self.most:
                raise DigitsFullError
            over = rest >> self.base
            rest &= (1 << self.base) - 1
            digits[..., 1:, :] += over

    def integers(self, table: Table) -> npt.NDArray[np.object_]:
        """Return (rows, columns) Python integers."""
        digits = self.split(table)
        result: npt.NDArray[np.object_] = digits[:, -1].astype(object)
        for k in range(digits.shape[1] - 2, -1, -1):
            result <<= self.base
            result += digits[:, k]
        return result


@dataclass(frozen=True)
class Sum(Join):
    """Sums of counts kept as digits."""

    digits: Digits

    def settle(self, table: Table) -> None:
        """Carry."""
        self.digits.carry(table)


@dataclass(frozen=True)
class SmallestSum:
    """The smallest lengths, and the sums of the counts that belong to them.

    A row of a table, of int64, holds a length for each column, then the digits of the counts. Lengths that are floats
    are there by their bits: those of numbers that are not negative are in the same order as the numbers.

    Attributes
    ----------
    digits : Digits
    floats : bool
        Whether lengths are floats.
    """

    digits: Digits
    floats: bool
    idempotent: bool = False

    def __call__(self, one: Table, other: Table, out: Table | None = None) -> Table:
        """Join two tables of the same shape."""
        result = np.empty_like(one) if out is None else out
        mine, my_counts = self._parts(one)
        others, other_counts = self._parts(other)
        lengths, counts = self._parts(result)
        less, equal = (mine < others)[..., None, :], (mine == others)[..., None, :]
        total = np.where(less, my_counts, other_counts)
        np.add(total, my_counts, out=total, where=equal)
        counts[...] = total
        np.minimum(mine, others, out=lengths)
        return result

    def reduce(self, table: Table, axis: int, keepdims: bool = False) -> Table:
        """Join all rows along an axis."""
        lengths, counts = self._parts(table)
        smallest = lengths.min(axis=axis, keepdims=True)
        total = np.where((lengths == smallest)[..., None, :], counts, 0).sum(axis=axis, keepdims=True)
        result = np.concatenate([smallest, total.reshape(*smallest.shape[:-1], -1)], axis=-1)
        return result if keepdims else result.squeeze(axis)

    def shift(self, table: Table, amount: Any, out: Table | None = None) -> Table:
        """Add an amount to all lengths: a number, or one for each row."""
        result = table.copy() if out is None else out
        lengths = self._lengths(result)
        np.add(self._lengths(table), amount, out=lengths)
        return result

    def fill(self, table: Table, value: Any) -> None:
        """Set all lengths to that value, all counts to 0."""
        self._lengths(table)[...] = value
        table[..., self.digits.columns :] = 0

    def settle(self, table: Table) -> None:
        """Carry."""
        self.digits.carry(table[..., self.digits.columns :])

    def _parts(self, table: Table) -> tuple[Table, Table]:
        columns = self.digits.columns
        return table[..., :columns], self.digits.split(table[..., columns:])

    def _lengths(self, table: Table) -> Table:
        lengths = table[..., : self.digits.columns]
        return lengths.view(np.float64) if self.floats else lengths
