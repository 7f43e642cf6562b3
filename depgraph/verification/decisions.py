"""What a model reads off its tensors to decide which way to go on.

A graph of a model that could not be exported holds for the way its example inputs took. A run that reads other values
off its tensors may take another one, and shows nothing about that graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

_SCALARS = {torch.ops.aten._local_scalar_dense.default, torch.ops.aten.equal.default}
_SIZED = {torch.ops.aten._pack_padded_sequence.default, torch.ops.aten.unique_dim_consecutive.default}
_TAKEN_OUT = {torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.__array__, torch.Tensor.__dlpack__}


@contextmanager
def noted() -> Iterator[list[Any]]:
    """Give a list to which every value and every size that leaves the tensors is added."""
    found: list[Any] = []
    with _Calls(found), _Operations(found):
        yield found


class _Calls(TorchFunctionMode):
    def __init__(self, found: list[Any]) -> None:
        super().__init__()
        self.found = found

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _TAKEN_OUT:
            values = args[0].detach().cpu().contiguous().reshape(-1)
            self.found.append((func.__name__, values.view(torch.uint8).numpy().tobytes()))
        return func(*args, **(kwargs or {}))


class _Operations(TorchDispatchMode):
    def __init__(self, found: list[Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found = found

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in _SCALARS:
            self.found.append((func._opname, repr(result)))
        elif _has_sizes_from_values(func, args):
            leaves = pytree.tree_leaves(result)
            self.found.append((func._opname, [tuple(t.shape) for t in leaves if isinstance(t, torch.Tensor)]))
        return result


def _has_sizes_from_values(func: Any, args: Any) -> bool:
    if func is torch.ops.aten.index.Tensor:
        return any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in args[1])
    return torch.Tag.dynamic_output_shape in func.tags or func in _SIZED
