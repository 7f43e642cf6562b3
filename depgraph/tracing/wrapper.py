"""The user's model as a module from tensors to a tuple of tensors."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn

from depgraph.errors import TracingError
from depgraph.tracing.origin import WRAPPED
from depgraph.tracing.settings import start_random
from depgraph.tracing.structure import Path, replaced, tensors_in


class Call:
    """The arguments a model is called with, and what came of the last call.

    An object of its own, because exporting puts the attributes of modules back to what they were.

    Attributes
    ----------
    found : list
        The path of each tensor in what the model returned.
    assigned : list of str
        Dotted names of the parameters and buffers that forward replaced by another tensor.
    drew : bool
        Whether it drew random numbers by other means than PyTorch's.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.arguments = args, kwargs
        self._containers: Any = self.arguments
        self.found: list[Path] = []
        self.assigned: list[str] = []
        self.drew = False

    def tensors(self) -> tuple[torch.Tensor, ...]:
        """Return the example tensors, for one call.

        Each has memory of its own: passed twice, they are still two inputs. The containers they come in are copied,
        since forward may write to them.
        """
        tensors = tuple(found.tensor.detach().clone() for found in tensors_in(self.arguments))
        self._containers = replaced(self.arguments, tensors, fresh=True)
        return tensors

    def __call__(self, model: nn.Module, tensors: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        """Call the model with other tensors in the same containers.

        Returns
        -------
        tuple of torch.Tensor
            The tensors it returns, then the new values of what is ``assigned``.
        """
        args, kwargs = replaced(self._containers, tensors)
        with _restored(model) as before:
            drawn = _drawn()
            found = tensors_in(model(*args, **kwargs), private=False)
            self.drew = _drawn() != drawn
            after = _state(model)
        if not found:
            raise TracingError(f"{type(model).__name__} returns no tensor, so there is nothing to follow.")
        new = {name: after[name] for name in before if name in after and after[name] is not before[name]}
        self.found = [path for path, _ in found]
        self.assigned = list(new)
        return (*(tensor for _, tensor in found), *new.values())


class Flat(nn.Module):
    """A model as a module from tensors to a tuple of tensors.

    Parameters
    ----------
    model : torch.nn.Module
    call : Call
    seed : int, optional
        What random numbers start from in each call.
    """

    def __init__(self, model: nn.Module, call: Call, seed: int | None = None) -> None:
        super().__init__()
        self.add_module(WRAPPED, model)
        self.call = call
        self.seed = seed

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Call the model."""
        if self.seed is not None:
            start_random(self.seed)
        return self.call(self.get_submodule(WRAPPED), tensors)


@contextmanager
def _restored(model: nn.Module) -> Iterator[dict[str, torch.Tensor]]:
    """Give the parameters and buffers by name; afterwards put back all attributes that were assigned."""
    before = [
        (module, {name: value.copy() if type(value) is dict else value for name, value in vars(module).items()})
        for module in model.modules()
    ]
    try:
        yield _state(model)
    finally:
        for module, attributes in before:
            vars(module).clear()
            vars(module).update(attributes)


def _drawn() -> Any:
    """Return where the random numbers of Python and of NumPy have got to."""
    numpy: Any = np.random.get_state()  # noqa: NPY002 - the one that all share
    return random.getstate(), numpy[1].tobytes(), numpy[2:]


def _state(model: nn.Module) -> dict[str, torch.Tensor]:
    return {
        f"{path}.{name}" if path else name: value
        for path, module in model.named_modules()
        for held in (module._parameters, module._buffers)
        for name, value in held.items()
        if value is not None
    }
