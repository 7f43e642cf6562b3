"""Values that the arguments of random programs are given.

Floating-point numbers are 0 or between 1/64 and a bound that the caller chooses, integers whatever their type holds.
Beside draws at random there are those at which masks show what they do: all hidden, none hidden, one visible.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch
from torch import Tensor

Arguments = dict[str, tuple[torch.dtype, tuple[int, ...]]]
PATTERNS = ("random", "random", "random", "zeros", "above", "below", "one above", "one below", "one", "few", "same")


def point(
    arguments: Arguments, rng: random.Random, cap: float, patterns: Sequence[str] = PATTERNS
) -> tuple[Tensor, ...]:
    """Draw a value for each of the arguments."""
    return tuple(
        parameter(dtype, shape, rng) if name == "w" else tensor(dtype, shape, rng.choice(patterns), rng, cap)
        for name, (dtype, shape) in arguments.items()
    )


def tensor(dtype: torch.dtype, shape: tuple[int, ...], pattern: str, rng: random.Random, cap: float) -> Tensor:
    """Draw a tensor after a pattern."""
    count = torch.Size(shape).numel()
    if pattern == "same":
        numbers = [number(dtype, rng, cap)] * count
    else:
        numbers = [number(dtype, rng, cap) for _ in range(count)]
    if pattern == "few":
        numbers = [rng.choice((0, 0, 1, 1, 2, 3)) for _ in numbers]
    elif pattern == "zeros":
        numbers = [0] * count
    elif pattern == "one":
        numbers = [0] * count
        numbers[rng.randrange(count)] = number(dtype, rng, cap) or 1
    elif pattern in ("above", "below", "one above", "one below"):
        sign = 1 if pattern in ("above", "one below") else -1
        numbers = [sided(k, sign, dtype) for k in numbers]
        if pattern.startswith("one"):
            place = rng.randrange(count)
            numbers[place] = sided(numbers[place], -sign, dtype)
    return torch.tensor(numbers).to(dtype).reshape(shape)


def sided(value: float, sign: int, dtype: torch.dtype) -> float:
    """Return a number on one side of 0; of types that have one side only, 0 is the other."""
    if dtype in (torch.bool, torch.uint8):
        return (value or 1) if sign > 0 else 0
    value = abs(value) or 1
    if not dtype.is_floating_point:
        value = min(value, torch.iinfo(dtype).max)
    return sign * value


def parameter(dtype: torch.dtype, shape: tuple[int, ...], rng: random.Random) -> Tensor:
    """Draw a parameter: generic numbers, none of them 0."""
    numbers = [rng.choice((-1, 1)) * rng.uniform(0.25, 4) for _ in range(torch.Size(shape).numel())]
    return torch.tensor(numbers).to(dtype).reshape(shape)


def number(dtype: torch.dtype, rng: random.Random, cap: float) -> float:
    """Draw a number of a type."""
    if dtype == torch.bool:
        return rng.random() < 0.5
    if not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        some = (
            0,
            0,
            1,
            1,
            2,
            3,
            info.max,
            info.min,
            max(info.min, -1),
            rng.randint(info.min, info.max),
            rng.randint(0, 100),
        )
        return rng.choice(some)
    kind = rng.random()
    if kind < 0.15:
        return float(rng.choice((0, 0, 1, -1)))
    largest = min(cap, 8.0) if kind < 0.7 else cap
    return rng.choice((-1, 1)) * 2 ** rng.uniform(-6, torch.tensor(largest).log2().item())


def others(value: Tensor, rng: random.Random, cap: float, most: int = 4) -> list[float]:
    """Return other values for one element."""
    dtype = value.dtype
    if dtype == torch.bool:
        return [not value.item()]
    old = value.item()
    drawn = {number(dtype, rng, cap) for _ in range(5)}
    if dtype.is_floating_point:
        pool = {k for k in (0.0, 1.0, -1.0, -old, cap, -cap, old + 1 / 64, *drawn) if abs(k) <= cap}
    else:
        info = torch.iinfo(dtype)
        pool = {0, 1, 2, info.max, info.min, int(old) ^ 1, min(old + 1, info.max), *drawn}
    some = sorted(pool - {old})
    return rng.sample(some, min(most, len(some)))
