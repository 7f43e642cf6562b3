"""What a model reads off its tensors to decide which way to go on.

A graph holds for the way that the example inputs took wherever values decided that. A run that reads other values off
its tensors may take another one, and shows nothing about that graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from depgraph.tracing.private import TorchDispatchMode
from depgraph.tracing.python.ways_out import SCALARS, WAYS_OUT, has_sizes_from_values
from depgraph.tracing.writes import run_higher_order

_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "isin", "masked_fill", "searchsorted", "bucketize")
_SPECIAL = ("ignore_index", "padding_idx", "blank")


@contextmanager
def noted(constants: set[int] | None = None) -> Iterator[list[Any]]:
    """Give a list to which every value and every size that leaves the tensors is added.

    Parameters
    ----------
    constants : set of int, optional
        Whole numbers that the model compares whole numbers with are added to it.
    """
    found: list[Any] = []
    with _Calls(found), _Operations(found, constants):
        yield found


class _Calls(TorchFunctionMode):
    def __init__(self, found: list[Any]) -> None:
        super().__init__()
        self.found = found

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if WAYS_OUT.get(func) == "array" and args[0].layout == torch.strided:
            values = args[0].detach().cpu().contiguous().reshape(-1)
            self.found.append((func.__name__, values.view(torch.uint8).numpy().tobytes()))
        return func(*args, **(kwargs or {}))


class _Operations(TorchDispatchMode):
    supports_higher_order_operators = True

    def __init__(self, found: list[Any], constants: set[int] | None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found, self.constants = found, constants

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if isinstance(func, torch._ops.HigherOrderOperator):
            with self:
                return run_higher_order(func, args, kwargs)
        result = func(*args, **kwargs)
        if self.constants is not None:
            self.constants.update(_compared(func, args, kwargs))
        if func in SCALARS:
            self.found.append((func._opname, repr(result)))
        elif has_sizes_from_values(func, args):
            leaves = pytree.tree_leaves(result)
            self.found.append((func._opname, [tuple(t.shape) for t in leaves if isinstance(t, torch.Tensor)]))
        return result


def _compared(func: Any, args: Any, kwargs: Any) -> Iterator[int]:
    """Yield the whole numbers that an operator compares whole numbers with."""
    if not isinstance(func, torch._ops.OpOverload):
        return
    given = {argument.name: value for argument, value in zip(func._schema.arguments, args, strict=False)} | kwargs
    yield from (given[name] for name in _SPECIAL if isinstance(given.get(name), int))
    if func._opname.rstrip("_") not in _COMPARISONS:
        return
    values = pytree.tree_leaves((args, kwargs))
    if not any(isinstance(value, Tensor) and _is_whole(value) and value.ndim for value in values):
        return
    for value in values:
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 2**31
        single = isinstance(value, Tensor) and value.numel() == 1 and _is_whole(value) and not value.is_meta
        if number or single:
            yield int(value)


def _is_whole(tensor: Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)
