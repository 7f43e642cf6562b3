"""The parameters and buffers of a model, by name."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True, eq=False)
class State:
    """The parameters and buffers of a model.

    Attributes
    ----------
    values : dict
        Dotted name to value; tied ones under each of their names.
    parameters : list of str
        Names of the parameters, tied ones under each of their names.
    tied : dict
        Second names to the first one.
    """

    values: dict[str, torch.Tensor]
    parameters: list[str]
    tied: dict[str, str]

    @classmethod
    def of(cls, model: nn.Module) -> State:
        """Return those of a model; tied are those that are one object."""
        parameters = dict(model.named_parameters(remove_duplicate=False))
        return cls.named(parameters, dict(model.named_buffers(remove_duplicate=False)), id)

    @classmethod
    def named(
        cls,
        parameters: Mapping[str, torch.Tensor],
        buffers: Mapping[str, torch.Tensor],
        identity: Callable[[torch.Tensor], Hashable],
    ) -> State:
        """Return those of the given names; tied are those of the same identity."""
        first: dict[Hashable, str] = {}
        values = {**parameters, **buffers}
        tied = {n: first[identity(v)] for n, v in values.items() if first.setdefault(identity(v), n) != n}
        return cls(values, list(parameters), tied)

    def detached(self) -> State:
        """Return the same with other tensors of the same memory, for when the parameters lose theirs."""
        return State({name: value.detach() for name, value in self.values.items()}, self.parameters, self.tied)

    def first_name(self, name: str) -> str:
        """Return the name that a parameter or buffer goes by."""
        return self.tied.get(name, name)
