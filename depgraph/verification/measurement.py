"""Which outputs change with which inputs: found by trying, one input position at a time, and by derivatives.

A change proves a dependence. A derivative that is not zero nearly does: it may come from a gradient that its author
made up, so it counts against the graph only where a small step shows a change as well. A graph speaks of a model in
its own precision: what shows in a wider one alone, since less underflows there, does not count against it either.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from depgraph.dag.graph import DependencyGraph, Terminal
from depgraph.dag.runs import BoolArray, IntArray
from depgraph.tracing.settings import SEED
from depgraph.verification.bundles import block, changed, not_finite, replaced, undefined
from depgraph.verification.derivatives import derivative, not_zero, reason
from depgraph.verification.special import numbers_taken
from depgraph.verification.subject import Source, Subject
from depgraph.verification.tables import Table
from depgraph.verification.values import KINDS, Draws, Kind, dense, is_real_or_complex

#: In the first draws everything is tried; in later ones what would show nothing new is passed over.
_THOROUGH = 2
#: Numbers that may mean more than others, tried at each position in each draw.
_SPECIAL = 3


@dataclass(frozen=True, eq=False)
class _Draw:
    """Values for the inputs and the parameters, and what the model makes of them."""

    number: int
    seed: int
    kind: Kind
    weights: int | None
    values: list[Tensor]
    base: list[Tensor]


class Measurement:
    """A comparison in progress.

    Parameters
    ----------
    subject : Subject
    graph : DependencyGraph
    example : list of tensors
        What the model returns on its own values.
    draws, limit : int
        As in `depgraph.verify`.
    advance : callable
        Told how many steps of how many are done.

    Attributes
    ----------
    places : list of int
        The sources that are changed, by their number.
    tables : list of list of Table
        For each of them, one table an output.
    taken : list of bool array
        For each of them, which of its positions the model takes other values at.
    steady : list of bool array
        For each output the positions that are the same when nothing changes.
    underived : dict
        Why there are no derivatives of an output, by its name.
    """

    def __init__(
        self, subject: Subject, graph: DependencyGraph, example: list[Tensor], draws: int, limit: int,
        advance: Callable[[int, int], None],
    ) -> None:  # fmt: skip
        self.subject, self.example, self.draws, self.advance = subject, example, draws, advance
        rng = np.random.default_rng(0)
        self.targets = list(graph.outputs.values())
        self.places = [i for i, s in enumerate(subject.sources) if not s.known and s.value.numel()]
        self.smooth = [k for k, i in enumerate(self.places) if is_real_or_complex(subject.sources[i].value)]
        chosen = [_some(subject.sources[i].terminal.count, limit, rng) for i in self.places]
        self.columns = [
            _some(target.count if self.smooth and is_real_or_complex(output) else 0, limit, rng)
            for target, output in zip(self.targets, example, strict=True)
        ]
        self.tables = [
            [Table.of(graph, self._source(k).terminal, chosen[k], target) for target in self.targets]
            for k in range(len(self.places))
        ]
        self.taken = [np.zeros(len(rows), bool) for rows in chosen]
        self.underived: dict[str, str] = {}
        self._evidence: list[tuple[_Draw, int, int, Tensor]] = []
        trials = sum(map(len, chosen))
        self._done, self._steps = 0, draws * (trials + sum(map(len, self.columns))) + (not subject.own) * trials
        self.steady = self._steady()
        self._numbers = [numbers_taken(subject, place) for place in self.places]

    def _steady(self) -> list[BoolArray]:
        again = self.subject.run(self._own(), SEED)
        return [
            np.zeros(target.count, bool) if again is None else ~_changed(output, again[t], target)
            for t, (target, output) in enumerate(zip(self.targets, self.example, strict=True))
        ]

    def _source(self, k: int) -> Source:
        return self.subject.sources[self.places[k]]

    def _own(self) -> list[Tensor]:
        return [source.value for source in self.subject.sources]

    def run(self) -> None:
        """Take all draws, or as many as it takes to see everything that the graph says."""
        for number in range(self.draws):
            thorough = _THOROUGH + (len(self.smooth) < len(self.places))
            if number >= thorough and not any(table.open.any() for row in self.tables for table in row):
                break
            draw = self._drawn(number)
            self._perturb(draw)
            if self.smooth:
                self._differentiate(draw)

    def narrow(self, subject: Subject, example: list[Tensor]) -> None:
        """Take one draw more in the model's own precision; then look again at what a wider one alone has shown."""
        steady, evidence = self.steady, self._evidence
        self.subject, self.example, self._evidence = subject, example, []
        self.steady = self._steady()
        self._perturb(self._drawn(1))
        for wide, found in itertools.groupby(evidence, lambda one: one[0]):
            again = self._again(wide)
            for _, k, row, other in found:
                if again is not None and any(table.doubtful[row].any() for table in self.tables[k]):
                    self._try(again, k, row, other.to(again.values[self.places[k]].dtype), exactly=True)
        for number in range(_THOROUGH + 1):
            doubtful = [
                (k, row)
                for k, tables in enumerate(self.tables)
                for row in range(len(self.taken[k]))
                if any(table.doubtful[row].any() for table in tables)
            ]
            if not doubtful:
                break
            draw, draws = self._drawn(number), Draws(4000 + number)
            for k, row in doubtful:
                self._move(draw, k, row, "leap", draws, exactly=True)
        self.steady = steady

    def _again(self, draw: _Draw) -> _Draw | None:
        """Return the same draw in the precision of now, None where the model does not take it."""
        values = [v.to(own.dtype) for v, own in zip(draw.values, self._own(), strict=True)]
        self.subject.weigh(draw.weights)
        base = self.subject.base(values, draw.seed)
        return None if base is None else replace(draw, values=values, base=base)

    def _drawn(self, number: int) -> _Draw:
        """Draw other values and parameters; the first time, return the model's own.

        Where the model does not take them, or makes less of them than of its own, some or all of its own are kept.
        """
        subject, kind, own = self.subject, KINDS[number % len(KINDS)], self._own()
        subject.weigh(None)
        if number == 0:
            return _Draw(number, SEED, kind, None, own, subject.base(own, SEED) or self.example)
        draws = Draws(number)
        numbers = dict(zip(self.places, self._numbers, strict=True))
        plain: list[Tensor] = []
        special: list[Tensor] = []
        for i, source in enumerate(subject.sources):
            for values, known in ((plain, ()), (special, numbers.get(i, ()))):
                if source.known or (values is special and not known):
                    values.append(source.value if source.known else plain[-1])
                elif source.held is not None and is_real_or_complex(source.value):
                    values.append(draws.parameter(source.value))
                else:
                    values.append(draws.argument(source.value, kind, known))
        attempts = [(special, number)] if any(self._numbers) else []
        for given, weights in (*attempts, (plain, number), (own, number), (plain, None)):
            seed = SEED if subject.drew else number  # what it drew unseen may have decided something
            subject.weigh(weights)
            base = subject.base(given, seed)
            if base is not None and not_finite(base) <= not_finite(self.example):
                return _Draw(number, seed, kind, weights, given, base)
        subject.weigh(None)
        return _Draw(number, SEED, kind, None, own, subject.base(own, SEED) or self.example)

    def _perturb(self, draw: _Draw) -> None:
        draws = Draws(1000 + draw.number)
        for k, tables in enumerate(self.tables):
            thorough = draw.number < _THOROUGH + (k not in self.smooth)
            for row in range(len(tables[0].rows)):
                self._step()
                if thorough or any(table.open[row].any() for table in tables):
                    # Where a large step leads another way, a small one may not.
                    _ = self._move(draw, k, row, draw.kind, draws) or self._move(draw, k, row, "nudge", draws)
                    for number in range(_SPECIAL if self._numbers[k] else 0):
                        self._move(draw, k, row, draw.number * _SPECIAL + number, draws)

    def _move(self, draw: _Draw, k: int, row: int, kind: Kind | int, draws: Draws, *, exactly: bool = False) -> bool:
        """Change one input position and note what changes with it; return whether the model took that.

        The kind may be the number of one among those that may mean more than others.
        """
        place = self.places[k]
        value, (axes, position) = draw.values[place], self._at(k, row)
        part, numbers = block(value, axes, position), self._numbers[k]
        other = draws.special(part, numbers, kind) if isinstance(kind, int) else draws.other(part, value, kind)
        return other is not None and self._try(draw, k, row, other, exactly=exactly)

    def _at(self, k: int, row: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the axes and the indices of an input position."""
        source = self._source(k).terminal
        return source.positions, _position(source, int(self.tables[k][0].rows[row]))

    def _try(self, draw: _Draw, k: int, row: int, other: Tensor, *, exactly: bool) -> bool:
        """Note what changes with other values at an input position; return whether the model took them.

        Where the smallest difference counts, ``exactly``, the same numbers would have been computed in the same way.
        """
        place, given = self.places[k], list(draw.values)
        given[place] = replaced(given[place], *self._at(k, row), other)
        after = self.subject.run(given, draw.seed)
        if after is None:
            return False
        self.taken[k][row] = True
        for table, old, new, steady in zip(self.tables[k], draw.base, after, self.steady, strict=True):
            seen = _changed(old, new, table.target, exactly=exactly) & steady
            table.compared[row] |= steady & ~_undefined(old, new, table.target)
            table.moved[row] |= seen
            table.shown[row] |= seen
            if self.subject.own:
                table.certain[row] |= seen
            elif (seen & ~table.structure[row]).any():
                self._evidence.append((draw, k, row, other))
        return True

    def _differentiate(self, draw: _Draw) -> None:
        """Look at the derivatives of each chosen output position: of all that is there, weighed at random."""
        doubtful: set[tuple[int, int]] = set()
        expected = self._done + sum(map(len, self.columns))
        try:
            with self.subject.followed(draw.values, [self.places[k] for k in self.smooth], draw.seed) as (
                outputs,
                leaves,
            ):
                if outputs is not None:
                    self._derive(draw, outputs, leaves, doubtful)
        except Exception as error:  # the model does not take it that its inputs are followed
            self.underived.setdefault("the outputs", reason(error))
        while self._done < expected:
            self._step()
        draws = Draws(3000 + draw.number)
        for k, row in sorted(doubtful):
            self._move(draw, k, row, "nudge", draws)

    def _derive(
        self, draw: _Draw, outputs: list[Tensor], leaves: list[Tensor], doubtful: set[tuple[int, int]]
    ) -> None:  # fmt: skip
        draws = Draws(2000 + draw.number)
        for t, target in enumerate(self.targets):
            for column in map(int, self.columns[t]):
                self._step()
                wanted = draw.number < _THOROUGH or any(self.tables[k][t].open[:, column].any() for k in self.smooth)
                if not wanted:
                    continue
                try:
                    found = derivative(dense(outputs[t]), target, _position(target, column), leaves, draws)
                except Exception as error:  # an operation without a derivative, or one that fails
                    self.underived.setdefault(target.name, reason(error))
                    continue
                for k, gradient in zip(self.smooth, found, strict=True):
                    if gradient is not None:
                        table = self.tables[k][t]
                        seen = not_zero(dense(gradient), table.source)[table.rows]
                        table.shown[:, column] |= seen & table.structure[:, column]
                        doubtful |= {(k, int(row)) for row in np.flatnonzero(seen & ~table.structure[:, column])}

    def _step(self) -> None:
        self._done += 1
        self.advance(self._done, self._steps)


def _some(count: int, limit: int, rng: np.random.Generator) -> IntArray:
    """Return the numbers of all positions, or in ascending order of a random choice of so many."""
    return np.arange(count) if count <= limit else np.sort(rng.choice(count, limit, replace=False))


def _position(terminal: Terminal, number: int) -> tuple[int, ...]:
    return tuple(int(p) for p in np.unravel_index(number, terminal.grid)) if terminal.grid else ()


def _changed(before: Tensor, after: Tensor, target: Terminal, *, exactly: bool = False) -> BoolArray:
    found: BoolArray = changed(before, after, target.positions, exactly=exactly).cpu().numpy()
    return found


def _undefined(before: Tensor, after: Tensor, target: Terminal) -> BoolArray:
    found: BoolArray = (undefined(before, target.positions) & undefined(after, target.positions)).cpu().numpy()
    return found
