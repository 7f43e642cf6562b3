"""Derivatives of one output position by everything that goes in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from depgraph.dag.graph import Terminal
from depgraph.dag.runs import BoolArray
from depgraph.tracing.private import TorchDispatchMode
from depgraph.tracing.writes import run_higher_order
from depgraph.verification.bundles import block, replaced, rounding, rows
from depgraph.verification.values import Draws


class RefusedError(Exception):
    """A derivative that PyTorch must not be asked for."""


class Guarded(TorchDispatchMode):
    """While active, refuses what would end the process when it is derived: a grid of samples that are no numbers."""

    supports_higher_order_operators = True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Look at the grid, and run the operation."""
        if isinstance(func, torch._ops.HigherOrderOperator):
            with self:
                return run_higher_order(func, args, kwargs or {})
        if func._opname.startswith("grid_sampler") and any(
            isinstance(value, Tensor) and not bool(value.isfinite().all()) for value in args[:2]
        ):
            raise RefusedError("the grid that is sampled is not finite")
        return func(*args, **(kwargs or {}))


def derivative(
    output: Tensor, target: Terminal, position: tuple[int, ...], leaves: Sequence[Tensor], draws: Draws
) -> Sequence[Tensor | None]:
    """Return the derivatives of everything at an output position, weighed at random; None where there are none.

    Raises
    ------
    Exception
        Where an operation has no derivative, or fails to compute it.
    """
    by = [leaf for leaf in leaves if leaf.requires_grad]
    if not output.requires_grad or not by:
        return [None] * len(leaves)
    zeros, axes = torch.zeros_like(output), target.positions
    weights = replaced(zeros, axes, position, draws.normal(block(zeros, axes, position)))
    found = iter(torch.autograd.grad(output, by, weights, retain_graph=True, allow_unused=True))
    return [next(found) if leaf.requires_grad else None for leaf in leaves]


def not_zero(gradient: Tensor, source: Terminal) -> BoolArray:
    """Return at which positions a derivative is not zero, by more than rounding."""
    size = torch.where(gradient.isfinite(), gradient.abs(), 0)
    noise = rounding(gradient.dtype) * float(size.max())
    found: BoolArray = (rows(size, source.positions) > noise).any(1).cpu().numpy()
    return found


def reason(error: Exception) -> str:
    """Return in a few words why there is no derivative."""
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"
