"""The memory that a model's tensors lie in, replaced by memory of another precision."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from depgraph.tracing.private import MKLDNN, address, negated
from depgraph.tracing.restoring import set_data
from depgraph.verification.values import widened

_COMPLEX = {torch.complex64: torch.float32, torch.complex128: torch.float64, torch.complex32: torch.float16}


class Memory:
    """Tensor objects, and the memory that they had at first.

    Those that shared memory still share it when it has been replaced: a view held as an attribute shows what is written
    to the buffer it is a view of.

    Parameters
    ----------
    tensors : sequence of torch.Tensor
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.own = [(tensor, tensor.detach()) for tensor in tensors if not tensor.is_meta]

    def convert(self, dtype: torch.dtype | None) -> None:
        """Give all real and complex numbers memory of another precision; None stands for the first one."""
        for tensor, alias in self.own:
            if tensor.dtype != alias.dtype:
                set_data(tensor, alias)
        if dtype is None:
            return
        groups: dict[int, list[tuple[Tensor, Tensor]]] = {}
        for tensor, alias in self.own:
            if alias.layout != torch.strided:
                if not (alias.layout == MKLDNN or alias.is_nested):
                    set_data(tensor, widened(alias, dtype))
            elif not alias.is_quantized:
                groups.setdefault(address(alias.untyped_storage()), []).append((tensor, alias))
        for group in groups.values():
            _convert(group, dtype)

    @property
    def precisions(self) -> set[torch.dtype]:
        """The precisions of the real numbers in it, at first."""
        return {_real(alias) for _, alias in self.own if alias.is_floating_point() or alias.is_complex()}


def _real(tensor: Tensor) -> torch.dtype:
    return _COMPLEX.get(tensor.dtype, tensor.dtype)


def _convert(group: list[tuple[Tensor, Tensor]], dtype: torch.dtype) -> None:
    """Give tensors that share memory another memory to share; unless the same bits are read as different numbers."""
    kinds = {_real(alias) for _, alias in group}
    (own,) = kinds if len(kinds) == 1 else (None,)
    if own is None or not own.is_floating_point or own == dtype:
        return
    storage = group[0][1].untyped_storage()
    whole = torch.empty(0, dtype=own, device=storage.device)
    whole.set_(storage, 0, (storage.nbytes() // own.itemsize,), (1,))
    wide = whole.to(dtype)
    # Pairs of numbers are read as complex ones by some.
    paired = wide[: wide.numel() // 2 * 2].view(-1, 2)
    for tensor, alias in group:
        base = torch.view_as_complex(paired) if alias.is_complex() else wide
        fresh = base.as_strided(alias.size(), alias.stride(), alias.storage_offset())
        if alias.is_conj():
            fresh = fresh.conj()
        tensor.data = negated(fresh) if alias.is_neg() else fresh


def place(tensor: Tensor) -> tuple[object, ...]:
    """Return where a tensor lies in memory: two that lie in the same place are one."""
    if tensor.layout != torch.strided:
        return (id(tensor),)
    return address(tensor.untyped_storage()), tensor.storage_offset(), tuple(tensor.size()), tensor.stride()
