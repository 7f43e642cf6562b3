"""Whole numbers that may mean more to a model than others: what stands for nothing, what it compares others with."""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor

from depgraph.tracing.settings import SEED
from depgraph.verification.subject import Subject
from depgraph.verification.values import Draws, is_real_or_complex

_FEW, _MANY = 4, 20  # constants, and numbers that are tried


def numbers_taken(subject: Subject, place: int) -> list[int]:
    """Return whole numbers that may mean something to a model as elements of a source, those of them that it takes.

    Parameters
    ----------
    subject : Subject
    place : int
        The number of the source.
    """
    value = subject.sources[place].value
    found, draws = _candidates(value, subject.constants), Draws(place)
    low, high = (int(value.min()), int(value.max())) if found else (0, 0)
    own = [source.value for source in subject.sources]
    runs = subject.refused, subject.strayed
    taken = []
    for number in found:
        before = subject.refused
        if not low <= number <= high:
            if value.is_cuda:  # an index out of range ends all work there
                continue
            given = value.clone(memory_format=torch.contiguous_format)
            given.view(-1)[draws.uniform(value.new_zeros(()), value.numel())] = number
            subject.run([*own[:place], given, *own[place + 1 :]], SEED)
        if subject.refused == before:
            taken.append(number)
    subject.refused, subject.strayed = runs
    return taken


def _candidates(example: Tensor, constants: Collection[int]) -> list[int]:
    """Return whole numbers that may mean more to a model than others do.

    Those are 0, the ends of the example's range, its first, last and most frequent number (sequences are filled up with
    some such number), what the model compares whole numbers with, and the neighbours of all ends and of that.
    """
    if not example.numel() or is_real_or_complex(example) or example.dtype == torch.bool:
        return []
    flat = example.reshape(-1)
    low, high = int(flat.min()), int(flat.max())
    compared = sorted(constants)[:_FEW]
    inner = [0, int(flat.mode().values), *compared, int(flat[-1]), int(flat[0]), low, high]
    outer = [low - 1, high + 1, 1, -1, *(number + step for number in compared for step in (-1, 1))]
    limits = torch.iinfo(example.dtype)
    return [number for number in dict.fromkeys(inner + outer) if limits.min <= number <= limits.max][:_MANY]
