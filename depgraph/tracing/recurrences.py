"""Recurrent layers are not unrolled while a model is exported: only the shapes of their results are needed.

PyTorch works out those shapes by running an LSTM cell by cell on tensors without data, which takes seconds for some
hundred steps. The operator itself is kept whole in the graph either way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._decomp import decomposition_table
from torch._subclasses.fake_tensor import is_fake

KEYS = (DispatchKey.CompositeImplicitAutograd, DispatchKey.Autograd)


def shapes(x: Tensor, state: Any, params: Any, biases: bool, layers: int, dropout: float, train: bool,
           bidirectional: bool, batch_first: bool) -> tuple[Tensor, ...]:  # fmt: skip
    """Return results of the right shapes for a recurrent layer."""
    states = list(state) if isinstance(state, (list, tuple)) else [state]
    output = x.new_empty(*x.shape[:-1], (2 if bidirectional else 1) * states[0].shape[-1])
    return (output, *(s.new_empty(s.shape) for s in states))


def without_data(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return an implementation that answers with shapes where there is no data, else runs the original."""

    def kernel(x: Tensor, *args: Any) -> Any:
        return shapes(x, *args) if is_fake(x) else original(x, *args)

    return kernel


@contextlib.contextmanager
def whole_recurrences() -> Iterator[None]:
    """Answer for recurrent layers on tensors without data; put everything back afterwards."""
    ops = (torch.ops.aten.lstm.input, torch.ops.aten.gru.input)
    decompositions = {op: without_data(decomposition_table[op]) for op in ops if op in decomposition_table}
    kernels = [
        mock.patch.dict(op.py_kernels, {key: without_data(op.py_kernels[key]) for key in KEYS if key in op.py_kernels})
        for op in ops
    ]
    with contextlib.ExitStack() as stack:
        # PyTorch remembers which kernel it found: make it look again, before and after.
        stack.callback(_forget, ops)
        for patch in (mock.patch.dict(decomposition_table, decompositions), *kernels):
            stack.enter_context(patch)
        _forget(ops)
        yield


def _forget(ops: tuple[Any, ...]) -> None:
    for op in ops:
        op._dispatch_cache.clear()
