"""Reading a tensor at a place that is itself a number read off a tensor.

``tensor[n]`` makes a plain integer of ``n`` before PyTorch dispatches anything; ``tensor.select(0, n)`` does not.
"""

from __future__ import annotations

from typing import Any

import torch

from depgraph.tracing.python.operators import number_of


def is_anywhere(index: Any) -> bool:
    """Tell whether an index has symbolic integers that can stay so: among integers, slices, ``None`` and ``...``.

    Where there are tensors, lists or bools in the index, its symbolic integers are settled, as PyTorch does.
    """
    parts = index if isinstance(index, tuple) else (index,)
    return any(map(_is_place, parts)) and all(map(_is_basic, parts))


def getitem(tensor: torch.Tensor, index: Any) -> torch.Tensor:
    """Return ``tensor[index]`` for an index that `is_anywhere`, whose symbolic integers stay symbolic."""
    parts = list(index) if isinstance(index, tuple) else [index]
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


def _is_place(part: object) -> bool:
    number = number_of(part)
    return number is not None and number.is_int()


def _is_basic(part: object) -> bool:
    return part is None or part is Ellipsis or (isinstance(part, (int, slice)) and not isinstance(part, bool))
