"""Other values of the same kind, for a run in which a value that left is changed."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import torch

Change = Literal["nudged", "moved", "turned", "raised", "lowered"]
#: By these, a run hardly ever takes another branch: the first is small, the second gets past a limit.
NEAR: tuple[Change, ...] = ("nudged", "moved")
#: By these, a value gets past a threshold wherever that is.
FAR: tuple[Change, ...] = ("raised", "lowered")
_FAR = 1000


def shifted(value: Any, change: Change) -> Any:
    """Return another value of the same kind: a number, or a nest of numbers, an array or a tensor.

    Examples
    --------
    >>> shifted([1.0, 2, True], "moved")
    [1.75, 1, False]
    >>> shifted(2, "raised")
    2002
    """
    if isinstance(value, torch.Tensor):
        return torch.from_numpy(np.asarray(shifted(value.detach().cpu().resolve_conj().numpy(), change)))
    if isinstance(value, np.ndarray):
        return _array(value, change)
    if isinstance(value, (list, tuple)):
        return value[::-1] if change == "turned" else type(value)(shifted(item, change) for item in value)
    if isinstance(value, bool):
        return change == "raised" if change in FAR else not value
    if isinstance(value, int):
        return value + {"nudged": 1, "moved": -1}.get(change, _far(abs(value), change))
    if isinstance(value, (float, complex)):
        size = abs(value)
        return type(value)(value + _step(size, change)) if math.isfinite(size) else 1.0
    return value


def _step(size: Any, change: Change) -> Any:
    if change in FAR:
        return _far(size, change)
    return np.maximum(size, 2.0**-10) * 2.0**-10 if change == "nudged" else np.maximum(size, 0.5) * 0.75


def _far(size: Any, change: Change) -> Any:
    return (_FAR if change == "raised" else -_FAR) * (max(size, 1) if isinstance(size, int) else np.maximum(size, 1))


def _array(value: np.ndarray, change: Change) -> np.ndarray:
    if change == "turned":
        return np.flip(value).copy()
    if value.dtype == bool:
        return np.full_like(value, change == "raised") if change in FAR else ~value
    if value.dtype.kind in "iu":
        if change in FAR:
            limits = np.iinfo(value.dtype)
            return np.asarray(np.clip(value.astype(object) + _far(1, change), limits.min, limits.max), value.dtype)
        one = value.dtype.type(1)
        return np.asarray(value + one if change == "nudged" else value - one)
    if value.dtype.kind not in "fc":
        return value
    with np.errstate(all="ignore"):
        moved = value + _step(np.abs(value), change)
    return np.asarray(np.where(np.isfinite(value), moved, 1), value.dtype)
