"""The arguments of a model, and a call of it on tensors in their place."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from depgraph.errors import TracingError
from depgraph.tracing.private import address
from depgraph.tracing.structure import Path, replaced, tensors_in

#: Changes tensors.
Move = Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]


class Call:
    """The arguments a model is called with, and what came of the last call.

    Attributes
    ----------
    found : list
        The path of each tensor in what the model returned.
    drew : bool
        Whether it drew random numbers by other means than PyTorch's.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.arguments = args, kwargs
        self._containers: Any = self.arguments
        self.found: list[Path] = []
        self.drew = False

    def tensors(
        self, move: Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]] = tuple
    ) -> Sequence[torch.Tensor]:
        """Return the example tensors, for one call; ``move`` may change them.

        Each has memory of its own: passed twice, they are still two inputs. The containers they come in are copied,
        since forward may write to them.
        """
        tensors = move([_copied(found.tensor) for found in tensors_in(self.arguments)])
        self._containers = replaced(self.arguments, tensors, fresh=True)
        return tensors

    def shared(self) -> list[list[int]]:
        """Return for each example tensor the numbers of the others that share its memory."""
        memories = [_memory(found.tensor) for found in tensors_in(self.arguments)]
        return [[k for k, other in enumerate(memories) if other == own and k != n] for n, own in enumerate(memories)]

    def __call__(self, model: nn.Module, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Call the model with other tensors in the same containers, and return the tensors that it returns."""
        args, kwargs = replaced(self._containers, tensors)
        drawn = _drawn()
        found = tensors_in(model(*args, **kwargs), private=False)
        self.drew = _drawn() != drawn
        if not found:
            raise TracingError(f"{type(model).__name__} returns no tensor, so there is nothing to follow.")
        self.found = [path for path, _ in found]
        return tuple(tensor for _, tensor in found)


def _memory(tensor: torch.Tensor) -> Any:
    try:
        return address(tensor.untyped_storage())
    except (NotImplementedError, RuntimeError, ValueError):
        return id(tensor)


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy of a tensor that lies in its memory in the same way."""
    copy = tensor.detach().clone()
    if tensor.layout is torch.strided and not tensor.is_quantized and copy.stride() != tensor.stride():
        memory = tensor.untyped_storage().clone()
        copy = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        copy.set_(memory, tensor.storage_offset(), tensor.shape, tensor.stride())
    return copy.requires_grad_(tensor.requires_grad) if tensor.requires_grad else copy


def _drawn() -> Any:
    """Return where the random numbers of Python and of NumPy have got to."""
    numpy: Any = np.random.get_state()  # noqa: NPY002 - the one that all share
    return random.getstate(), numpy[1].tobytes(), numpy[2:]
