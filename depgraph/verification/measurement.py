"""Which outputs change with which inputs: found by trying, one input position at a time, and by derivatives.

A change proves a dependence. A derivative that is not zero nearly does: it may come from a gradient that its author
made up, so it counts against the graph only where a small step shows a change as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from depgraph.dag.graph import DependencyGraph, Terminal
from depgraph.dag.runs import BoolArray, IntArray
from depgraph.tracing.settings import SEED
from depgraph.verification.bundles import block, changed, not_finite, replaced, rounding, rows, undefined
from depgraph.verification.subject import Source, State, Subject
from depgraph.verification.tables import Table
from depgraph.verification.values import KINDS, Draws, Kind

#: In the first draws everything is tried; in later ones what would show nothing new is passed over.
_THOROUGH = 2


@dataclass(frozen=True, eq=False)
class _Draw:
    """Values for the inputs and the parameters, and what the model makes of them."""

    number: int
    seed: int
    kind: Kind
    values: list[Tensor]
    state: State
    base: list[Tensor]

    @property
    def thorough(self) -> bool:
        return self.number < _THOROUGH


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
    """

    def __init__(
        self, subject: Subject, graph: DependencyGraph, example: list[Tensor], draws: int, limit: int,
        advance: Callable[[int, int], None],
    ) -> None:  # fmt: skip
        self.subject, self.example, self.draws, self.advance = subject, example, draws, advance
        rng = np.random.default_rng(0)
        self.targets = list(graph.outputs.values())
        self.places = [i for i, s in enumerate(subject.sources) if not s.known and s.value.numel()]
        self.smooth = [k for k, i in enumerate(self.places) if _is_smooth(subject.sources[i].value)]
        chosen = [_some(subject.sources[i].terminal.count, limit, rng) for i in self.places]
        self.columns = [
            _some(target.count if self.smooth and _is_smooth(output) else 0, limit, rng)
            for target, output in zip(self.targets, example, strict=True)
        ]
        self.tables = [
            [Table.of(graph, self._source(k).terminal, chosen[k], target) for target in self.targets]
            for k in range(len(self.places))
        ]
        self.taken = [np.zeros(len(rows), bool) for rows in chosen]
        self._done, self._each = 0, sum(map(len, chosen)) + sum(map(len, self.columns))
        again = subject.run(self._own(), subject.state, 0)
        self.steady = [
            np.zeros(target.count, bool) if again is None else ~_changed(output, again[t], target)
            for t, (target, output) in enumerate(zip(self.targets, example, strict=True))
        ]

    def _source(self, k: int) -> Source:
        return self.subject.sources[self.places[k]]

    def _own(self) -> list[Tensor]:
        return [source.value for source in self.subject.sources]

    def run(self) -> None:
        """Take all draws, or as many as it takes to see everything that the graph says."""
        for number in range(self.draws):
            if number >= _THOROUGH and not any(table.open.any() for row in self.tables for table in row):
                break
            draw = self._drawn(number)
            self._perturb(draw)
            if self.smooth:
                self._differentiate(draw)

    def _drawn(self, number: int) -> _Draw:
        """Draw other values and parameters; the first time, return the model's own.

        Where the model does not take them, or makes less of them than of its own, some or all of its own are kept.
        """
        subject, kind, own = self.subject, KINDS[number % len(KINDS)], self._own()
        if number == 0:
            return _Draw(number, SEED, kind, own, subject.state, self.example)
        draws = Draws(number)
        state = {n: draws.parameter(t) if n in subject.parameters else t for n, t in subject.state.items()}
        values = [
            source.value if source.known else draws.parameter(source.value) if source.state
            else draws.argument(source.value, kind)
            for source in subject.sources
        ]  # fmt: skip
        for given, weights in ((values, state), (own, state), (values, subject.state)):
            seed = SEED if subject.call.drew else number  # what it drew unseen may have decided something
            base = subject.base(given, weights, seed)
            if base is not None and not_finite(base) <= not_finite(self.example):
                return _Draw(number, seed, kind, given, weights, base)
        return _Draw(number, SEED, kind, own, subject.state, subject.base(own, subject.state, SEED) or self.example)

    def _perturb(self, draw: _Draw) -> None:
        draws = Draws(1000 + draw.number)
        for k, tables in enumerate(self.tables):
            for row in range(len(tables[0].rows)):
                self._step()
                if draw.thorough or any(table.open[row].any() for table in tables):
                    # Where a large step leads another way, a small one may not.
                    _ = self._move(draw, k, row, draw.kind, draws) or self._move(draw, k, row, "nudge", draws)

    def _move(self, draw: _Draw, k: int, row: int, kind: Kind, draws: Draws) -> bool:
        """Change one input position and note what changes with it; return whether the model took that."""
        place, source = self.places[k], self._source(k).terminal
        value, axes = draw.values[place], source.positions
        position = _position(source, int(self.tables[k][0].rows[row]))
        other = draws.other(block(value, axes, position), value, kind)
        if other is None:
            return False
        given = list(draw.values)
        given[place] = replaced(value, axes, position, other)
        after = self.subject.run(given, draw.state, draw.seed)
        if after is None:
            return False
        self.taken[k][row] = True
        for table, old, new, steady in zip(self.tables[k], draw.base, after, self.steady, strict=True):
            seen = _changed(old, new, table.target) & steady
            table.compared[row] |= steady & ~(_undefined(old, table.target) & _undefined(new, table.target))
            table.moved[row] |= seen
            table.shown[row] |= seen
        return True

    def _differentiate(self, draw: _Draw) -> None:
        """Look at the derivatives of each chosen output position: of all that is there, weighed at random."""
        leaves = {i: draw.values[i].detach().clone().requires_grad_() for i in (self.places[k] for k in self.smooth)}
        with torch.enable_grad():
            given = [leaves.get(i, value) for i, value in enumerate(draw.values)]
            outputs = self.subject.run(given, draw.state, draw.seed)
        draws, doubtful = Draws(2000 + draw.number), set[tuple[int, int]]()
        for t, target in enumerate(self.targets):
            for column in map(int, self.columns[t]):
                self._step()
                wanted = draw.thorough or any(self.tables[k][t].open[:, column].any() for k in self.smooth)
                if outputs is None or not wanted:
                    continue
                found = _derivative(outputs[t], target, column, list(leaves.values()), draws)
                for k, gradient in zip(self.smooth, found, strict=True):
                    if gradient is not None:
                        table = self.tables[k][t]
                        seen = _not_zero(gradient, table.source)[table.rows]
                        table.shown[:, column] |= seen & table.structure[:, column]
                        doubtful |= {(k, int(row)) for row in np.flatnonzero(seen & ~table.structure[:, column])}
        del outputs
        draws = Draws(3000 + draw.number)
        for k, row in sorted(doubtful):
            self._move(draw, k, row, "nudge", draws)

    def _step(self) -> None:
        self._done += 1
        self.advance(self._done, self.draws * self._each)


def _some(count: int, limit: int, rng: np.random.Generator) -> IntArray:
    """Return the numbers of all positions, or in ascending order of a random choice of so many."""
    return np.arange(count) if count <= limit else np.sort(rng.choice(count, limit, replace=False))


def _position(terminal: Terminal, number: int) -> tuple[int, ...]:
    return tuple(int(p) for p in np.unravel_index(number, terminal.grid)) if terminal.grid else ()


def _changed(before: Tensor, after: Tensor, target: Terminal) -> BoolArray:
    found: BoolArray = changed(before, after, target.positions).cpu().numpy()
    return found


def _undefined(output: Tensor, target: Terminal) -> BoolArray:
    found: BoolArray = undefined(output, target.positions).cpu().numpy()
    return found


def _derivative(
    output: Tensor, target: Terminal, column: int, leaves: Sequence[Tensor], draws: Draws
) -> Sequence[Tensor | None]:
    """Return the derivatives of everything at an output position, weighed at random; None where there are none."""
    if not output.requires_grad:
        return [None] * len(leaves)
    zeros, axes, position = torch.zeros_like(output), target.positions, _position(target, column)
    weights = replaced(zeros, axes, position, draws.normal(block(zeros, axes, position)))
    try:
        return torch.autograd.grad(output, leaves, weights, retain_graph=True, allow_unused=True)
    except RuntimeError:  # an operation without a derivative
        return [None] * len(leaves)


def _not_zero(gradient: Tensor, source: Terminal) -> BoolArray:
    """Return at which positions a derivative is not zero, by more than rounding."""
    size = torch.where(gradient.isfinite(), gradient.abs(), 0)
    noise = rounding(gradient.dtype) * float(size.max())
    found: BoolArray = (rows(size, source.positions) > noise).any(1).cpu().numpy()
    return found


def _is_smooth(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()
