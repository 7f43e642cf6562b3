"""The arguments that a user gives a model to be called with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch

from depgraph.errors import TracingError


def given(args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return positional and keyword arguments; a tensor stands for one positional one, None for no keyword ones.

    Raises
    ------
    TracingError
        Where they are nothing that a model can be called with.

    Examples
    --------
    >>> given([1, 2], None)
    ((1, 2), {})
    """
    if isinstance(args, torch.Tensor):
        args = (args,)
    if isinstance(args, (str, bytes, np.ndarray, Mapping)) or not isinstance(args, Iterable):
        hint = " Keyword arguments come after them, as kwargs." if isinstance(args, Mapping) else ""
        raise TracingError(
            f"args are the positional arguments of forward, a tuple such as (x,); got {_shown(args)}.{hint}"
        )
    if kwargs is None:
        kwargs = {}
    if not isinstance(kwargs, Mapping):
        raise TracingError(
            f"kwargs are the keyword arguments of forward, a dict such as {{'mask': mask}}; got {_shown(kwargs)}."
        )
    for name in kwargs:
        if not isinstance(name, str):
            raise TracingError(f"kwargs are keyword arguments by their names; got the name {_shown(name)}.")
    return tuple(args), dict(kwargs)


def _shown(value: Any) -> str:
    """Return a short value as it is written, of any other its type."""
    if value is None or isinstance(value, (str, bytes, int, float)):
        return repr(value)
    return f"an object of type {type(value).__name__}"
