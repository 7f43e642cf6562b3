"""What a random program reads, measured, and what depgraph says of it.

An output element reads an input element if it is not bit for bit the same after a change of that element alone, at any
of many points; 0 and -0 are the same, and so are NaN and NaN.

depgraph makes one assumption: an unknown floating-point number is within 4096 of zero, and so is what comes out of an
operation of such numbers, unless it is linear in the one unknown that it has (a known number times, or plus, an
unknown). So the arguments are kept small enough: within 64 in general, within 4000 if no statement of the program
combines unknowns or curves them. And a change only counts at points where every statement keeps to the assumption
(`Ordinary`), which is looked up once something changed that had not changed before.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import depgraph
from tests.values.drawing import Program, Statement, evaluated
from tests.values.points import others, point

ORDINARY = 4096.0
COMBINING = frozenset(("curved", "positive", "row", "spread", "matmul", "attention"))


class Model(nn.Module):
    """A program as a model: ``w`` is a parameter, everything else an argument."""

    def __init__(self, program: Program, args: Sequence[Tensor]) -> None:
        super().__init__()
        self.program = program
        for name, value in zip(program.arguments, args, strict=True):
            if name == "w":
                self.w = nn.Parameter(value)

    def forward(self, *args: Tensor) -> tuple[Tensor, ...]:
        return self.program.function(*args, *([self.w] if hasattr(self, "w") else []))


#: The arguments at a point, and after a change, by name.
Witness = tuple[dict[str, Tensor], dict[str, Tensor]]


@dataclass
class Outcome:
    """Pairs of elements, input by output: those that depgraph reports and those that changed, by argument.

    The elements of all results stand behind one another; ``owners`` says whose each of them is. ``witnesses`` has a
    change that showed something which is not reported, by argument and place among the results.
    """

    reported: dict[str, np.ndarray]
    changed: dict[str, np.ndarray]
    owners: list[str]
    witnesses: dict[tuple[str, int], Witness]

    @property
    def missed(self) -> dict[str, list[list[int]]]:
        """The pairs that changed and are not reported."""
        pairs = {k: np.argwhere(self.changed[k] & ~self.reported[k]).tolist() for k in self.reported}
        return {k: found for k, found in pairs.items() if found}

    @property
    def first(self) -> str | None:
        """The first result of which something is missed."""
        places = [place for pairs in self.missed.values() for _, place in pairs]
        return self.owners[min(places)] if places else None

    @property
    def over(self) -> int:
        """How many pairs are reported and did not change."""
        return sum(int((self.reported[k] & ~self.changed[k]).sum()) for k in self.reported)

    @property
    def exact(self) -> int:
        """Of how many pairs what is reported is what was seen."""
        return sum(int((self.reported[k] == self.changed[k]).sum()) for k in self.reported)


def outcome(program: Program, seed: int = 0) -> Outcome:
    """Hold what depgraph says of a program against what the program does."""
    with warnings.catch_warnings(action="ignore"):
        reported, owners = structural(program)
        measuring = Measuring(program, reported, random.Random(seed))
        return Outcome(reported, measuring.changed(), owners, measuring.witnesses)


def structural(program: Program) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return what depgraph reports, for each argument, and whose each element of the results is."""
    args = point(program.arguments, random.Random(1), cap=4.0, patterns=("random",))
    model = Model(program, args)
    names = [name for name in program.arguments if name != "w"]
    given = [a for name, a in zip(program.arguments, args, strict=True) if name != "w"]
    with torch.no_grad():
        results = model(*given)
    targets = [f"output.{k}" for k in range(len(results))] if len(results) > 1 else ["output"]
    positions: dict[Any, Any] = {k: tuple(range(a.ndim)) for k, a in enumerate(given)}
    positions |= {target: tuple(range(r.ndim)) for target, r in zip(targets, results, strict=True)}
    graph = depgraph.trace(model, tuple(given), positions=positions)
    reported = {
        name: np.concatenate([depgraph.dependence_matrix(graph, source=k, target=t).toarray() for t in targets], 1)
        for k, name in enumerate(names)
    }
    return reported, [name for name, r in zip(program.results, results, strict=True) for _ in range(r.numel())]


class Measuring:
    """Changes one element after another.

    Pairs that depgraph does not report are looked for at more points than the others.
    """

    def __init__(self, program: Program, reported: dict[str, np.ndarray], rng: random.Random) -> None:
        self.program, self.reported, self.rng = program, reported, rng
        self.ordinary = Ordinary(program)
        self.witnesses: dict[tuple[str, int], Witness] = {}
        self.found = {name: np.zeros_like(pairs, dtype=bool) for name, pairs in reported.items()}

    def changed(self, few: int = 4, many: int = 12) -> dict[str, np.ndarray]:
        """Return the pairs that changed."""
        with torch.inference_mode():
            for step in range(many):
                cap = self.rng.choice((8.0, 64.0) if self.ordinary.combining else (8.0, 64.0, 4000.0))
                self.at(point(self.program.arguments, self.rng, cap), cap, step >= few)
        return self.found

    def at(self, args: tuple[Tensor, ...], cap: float, unreported: bool) -> None:
        """Change each element at one point."""
        base = self.program.function(*args)
        kept: bool | None = None
        for place, name in enumerate(self.program.arguments):
            for k in range(args[place].numel() if name in self.found else 0):
                row = self.found[name][k]
                sought = ~row & ~self.reported[name][k] if unreported else ~row
                if not sought.any():
                    continue
                for new in others(args[place].reshape(-1)[k], self.rng, cap):
                    changed = args[place].clone()
                    changed.view(-1)[k] = new
                    given = (*args[:place], changed, *args[place + 1 :])
                    after = self.program.function(*given)
                    fresh = differing(base, after) & ~row
                    if not fresh.any():
                        continue
                    if kept is None:
                        kept = self.ordinary(args)
                    if not kept:
                        return
                    if self.ordinary(given):
                        row |= fresh
                        names = self.program.arguments
                        witness = dict(zip(names, args, strict=True)), dict(zip(names, given, strict=True))
                        for j in np.flatnonzero(fresh & ~self.reported[name][k]).tolist():
                            self.witnesses.setdefault((name, j), witness)


def differing(before: Sequence[Tensor], after: Sequence[Tensor]) -> np.ndarray:
    """Return which elements are not the same."""
    parts = []
    for one, other in zip(before, after, strict=True):
        if torch.equal(one, other):  # quick, and the most common case
            parts.append(np.zeros(one.numel(), bool))
        else:
            parts.append(((one != other) & ~((one != one) & (other != other))).reshape(-1).numpy())
    return np.concatenate(parts)


class Ordinary:
    """Tells whether a program keeps to the assumption about its unknowns at a point."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.combining = any(self.kind(s) in COMBINING for s in program.statements)

    def __call__(self, args: Sequence[Tensor]) -> bool:
        values = dict(zip(self.program.arguments, args, strict=True))
        for s in self.program.statements:
            values[s.target] = evaluated(s.expression, values)
            if not self.kept(s, values):
                return False
        return True

    def kind(self, statement: Statement) -> str:
        """Return the kind of a statement, given which of its arguments are unknown."""
        unknown = sum(name in self.program.unknown for name in statement.names)
        if statement.kind in ("sum", "product"):
            return "curved" if unknown > 1 else "free" if statement.kind == "sum" else "scaled"
        return "free" if not unknown and statement.kind != "cast" else statement.kind

    def kept(self, statement: Statement, values: dict[str, Tensor]) -> bool:
        """Tell whether one statement keeps to the assumption."""
        kind, result = self.kind(statement), values[statement.target]
        given = [values[name] for name in statement.names]
        if kind == "free":
            return True
        if kind == "cast":
            return all(held(a, result.dtype) for a in given if a.is_floating_point())
        if not result.is_floating_point():
            return True
        size = result.double().abs()
        sizes = [a.double().abs() for a in given]
        if kind in ("row", "spread"):
            if any(bool((ordinary(a).sum(-1) > ORDINARY).any()) for a in sizes):
                return False
            sizes = [a.amax(-1, keepdim=True) for a in sizes]
        if kind in ("matmul", "attention") and not all(
            products(ordinary(one), ordinary(other)) for k, one in enumerate(sizes) for other in sizes[k:]
        ):
            return False
        largest = spread(sizes, size)
        if bool((size.isnan() & largest.isfinite()).any()):
            return False
        if kind == "scaled":
            return not bool((size.isinf() & largest.isfinite()).any())
        if bool(((size > ORDINARY) & (largest <= ORDINARY)).any()):
            return False
        return kind not in ("positive", "spread") or not bool(((size == 0) & (largest <= ORDINARY)).any())


def held(value: Tensor, dtype: torch.dtype) -> bool:
    """Tell whether an integer type holds some floating-point numbers: what becomes of others is not defined."""
    low, high = float(torch.iinfo(dtype).min), float(torch.iinfo(dtype).max + 1)
    return bool(((value.double() > low - 1) & (value >= low) & (value < high)).all())


def ordinary(size: Tensor) -> Tensor:
    """Return the numbers of ordinary size, and 0 for the others."""
    return torch.where(size <= ORDINARY, size, 0.0)


def products(one: Tensor, other: Tensor) -> bool:
    """Tell whether a contraction of two tensors is of ordinary size, whichever way it is done."""
    return not one.numel() or float(one.max() * other.max()) * max(one.shape[-1], other.shape[-1]) <= ORDINARY


def spread(sizes: list[Tensor], result: Tensor) -> Tensor:
    """Return the largest argument of each element of a result; where that cannot be told, of all of them."""
    largest = torch.zeros_like(result)
    for size in sizes:
        size = size.nan_to_num(float("inf"), posinf=float("inf"))
        try:
            largest = torch.maximum(largest, size.broadcast_to(result.shape))
        except RuntimeError:
            largest = torch.maximum(largest, size.max())
    return largest
