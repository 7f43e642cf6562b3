"""One row of the zoo's tables: a model built, traced and measured."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

import depgraph
from depgraph.tracing.structure import tensors_in
from tests.zoo.case import Case
from tests.zoo.family import Family, positions

DRAWS = 16
LIMIT = 48


@dataclass(frozen=True)
class Row:
    """What came out for one model.

    Attributes
    ----------
    name, kind, attention : str
    verdict : Verdict or None
    error : str
        Why there is no verdict.
    reason : str
        Why the graph has more than measuring shows, as declared.
    """

    name: str
    kind: str
    attention: str
    verdict: depgraph.Verdict | None
    error: str
    reason: str

    @property
    def word(self) -> str:
        """The verdict in a word."""
        if self.verdict is None:
            return "failed"
        return "missed" if not self.verdict.sound else "exact" if self.verdict.exact else "sound"

    @property
    def fault(self) -> str:
        """What is wrong with it, ``""`` for nothing: what is not exact has a reason, and nothing else has."""
        if self.verdict is None:
            return self.error
        if not self.verdict.sound or (not self.verdict.exact and not self.reason):
            return str(self.verdict)
        return "It is exact, but a reason says why it is not." if self.verdict.exact and self.reason else ""


def measured(family: Family, attention: str) -> Row:
    """Measure a family with one implementation of attention."""
    with _quiet():
        try:
            model = family.build(attention)
            arguments, known = family.given()
            with torch.no_grad():
                outputs = [found.tensor for found in tensors_in(model(**arguments), private=False)]
            verdict = _compared(model, (), arguments, positions(arguments, known, outputs), known)
        except Exception as error:
            return Row(family.name, family.kind, attention, None, _told(error), family.reason)
    return Row(family.name, family.kind, attention, verdict, "", family.reason)


def measured_module(case: Case) -> Row:
    """Measure a module of `torch.nn`."""
    with _quiet():
        try:
            module, args = case.build()
            torch.manual_seed(0)
            with torch.no_grad():
                outputs = [found.tensor for found in tensors_in(module(*args), private=False)]
            where: dict[Any, Any] = {f"output.{k}": tuple(range(t.ndim)) for k, t in enumerate(outputs)}
            given = [found.tensor for found in tensors_in(args)]
            told_apart = given[: len(given) - len(case.known)]
            where |= {index: tuple(range(tensor.ndim)) for index, tensor in enumerate(told_apart)}
            verdict = _compared(module, args, {}, where, case.known)
        except Exception as error:
            return Row(case.name, "torch.nn", "–", None, _told(error), case.reason)
    return Row(case.name, "torch.nn", "–", verdict, "", case.reason)


def _compared(
    model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], where: dict[Any, Any], known: Any
) -> depgraph.Verdict:
    graph = depgraph.trace(model, args, kwargs, positions=where, known=known)
    return depgraph.verify(graph, model, args, kwargs, draws=DRAWS, limit=LIMIT)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
