"""What comes out for one operator, all its samples taken together."""

from __future__ import annotations

from dataclasses import dataclass

from tests.conformance.check import FEW_RUNS, RUNS, Verdict, check
from tests.conformance.exceptions import INEXACT, REFUSED, UNTRIED
from tests.conformance.samples import chosen

FEW, MANY = 2, 8  # samples of an operator: in the test suite, and in the whole check


@dataclass
class Outcome:
    """The verdict on an operator.

    Attributes
    ----------
    name : str
    state : {"exact", "inexact", "unsound", "failed", "refused", "untried"}
        Failed is a fault of depgraph, refused one clear sentence of it; in either case on some samples only, perhaps.
    detail : str
        Which samples make it so, or why nothing could be tried.
    warnings : list of str
    """

    name: str
    state: str
    detail: str
    warnings: list[str]


def glance(name: str) -> Outcome:
    """Check one operator on a few samples: in earnest only where a quick look shows anything unexpected.

    What is known to be inexact need not show it at a glance.
    """
    known = expected(name)
    for runs in (FEW_RUNS, RUNS):
        found = outcome(name, FEW, runs)
        if found.state == known or (found.state, known) == ("exact", "inexact"):
            return Outcome(name, known, found.detail, found.warnings)
    return outcome(name)


def outcome(name: str, most: int = MANY, runs: int = RUNS) -> Outcome:
    """Check one operator on up to so many samples."""
    try:
        picked = chosen(name, most)
    except Exception as error:
        return Outcome(name, "untried", f"no samples: {error}", [])
    verdicts = check(picked, runs)
    tried = [v for v in verdicts if not v.untried]
    warnings = list(dict.fromkeys(text for v in tried for text in v.warnings))
    if not tried:
        return Outcome(name, "untried", "; ".join(dict.fromkeys(v.untried for v in verdicts)) or "no tensor", warnings)
    for state, about in (("unsound", _missed), ("failed", _failure), ("inexact", _invented), ("refused", _refusal)):
        if told := [text for text in map(about, tried) if text]:
            return Outcome(name, state, "; ".join(told), warnings)
    return Outcome(name, "exact", f"{len(tried)} samples", warnings)


def expected(name: str) -> str:
    """Return the state that an operator is known to be in."""
    tables = {"untried": UNTRIED, "inexact": INEXACT, "refused": REFUSED}
    return next((state for state, table in tables.items() if name in table), "exact")


def _failure(verdict: Verdict) -> str:
    return f"sample {verdict.sample.number}: {verdict.failed}" if verdict.failed and not verdict.refused else ""


def _refusal(verdict: Verdict) -> str:
    return f"sample {verdict.sample.number}: {verdict.failed}" if verdict.refused else ""


def _missed(verdict: Verdict) -> str:
    return f"sample {verdict.sample.number}: {verdict.missed} pairs missed" if verdict.missed else ""


def _invented(verdict: Verdict) -> str:
    if not verdict.invented:
        return ""
    return f"sample {verdict.sample.number}: {verdict.invented} of {verdict.pairs} pairs never seen"
