"""A module of `torch.nn` with arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

Draw = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """A module with arguments.

    Attributes
    ----------
    name : str
        Of the class and, after a comma, what is special about it.
    build : callable
        Returns the module, in the mode it is to be measured in, and its arguments.
    known : tuple of str
        Arguments held at their values; the last ones.
    reason : str
        Why the graph has more pairs than measuring shows, where it has.
    """

    name: str
    build: Callable[[], tuple[nn.Module, tuple[Any, ...]]]
    known: tuple[str, ...] = ()
    reason: str = ""

    @property
    def module(self) -> str:
        """The name of the class."""
        return self.name.partition(",")[0]


class Cases(list[Case]):
    """A list to add to."""

    def add(
        self,
        name: str,
        *arguments: Draw,
        init: tuple[Any, ...] = (),
        train: bool = False,
        reason: str = "",
        known: tuple[str, ...] = (),
        **options: Any,
    ) -> None:
        """Add the class of that name, made with the arguments ``init`` and the options."""
        self.made(
            name,
            lambda: getattr(nn, name.partition(",")[0])(*init, **options),
            *arguments,
            train=train,
            reason=reason,
            known=known,
        )

    def made(
        self,
        name: str,
        make: Callable[[], nn.Module],
        *arguments: Draw,
        train: bool = False,
        reason: str = "",
        known: tuple[str, ...] = (),
    ) -> None:
        """Add what a function makes."""

        def build() -> tuple[nn.Module, tuple[Any, ...]]:
            torch.manual_seed(0)
            return make().train(train), tuple(draw() for draw in arguments)

        self.append(Case(name, build, known, reason))


class Apply(nn.Module):
    """A function of a module and a tensor, as a module."""

    def __init__(self, function: Callable[[nn.Module, torch.Tensor], Any], module: nn.Module) -> None:
        super().__init__()
        self.function, self.module = function, module

    def forward(self, x: torch.Tensor) -> Any:
        """Call the function."""
        return self.function(self.module, x)


def normal(*shape: int) -> Draw:
    """Return normal numbers."""
    return lambda: torch.randn(*shape)


def positive(*shape: int) -> Draw:
    """Return numbers well between 0 and 1."""
    return lambda: torch.rand(*shape) * 0.8 + 0.1


def signs(*shape: int) -> Draw:
    """Return 1 and -1 in turn."""
    return lambda: 1.0 - 2.0 * (torch.arange(torch.Size(shape).numel()).reshape(shape) % 2)


def these(*values: Any) -> Draw:
    """Return these values."""
    return lambda: torch.tensor(values)
