"""Random programs as Python source: what they are, and how they are drawn from the grammar."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.values import grammar, points

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTEGERS = (torch.int8, torch.uint8, torch.int32, torch.int64)
#: The most elements that a tensor of a program may have.
MOST = 18
#: At how many points the statements are tried.
TRIED = 5
#: What PyTorch raises where a statement does not fit the shapes and types that it is given: another is drawn.
REFUSED = (RuntimeError, IndexError, TypeError, ValueError, ZeroDivisionError, NotImplementedError, AttributeError)

PLACE = re.compile(r"\{([a-z]+)\d?\}")


@dataclass(frozen=True)
class Statement:
    """``target = expression``, and the kind that its template is listed under."""

    target: str
    expression: str
    kind: str

    @cached_property
    def names(self) -> list[str]:
        """The variables of the expression, as often as they occur."""
        return [n for n in re.findall(r"(?<![\w.])[a-z]\d*(?![\w(=])", self.expression) if n != "e"]


@dataclass(frozen=True)
class Program:
    """A function of tensors that returns some of its variables; ``w`` is a parameter of the model."""

    arguments: points.Arguments
    statements: tuple[Statement, ...]
    results: tuple[str, ...]

    @property
    def source(self) -> str:
        """The program as text to read and to paste."""
        told = [f"    # {name}: {dtype}, {shape}" for name, (dtype, shape) in self.arguments.items()]
        lines = [f"    {s.target} = {s.expression}" for s in self.statements]
        head = f"def program({', '.join(self.arguments)}):"
        return "\n".join([head, *told, *lines, f"    return {', '.join(self.results)}"])

    @cached_property
    def function(self) -> Callable[..., tuple[Tensor, ...]]:
        """The program as a function, which returns a tuple."""
        space: dict[str, Any] = {"torch": torch, "F": F}
        exec(self.source, space)
        found = space["program"]
        return found if len(self.results) > 1 else lambda *args: (found(*args),)

    @cached_property
    def unknown(self) -> frozenset[str]:
        """The variables that come from arguments."""
        names = set(self.arguments)
        for s in self.statements:
            if names.intersection(s.names):
                names.add(s.target)
        return frozenset(names)

    def pruned(self, *results: str) -> Program:
        """Return the program of some results, without the statements and arguments that these do not read."""
        needed, kept = set(results), []
        for s in reversed(self.statements):
            if s.target in needed:
                kept.append(s)
                needed.update(s.names)
        arguments = {k: v for k, v in self.arguments.items() if k in needed}
        return Program(arguments, tuple(reversed(kept)), results)


class Draft:
    """A program being drawn: each statement is run at once, so that the next ones fit what it returned."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.width = self.rng.choice((3, 3, 4))
        main = self.rng.choice((*FLOATS, torch.float32, torch.float32, torch.float64))
        self.main = main
        self.arguments = {"x": (main, self.shape())}
        if self.rng.random() < 0.7:
            self.arguments["y"] = (self.rng.choice((main, main, main, *FLOATS, *INTEGERS)), self.shape())
        if self.rng.random() < 0.8:
            self.arguments["m"] = (self.rng.choice((torch.bool, torch.bool, main, *INTEGERS)), self.shape())
        if self.rng.random() < 0.15:
            self.arguments["w"] = (main, (1,))
        # The values of all variables at a few points.
        self.tried: list[dict[str, Tensor]] = [
            dict(zip(self.arguments, points.point(self.arguments, self.rng, cap=8.0), strict=True))
            for _ in range(TRIED)
        ]
        self.statements: list[Statement] = []
        self.used: set[str] = set()

    def shape(self) -> tuple[int, ...]:
        return (self.width,) if self.rng.random() < 0.8 else (2, self.width)

    def program(self) -> Program | None:
        """Return a program, or None where none came about."""
        for _ in range(3):
            for stage in self.rng.choice(grammar.ROUTES):
                if isinstance(stage, tuple) or self.rng.random() < 0.5:
                    self.add(self.rng.choice(stage))
        found = Program(self.arguments, tuple(self.statements), ())
        results = [s.target for s in self.statements if s.target in found.unknown]
        return found.pruned(*results) if results else None

    def add(self, templates: grammar.Templates) -> None:
        """Add a statement after one of some templates, if one fits."""
        for _ in range(12):
            kind, template = self.rng.choice(templates)
            statement = Statement(f"a{len(self.statements)}", self.filled(template), kind)
            try:
                with torch.no_grad(), warnings.catch_warnings(action="ignore"):
                    values = [evaluated(statement.expression, tried) for tried in self.tried]
            except REFUSED:
                continue
            if not all(isinstance(v, Tensor) and 1 <= v.ndim <= 3 and 1 <= v.numel() <= MOST for v in values):
                continue
            if len({v.shape for v in values}) > 1:
                continue
            # Of results that seem to be constant some are kept: they may not be, after all.
            if all(torch.equal(v.nan_to_num(), values[0].nan_to_num()) for v in values) and self.rng.random() < 0.7:
                continue
            for tried, value in zip(self.tried, values, strict=True):
                tried[statement.target] = value
            self.used.update(statement.names)
            self.statements.append(statement)
            return

    def filled(self, template: str) -> str:
        """Fill the places of a template."""
        chosen: dict[str, str] = {}

        def fill(place: re.Match[str]) -> str:
            if place[0] not in chosen:
                chosen[place[0]] = self.choose(place[1], chosen.values())
            return chosen[place[0]]

        return PLACE.sub(fill, template)

    def choose(self, place: str, chosen: Collection[str] = ()) -> str:
        """Return what is written in a place, given what is in other places of the same template."""
        if place in ("f", "i", "b", "u"):
            return self.variable(place, chosen)
        if place == "n":
            return str(self.width)
        if place == "fill":
            return (
                self.choose("low")
                if self.rng.random() < 0.6
                else self.rng.choice(("0.0", "1e30", "1.0", 'float("inf")'))
            )
        if place in NUMBERS:
            return self.rng.choice(NUMBERS[place])
        options = LITERALS[place]
        dtype = {"ki": self.rng.choice(INTEGERS), "kb": torch.bool, "index": torch.int64}.get(place, self.main)
        if place == "index":
            options = tuple(range(self.width))
        numbers = [self.rng.choice(options) for _ in range(self.width)]
        if place == "krow":
            return "torch.tensor([[True], [False]])"
        written = ", ".join('float("-inf")' if k == float("-inf") else str(k) for k in numbers)
        return f"torch.tensor([{written}], dtype={dtype})"

    def variable(self, place: str, chosen: Collection[str] = ()) -> str:
        """Return a variable of a type: the last result and those that nothing reads yet are chosen more often."""
        fits: dict[str, Callable[[torch.dtype], bool]] = {
            "f": lambda d: d.is_floating_point, "b": lambda d: d == torch.bool, "u": lambda d: True,
            "i": lambda d: not d.is_floating_point and d != torch.bool,
        }  # fmt: skip
        names = [name for name, value in self.tried[0].items() if fits[place](value.dtype)]
        if not names or (place in "ib" and self.rng.random() < 0.05):
            return f"({self.variable('f')} > 0)" if place == "b" else f"{self.variable('b')}.to({self.choose('id')})"
        last = self.statements[-1].target if self.statements else None
        weights = [0.1 if n in chosen else 16 if n == last else 4 if n not in self.used else 1 for n in names]
        return self.rng.choices(names, weights)[0]


NUMBERS: dict[str, Sequence[str]] = {
    "low": ('float("-inf")', 'float("-inf")', "-1e9", "-1e9", "-1e4", "-1e4", "-65504.0", "-3e38", "-30000.0"),
    "num": ("1e-50", "1e-3", "0.125", "0.5", "2.0", "10", "100", "1e6", "1e9", "-1", "-0.5", "0", "3"),
    "pos": ("0.5", "2", "3.0", "1", "10.0", "1e-3"),
    "c": ("0", "0", "0.5", "-1", "1", "100", "-5000.0", "5000.0", "1e4"),
    "s": ("0", "1", "2", "3", "7"),
    "fd": [str(dtype) for dtype in FLOATS],
    "id": [str(dtype) for dtype in INTEGERS],
}
LITERALS: dict[str, Sequence[Any]] = {
    "kf": (0.0, 1.0, -1.0, 2.0, 0.5, -3.0),
    "kz": (0.0, 1.0, 0.0, -2.0),
    "kmask": (0.0, 0.0, float("-inf"), float("-inf"), -1e9, -1e4, -300.0),
    "kscale": (1.0, 1e3, 1e6, 0.01, 100.0),
    "kb": (True, False),
    "krow": (True, False),
    "ki": (0, 1, 2, 3, 7, 100),
    "index": (),
}


def evaluated(expression: str, values: dict[str, Tensor]) -> Any:
    """Return what an expression is, given its variables."""
    return eval(expression, {"torch": torch, "F": F}, values)


def drawn(seed: int) -> Program:
    """Return the program of a number."""
    attempt = 0
    while True:
        found = Draft(seed * 1000 + attempt).program()
        if found is not None:
            return found
        attempt += 1


def runs(program: Program) -> bool:
    """Tell whether a program runs: one from which statements were taken need not."""
    try:
        with torch.no_grad(), warnings.catch_warnings(action="ignore"):
            program.function(*points.point(program.arguments, random.Random(0), cap=8.0))
    except REFUSED:
        return False
    return True
