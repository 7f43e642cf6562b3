"""Random programs of masks and scores against their own behaviour: ``python -m tests.values.programs --seeds 0:200``.

Each seed is a program, drawn as Python source (`drawing`, `grammar`), traced by depgraph and run at many points
(`measuring`). A dependence that shows and is not reported is missed; the exit code is 1 if there are any. What is
reported and never showed is counted and no more: that may be over, or no point showed it.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import click
import torch

from tests.values.drawing import Program, Statement, drawn, runs
from tests.values.measuring import Outcome, outcome


@click.command()
@click.option("--seeds", default="0:200", show_default=True, help="From, and up to but not including.")
@click.option("--show", type=int, help="Print the program of one seed and what is said of it.")
@click.option("--reduce", "reduced", type=int, help="Print the program of one seed, less what it misses without.")
def main(seeds: str, show: int | None, reduced: int | None) -> None:
    """Look for dependences that depgraph misses."""
    torch.set_num_threads(1)
    if show is not None or reduced is not None:
        seed = reduced if reduced is not None else show
        assert seed is not None
        program = drawn(seed)
        if reduced is not None and (first := outcome(program, seed).first) is not None:
            program = smaller(program.pruned(first), seed)
        told(seed, program, outcome(program, seed))
        return
    start, stop = map(int, seeds.split(":"))
    sys.exit(sweep(range(start, stop)))


def sweep(seeds: range) -> int:
    """Try the programs of some seeds, print those that something was missed of, and return the exit code."""
    tally: Counter[str] = Counter()
    began = time.perf_counter()
    for seed in seeds:
        program = drawn(seed)
        try:
            found = outcome(program, seed)
        except Exception as error:
            tally["refused"] += 1
            click.echo(f"# seed {seed}: {type(error).__name__}: {error}\n{program.source}\n")
            continue
        tally.update(over=found.over, exact=found.exact)
        if found.missed:
            tally["missed"] += 1
            assert found.first is not None
            told(seed, program.pruned(found.first), found)
    seconds = time.perf_counter() - began
    click.echo(
        f"{len(seeds)} programs, {tally['missed']} of which something was missed, {tally['refused']} refused; "
        f"{tally['exact']} pairs exact, {tally['over']} over; {seconds:.1f} s"
    )
    return 1 if tally["missed"] or tally["refused"] else 0


def told(seed: int, program: Program, found: Outcome) -> None:
    """Print a program, what was missed of it, and a change that shows it."""
    of = {k: [p for p in pairs if found.owners[p[1]] in program.results] for k, pairs in found.missed.items()}
    starts = {name: found.owners.index(name) for name in program.results}
    pairs = [f"{k}[{i}] in {n}[{j - starts[n]}]" for k, some in of.items() for i, j in some for n in [found.owners[j]]]
    click.echo(f"# seed {seed}: missed {', '.join(pairs) or 'nothing'}\n{program.source}")
    for (_, place), witness in found.witnesses.items():
        if (owner := found.owners[place]) in program.results:
            for given in witness:
                args = [given[name] for name in program.arguments]
                result = program.function(*args)[program.results.index(owner)].reshape(-1)
                told_args = ", ".join(f"{n}={a.tolist()}" for n, a in zip(program.arguments, args, strict=True))
                click.echo(f"# {told_args}: {owner}[{place - starts[owner]}] = {result[place - starts[owner]].item()}")
            break
    click.echo()


def smaller(program: Program, seed: int) -> Program:
    """Return a program from which no statement can be taken so that still something is missed."""
    done = False
    while not done:
        done = True
        for other in sorted(shorter(program), key=lambda p: len(p.statements)):
            if runs(other) and misses(other, seed):
                program, done = other, False
                break
    return program


def misses(program: Program, seed: int) -> bool:
    """Tell whether something is missed of a program."""
    try:
        return bool(outcome(program, seed).missed)
    except Exception:
        return False


def shorter(program: Program) -> Iterator[Program]:
    """Yield the program with one statement less."""
    for k, s in enumerate(program.statements):
        for name in dict.fromkeys(s.names):
            rest = [renamed(t, s.target, name) for t in program.statements[k + 1 :]]
            if rest:
                yield replace(program, statements=(*program.statements[:k], *rest)).pruned(*program.results)


def renamed(statement: Statement, old: str, new: str) -> Statement:
    """Return a statement that reads one variable in the place of another."""
    return replace(statement, expression=re.sub(rf"\b{old}\b", new, statement.expression))


if __name__ == "__main__":
    main()
