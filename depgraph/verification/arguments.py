"""The arguments of a model, made anew for each run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from depgraph.tracing.structure import replaced, tensors_in
from depgraph.verification.values import laid_out


class Arguments:
    """What a model is called with: containers as the example has them, and any tensors.

    Parameters
    ----------
    args, kwargs
        The example.

    Attributes
    ----------
    forms : list of torch.Tensor
        The example tensors. Those that replace them lie in memory as they do.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.arguments = args, kwargs
        self.forms = [found.tensor.detach() for found in tensors_in(self.arguments)]
        self._wanted = [found.tensor.requires_grad for found in tensors_in(self.arguments)]

    def filled(self, values: Sequence[Tensor], known: Sequence[bool] = ()) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with other dense values; containers and memory are new, since forward may write there.

        Parameters
        ----------
        values : sequence of torch.Tensor
            One for each of the ``forms``.
        known : sequence of bool
            Which of them hold the example's own values, so that what is one element there may be one here.
        """
        known = known or [False] * len(values)
        tensors = [arranged(*one) for one in zip(values, self.forms, known, strict=True)]
        for tensor, wanted in zip(tensors, self._wanted, strict=True):
            if wanted and tensor.is_leaf and (tensor.is_floating_point() or tensor.is_complex()):
                tensor.requires_grad_()
        found: tuple[tuple[Any, ...], dict[str, Any]] = replaced(self.arguments, tensors, fresh=True)
        return found


def arranged(value: Tensor, form: Tensor, sharing: bool = False) -> Tensor:
    """Return a copy of a dense tensor that lies in memory as another one does.

    Where several elements of that one are one place in memory, they get places of their own, since each may get another
    value; unless they are ``sharing`` one.
    """
    if form.layout != torch.strided:
        return laid_out(value.clone(), form)
    if _is_disjoint(form):
        fresh = torch.empty_strided(form.size(), form.stride(), dtype=value.dtype, device=value.device)
        return fresh.copy_(value)
    if sharing and _is_disjoint(_thin(form, form)):
        return arranged(_thin(value, form), _thin(form, form)).expand(form.size())
    return value.clone()


def _thin(tensor: Tensor, form: Tensor) -> Tensor:
    """Return the first of what lies along each axis along which a tensor of that form has one place in memory."""
    for axis, stride in enumerate(form.stride()):
        if stride == 0 and form.shape[axis] > 1:
            tensor = tensor.narrow(axis, 0, 1)
    return tensor


def _is_disjoint(tensor: Tensor) -> bool:
    """Return whether each element surely has a place of its own."""
    reach = 0
    for stride, size in sorted(zip(tensor.stride(), tensor.size(), strict=True)):
        if size > 1:
            if stride <= reach:
                return False
            reach += stride * (size - 1)
    return True
