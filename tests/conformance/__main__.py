"""Every operator of PyTorch's database against its own behaviour: ``python -m tests.conformance``.

Exits with 1 where an operator is unsound, fails, or is not what the tables of exceptions say.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Iterable
from functools import partial

import click
import torch
from rich.console import Console
from rich.progress import track

from tests.conformance.exceptions import INEXACT, REFUSED, UNTRIED
from tests.conformance.outcome import MANY, Outcome, expected, outcome
from tests.conformance.samples import database


@click.command()
@click.argument("operators", nargs=-1)
@click.option("--samples", default=MANY, show_default=True, help="Samples of each operator, at most.")
@click.option("--jobs", default=2, show_default=True, help="Processes.")
def main(operators: tuple[str, ...], samples: int, jobs: int) -> None:
    """Compare what depgraph says that operators read with what trying shows."""
    names = list(operators) or list(database())
    if unknown := [name for name in names if name not in database()]:
        raise click.UsageError(f"PyTorch's database has no {', '.join(unknown)}.")
    with multiprocessing.get_context("spawn").Pool(min(jobs, len(names)), torch.set_num_threads, (1,)) as pool:
        running = pool.imap(partial(outcome, most=samples), names)
        found = list(track(running, "operators", len(names), console=Console(stderr=True), transient=True))
    sys.exit(report(found))


def report(found: Iterable[Outcome]) -> int:
    """Print what came out and return the exit code."""
    by_state: dict[str, list[Outcome]] = {}
    for one in found:
        by_state.setdefault(one.state, []).append(one)
    inexact, untried = by_state.get("inexact", []), by_state.get("untried", [])
    _list("inexact: more is said to be read than trying shows", inexact, INEXACT)
    _list("refused on some samples", by_state.get("refused", []), REFUSED)
    _list("untried", untried, UNTRIED)
    wrong = [one for ones in by_state.values() for one in ones if one.state != expected(one.name)]
    if wrong:
        print("\nnot as expected:")
        for one in wrong:
            print(f"  {one.name}: {one.state}, not {expected(one.name)}: {one.detail}")
    bad = len(by_state.get("unsound", [])) + len(by_state.get("failed", []))
    tried = sum(map(len, by_state.values())) - len(untried)
    exact = len(by_state.get("exact", []))
    print(f"\n{tried} operators tried, {tried - bad} sound, {exact} exact ({exact / max(tried, 1):.1%}).")
    return 1 if wrong or bad else 0


def _list(title: str, ones: list[Outcome], reasons: dict[str, str]) -> None:
    grouped: dict[str, list[str]] = {}
    for one in ones:
        grouped.setdefault(reasons.get(one.name, one.detail), []).append(one.name)
    if grouped:
        print(f"\n{title}:")
    for reason, names in grouped.items():
        print(f"  {reason}:\n    {', '.join(names)}")


if __name__ == "__main__":
    main()
