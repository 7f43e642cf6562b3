"""One operator checked: what depgraph says it reads against what trying shows."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from tests.conformance import oracle, structure
from tests.conformance.samples import Sample, redrawn


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
    error : str
        Why the sample could not be compared; "" where it was.
    skipped : bool
        Whether that is the sample's own fault: no tensor in, nothing out, or PyTorch itself refuses.
    warnings : list of str
    """

    sample: Sample
    missed: int = 0
    invented: int = 0
    pairs: int = 0
    error: str = ""
    skipped: bool = False
    warnings: list[str] = field(default_factory=list)
    detail: Any = None


def check(samples: Sequence[Sample], draws: int = 24, elements: int = 40, gradients: int = 24) -> list[Verdict]:
    """Compare a few samples of one operator, trying up to so many draws of their values.

    Parameters
    ----------
    elements : int
        Of each tensor, so many elements are tried.
    gradients : int
        So many elements of the output are differentiated.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdicts, ready = [], []
        for sample in samples:
            verdict = Verdict(sample)
            verdicts.append(verdict)
            if any(t.layout != torch.strided for t in sample.tensors):
                verdict.error, verdict.skipped = "sparse tensors", True
                continue
            try:
                found = oracle.start(sample, elements)
            except Exception as error:
                verdict.error, verdict.skipped = f"PyTorch: {error}", True
                continue
            if any(m.shown.size for m in found):
                ready.append((verdict, found))
            else:
                verdict.error, verdict.skipped = "no tensor goes in or none comes out", True
        try:
            graphs = [(structure.trace([v.sample for v, _ in ready]), ready)] if ready else []
        except Exception:
            graphs = []
            for one in ready:
                try:
                    graphs.append((structure.trace([one[0].sample]), [one]))
                except Exception as error:
                    one[0].error = f"{type(error).__name__}: {error}"
        for graph, members in graphs:
            for number, (verdict, found) in enumerate(members):
                said = structure.reach(graph, [v.sample for v, _ in members], number, found)
                verdict.warnings = graph.warnings
                _compare(verdict, found, said, draws, gradients)
    return verdicts


def _compare(
    verdict: Verdict, found: list[oracle.Measured], said: list[oracle.Bools], draws: int, gradients: int
) -> None:
    sample = verdict.sample
    slopes: list[oracle.Bools] = []
    begun = time.process_time()
    for seed, tensors in enumerate(values(sample, draws)):
        if seed and time.process_time() - begun > 3:
            break
        oracle.perturb(sample, tensors, found, seed, said)
        if seed == 0:
            slopes = oracle.differentiate(sample, found, gradients)
        if all(not (s & ~m.possible).any() for s, m in zip(said, found, strict=True)):
            break
    oracle.confirm(sample, found, [slope & ~s for slope, s in zip(slopes, said, strict=True)])
    verdict.missed = sum(int((m.shown & ~s).sum()) for s, m in zip(said, found, strict=True))
    verdict.invented = sum(int((s & ~m.possible).sum()) for s, m in zip(said, found, strict=True))
    verdict.pairs = sum(int(s.sum()) for s in said)
    verdict.detail = said, found


def values(sample: Sample, draws: int) -> Iterator[list[torch.Tensor]]:
    """Yield the sample's own values, then others: as the database draws them, few and round ones, and mixed up."""
    yield sample.tensors
    fresh = redrawn(sample, itertools.count(1))
    for number in range(1, draws):
        tensors = next(fresh, sample.tensors)
        yield (tensors, coarse(tensors, number), pooled(tensors, number), level(tensors, number))[number % 4]


def coarse(tensors: list[torch.Tensor], seed: int) -> list[torch.Tensor]:
    """Draw from a few small numbers, so that there are zeros and equal elements."""
    generator = torch.Generator().manual_seed(seed)

    largest = max((min(t.numel(), 64) if seed % 16 < 8 else n for t in tensors for n in t.shape), default=1)

    def draw(t: torch.Tensor) -> torch.Tensor:
        if t.is_floating_point() or t.is_complex():
            high = 3 + (seed // 4 % 3) * min(t.numel(), 64)
            return torch.randint(-1, high, t.shape, generator=generator).to(t.dtype)
        if t.dtype == torch.bool:
            return torch.rand(t.shape, generator=generator) < float(torch.rand((), generator=generator))
        low, high = (int(t.min()), int(t.max())) if t.numel() else (0, 0)
        if low == high and not any(u.is_floating_point() for u in tensors):
            low, high = -8, 8
        elif low >= 0 and seed % 8 < 4:
            high = max(high, largest - 1)
        return torch.randint(low, high + 1, t.shape, generator=generator).to(t.dtype)

    return [draw(t) for t in tensors]


def level(tensors: list[torch.Tensor], seed: int) -> list[torch.Tensor]:
    """Make all elements of floating-point and boolean tensors the same."""
    number = (0.0, 1.0)[seed // 4 % 2]
    return [
        torch.full_like(t, number) if t.is_floating_point() or t.dtype == torch.bool else coarse([t], seed)[0]
        for t in tensors
    ]


def pooled(tensors: list[torch.Tensor], seed: int) -> list[torch.Tensor]:
    """Draw each floating-point tensor's elements from those of all of them."""
    generator = torch.Generator().manual_seed(seed)
    pool = torch.cat([t.reshape(-1) for t in tensors if t.is_floating_point()] or [torch.zeros(1)])

    def draw(t: torch.Tensor) -> torch.Tensor:
        if not t.is_floating_point() or not len(pool):
            return coarse([t], seed)[0]
        return pool[torch.randint(len(pool), t.shape, generator=generator)].to(t.dtype)

    return [draw(t) for t in tensors]
