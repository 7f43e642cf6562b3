"""The user's model as a module from tensors to a tuple of tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from depgraph.errors import TracingError
from depgraph.tracing.origin import WRAPPED
from depgraph.tracing.structure import Path, replaced, tensors_in


class Call:
    """The arguments a model is called with, and where the tensors were in what it returned last.

    An object of its own, because exporting puts the attributes of modules back to what they were.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.arguments = args, kwargs
        self.found: list[Path] = []

    def tensors(self) -> tuple[torch.Tensor, ...]:
        """Return the example tensors, each with memory of its own: passed twice, they are still two inputs."""
        return tuple(found.tensor.detach().clone() for found in tensors_in(self.arguments))

    def __call__(self, model: nn.Module, tensors: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        """Call the model with other tensors in the same containers, and return the tensors it returns."""
        args, kwargs = replaced(self.arguments, tensors)
        found = tensors_in(model(*args, **kwargs))
        if not found:
            raise TracingError(f"{type(model).__name__} returns no tensor, so there is nothing to follow.")
        self.found = [path for path, _ in found]
        return tuple(tensor for _, tensor in found)


class Flat(nn.Module):
    """A model as a module from tensors to a tuple of tensors."""

    def __init__(self, model: nn.Module, call: Call) -> None:
        super().__init__()
        self.add_module(WRAPPED, model)
        self.call = call

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Call the model."""
        return self.call(self.model, tensors)
