"""One operator checked: what depgraph says it reads against what trying shows."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from depgraph.errors import DepgraphError
from depgraph.unrolling.interpreter import FAULT
from tests.conformance import oracle, structure
from tests.conformance.samples import Sample, redrawn

ELEMENTS = 24  # of each tensor, so many are tried
GRADIENTS = 12  # so many elements of the results are differentiated
RUNS, FEW_RUNS = 12_000, 600  # of the operator, for each sample, at most; fewer where it is large
STALE = 200  # draws of a sample's values in a row that show nothing new: then no more are tried, or a tenth as many


@dataclass
class Verdict:
    """What came out for one sample.

    Attributes
    ----------
    sample : Sample
    missed : int
        Pairs of elements that depend on each other, where depgraph has no path.
    invented : int
        Pairs with a path that nothing tried could show.
    pairs : int
        Pairs with a path.
    untried : str
        Why there is nothing to compare: no tensor goes in or none comes out, or PyTorch itself refuses.
    failed : str
        How depgraph failed on it.
    refused : bool
        Whether that was an error of its own, made for users to read.
    warnings : list of str
    detail
        The reach that depgraph says, and what was measured.
    """

    sample: Sample
    missed: int = 0
    invented: int = 0
    pairs: int = 0
    untried: str = ""
    failed: str = ""
    refused: bool = False
    warnings: list[str] = field(default_factory=list)
    detail: Any = None


def check(samples: Sequence[Sample], runs: int = RUNS) -> list[Verdict]:
    """Compare a few samples of one operator."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdicts = [Verdict(sample) for sample in samples]
        ready = []
        for verdict in verdicts:
            if any(t.layout != torch.strided for t in verdict.sample.tensors):
                verdict.untried = "sparse tensors"
                continue
            try:
                found = oracle.start(verdict.sample, ELEMENTS)
            except Exception as error:
                verdict.untried = f"PyTorch: {error}"
                continue
            if any(seen.shown.size for seen in found):
                ready.append((verdict, found))
            else:
                verdict.untried = "no tensor goes in or none comes out"
        for graph, members in _traced(ready):
            for number, (verdict, found) in enumerate(members):
                verdict.warnings = graph.warnings
                verdict.failed = "; ".join(text for text in graph.warnings if FAULT in text)
                said = structure.reach(graph, [v.sample for v, _ in members], number, found)
                _compare(verdict, found, said, runs)
    return verdicts


def _traced(ready: list[tuple[Verdict, list[oracle.Measured]]]) -> Iterator[tuple[Any, Any]]:
    """Yield graphs and the samples that they are of: all in one graph where that can be had."""
    try:
        graphs = [(structure.trace([verdict.sample for verdict, _ in ready]), ready)] if ready else []
    except Exception:
        graphs = []
        for one in ready:
            try:
                graphs.append((structure.trace([one[0].sample]), [one]))
            except Exception as error:
                one[0].failed = f"{type(error).__name__}: {error}"
                one[0].refused = isinstance(error, DepgraphError)
    yield from graphs


def _compare(verdict: Verdict, found: list[oracle.Measured], said: list[oracle.Bools], runs: int) -> None:
    sample = verdict.sample
    stale = STALE if runs == RUNS else STALE // 10
    budget = runs // (1 + sum(t.numel() for t in sample.tensors) // 2048)
    slopes = oracle.differentiate(sample, found, GRADIENTS)
    unseen, since = -1, 0
    for seed, tensors in enumerate(values(sample)):
        budget = oracle.perturb(sample, tensors, found, seed, said, budget)
        before, unseen = unseen, sum(int((s & ~m.possible).sum()) for s, m in zip(said, found, strict=True))
        since = since + 1 if unseen == before else 0
        if budget <= 0 or not unseen or since == stale:
            break
    oracle.confirm(sample, found, [slope & ~s for slope, s in zip(slopes, said, strict=True)])
    verdict.missed = sum(int((m.shown & ~s).sum()) for s, m in zip(said, found, strict=True))
    verdict.invented = sum(int((s & ~m.possible).sum()) for s, m in zip(said, found, strict=True))
    verdict.pairs = sum(int(s.sum()) for s in said)
    verdict.detail = said, found


def values(sample: Sample) -> Iterator[list[torch.Tensor]]:
    """Yield the sample's own values, then others: as the database draws them, round ones, mixed up, all alike.

    Integers may index anything: up to what, is one of the sizes around.
    """
    yield sample.tensors
    tensors = sample.tensors
    blocks = {math.prod(t.shape[axis:]) for t in tensors for axis in range(t.ndim)}
    sizes = sorted(n for n in {1, *blocks, *(n for t in tensors for n in t.shape)} if 0 < n <= 64)
    shifts = [(limit, step) for limit in sizes for step in range(limit)]
    for number in itertools.count(1):
        kind, turn = number % 4, number // 4
        if kind == 1:
            tensors = redrawn(sample, number) or tensors
            yield [shifted(t, *shifts[turn % len(shifts)]) for t in tensors] if turn else tensors
        else:
            yield (level, coarse, coarse, pooled)[kind](tensors, number, [0, *sizes][turn % (len(sizes) + 1)])


def shifted(t: torch.Tensor, limit: int, step: int) -> torch.Tensor:
    """Count indices on, around a limit: in as many steps, each takes every value."""
    if t.is_floating_point() or t.is_complex() or t.dtype == torch.bool:
        return t
    return (t + step) % limit


def coarse(tensors: list[torch.Tensor], seed: int, limit: int) -> list[torch.Tensor]:
    """Draw from small numbers, so that there are zeros and equal elements."""
    generator = torch.Generator().manual_seed(seed)
    high = 3 + (seed // 4 % 3) * max(min(t.numel(), 64) for t in tensors)

    def draw(t: torch.Tensor) -> torch.Tensor:
        if t.is_floating_point() or t.is_complex():
            return torch.randint(-1, high, t.shape, generator=generator).to(t.dtype)
        return discrete(t, generator, limit, not any(u.is_floating_point() for u in tensors))

    return [draw(t) for t in tensors]


def level(tensors: list[torch.Tensor], seed: int, limit: int) -> list[torch.Tensor]:
    """Make all elements of floating-point and boolean tensors the same."""
    generator = torch.Generator().manual_seed(seed)
    number = seed // 4 % 2
    return [
        torch.full_like(t, number)
        if t.is_floating_point() or t.is_complex() or t.dtype == torch.bool
        else discrete(t, generator, limit, False)
        for t in tensors
    ]


def pooled(tensors: list[torch.Tensor], seed: int, limit: int) -> list[torch.Tensor]:
    """Draw each floating-point tensor's elements from those of all of them."""
    generator = torch.Generator().manual_seed(seed)
    pool = torch.cat([t.reshape(-1).double() for t in tensors if t.is_floating_point()] or [torch.zeros(1)])

    def draw(t: torch.Tensor) -> torch.Tensor:
        if t.is_complex():
            return t
        if not t.is_floating_point() or not len(pool):
            return discrete(t, generator, limit, False)
        return pool[torch.randint(len(pool), t.shape, generator=generator)].to(t.dtype)

    return [draw(t) for t in tensors]


def discrete(t: torch.Tensor, generator: torch.Generator, limit: int, free: bool) -> torch.Tensor:
    """Draw booleans and integers: from the range that they are in, or up to a limit."""
    if t.dtype == torch.bool:
        return torch.rand(t.shape, generator=generator) < float(torch.rand((), generator=generator))
    low, high = (int(t.min()), int(t.max())) if t.numel() else (0, 0)
    if low == high and free:
        low, high = -8, 8
    elif low >= 0:
        high = max(high, limit - 1)
    return torch.randint(low, high + 1, t.shape, generator=generator).to(t.dtype)
