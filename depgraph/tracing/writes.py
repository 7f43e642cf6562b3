"""Which memory an operation is about to write to."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode

from depgraph.tracing.private import TorchDispatchMode, dense_kernel
from depgraph.tracing.python.ways_out import MEMORY
from depgraph.tracing.restoring import Kept

#: Arguments that batch norms write to without saying so, and those that say whether they do.
_STATISTICS = ("running_mean", "running_var")
_TRAINING = ("training", "train", "use_input_stats")


class Writes(TorchDispatchMode):
    """While active, lets a `Kept` keep a copy of each memory before an operation writes to it.

    So it does before memory is handed out, to NumPy for instance, since what is written to it there is not seen.
    """

    supports_higher_order_operators = True

    def __init__(self, keeper: Kept) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.keeper = keeper
        self._handed_out = _HandedOut(keeper)

    def __enter__(self) -> Writes:
        self._handed_out.__enter__()  # type: ignore[no-untyped-call]
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self._handed_out.__exit__(*error)  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Tell of the tensors that are written to, and run the operation."""
        kwargs = kwargs or {}
        note_writes(self.keeper, func, args, kwargs)
        if isinstance(func, torch._ops.HigherOrderOperator):
            with self:
                return run_higher_order(func, args, kwargs)
        return func(*args, **kwargs)


class _HandedOut(TorchFunctionMode):
    def __init__(self, keeper: Kept) -> None:
        super().__init__()
        self.keeper = keeper

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in MEMORY and args:
            self.keeper.before_write(args[0])
        return func(*args, **(kwargs or {}))


def note_writes(keeper: Kept, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Tell a `Kept` of the tensors among an operator's arguments that it writes to."""
    if not isinstance(func, torch._ops.OpOverload):
        return
    for place, name in _written(func):
        value = args[place] if place < len(args) else kwargs.get(name)
        for tensor in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(tensor, torch.Tensor):
                keeper.before_write(tensor)


def run_higher_order(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operator that takes functions such that the modes that are active see what those do."""
    kernel = dense_kernel(func)
    if kernel is None:
        return func(*args, **kwargs)
    module = sys.modules[kernel.__module__]
    if not hasattr(module, "_get_current_dispatch_mode"):
        return kernel(*args, **kwargs)
    with mock.patch.object(module, "_get_current_dispatch_mode", return_value=None):  # some insist that there is none
        return kernel(*args, **kwargs)


@cache
def _written(func: torch._ops.OpOverload) -> tuple[tuple[int, str], ...]:
    """Return the arguments that an operator writes to, by place and name."""
    arguments = func._schema.arguments
    names = {argument.name for argument in arguments}
    trains = not names.isdisjoint(_TRAINING)
    return tuple(
        (place, argument.name)
        for place, argument in enumerate(arguments)
        if (argument.alias_info is not None and argument.alias_info.is_write)
        or (trains and argument.name in _STATISTICS and "functional" not in func._opname)
    )
