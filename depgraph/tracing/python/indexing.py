"""Reading a tensor at a place that is itself a number read off a tensor.

``tensor[n]`` makes a plain integer of ``n`` before PyTorch dispatches anything; ``tensor.select(0, n)`` does not.
"""

from __future__ import annotations

from typing import Any

import torch

from depgraph.tracing.python.numbers import settled
from depgraph.tracing.python.operators import number_of


def getitem(tensor: torch.Tensor, index: Any) -> torch.Tensor:
    """Return ``tensor[index]``, with symbolic integers kept symbolic among integers, slices, ``None`` and ``...``.

    Where there are tensors, lists or bools in the index, its symbolic integers are settled, as PyTorch does.
    """
    parts = list(index) if isinstance(index, tuple) else [index]
    if not all(map(_is_basic, parts)):
        return tensor[tuple(map(settled, parts))]
    gap = next((place for place, part in enumerate(parts) if part is Ellipsis), len(parts))
    result = tensor[tuple(slice(None) if _is_place(part) else part for part in parts)]
    # Axes after the gap are counted from the end. A selected axis goes away: the count stays where it is.
    axis = -1
    for part in reversed(parts[gap + 1 :]):
        if _is_place(part):
            result = result.select(axis, part)
        elif not isinstance(part, int):
            axis -= 1
    axis = 0
    for part in parts[:gap]:
        if _is_place(part):
            result = result.select(axis, part)
        elif not isinstance(part, int):
            axis += 1
    return result


def has_place(index: Any) -> bool:
    """Return whether there is a symbolic integer in an index."""
    return any(map(_is_place, index)) if isinstance(index, tuple) else _is_place(index)


def _is_place(part: object) -> bool:
    number = number_of(part)
    return number is not None and number.is_int()


def _is_basic(part: object) -> bool:
    return part is None or part is Ellipsis or (isinstance(part, (int, slice)) and not isinstance(part, bool))
