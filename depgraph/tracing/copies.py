"""Copies of a model to trace, so that the user's own stays as it is."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parameter import UninitializedBuffer, is_lazy

from depgraph.errors import TracingError
from depgraph.tracing.structure import tensors_in
from depgraph.tracing.wrapper import Call

Tensors = tuple[torch.Tensor, ...]

_REGISTERED = ("_parameters", "_buffers", "_modules")
_LARGEST = 1 << 28
"""Elements of the largest model that is given arbitrary values where it has none."""


@contextmanager
def copied(model: nn.Module, *, sharing: bool = True) -> Iterator[nn.Module]:
    """Give a copy of a model that may be traced; by default its parameters and buffers are those of the model.

    A model that cannot be copied is given itself, and its attributes are put back afterwards.
    """
    known: dict[int, Any] = {}
    uninitialised: Any = UninitializedBuffer  # whose stub knows not its arguments
    for tensor in _state(model):
        if isinstance(tensor, UninitializedBuffer):  # knows no way to be copied
            known[id(tensor)] = uninitialised(device=tensor.device, dtype=tensor.dtype)
        elif sharing and not is_lazy(tensor):
            known[id(tensor)] = tensor
    try:
        twin = copy.deepcopy(model, dict(known))
    except Exception:
        for module in model.modules():  # computed tensors, which old-style weight_norm leaves behind, refuse
            loose = {name: value for name, value in vars(module).items() if name not in _REGISTERED}
            known.update({id(tensor): tensor.detach().clone() for _, tensor in tensors_in(loose)})
        try:
            twin = copy.deepcopy(model, dict(known))
        except Exception:
            twin = model
    if twin is not model:
        yield twin
        return
    before = [(module, _attributes(module)) for module in model.modules()]
    try:
        yield model
    finally:
        for module, attributes in before:
            vars(module).clear()
            vars(module).update(attributes)


def _attributes(module: nn.Module) -> dict[str, Any]:
    return {name: value.copy() if type(value) in (dict, list, set) else value for name, value in vars(module).items()}


def _state(model: nn.Module) -> Iterator[torch.Tensor]:
    yield from model.parameters()
    yield from model.buffers()


def initialised(model: nn.Module, call: Call) -> nn.Module:
    """Return the model or, where it holds lazy modules that have seen no input yet, a copy that has been run once."""
    if not any(isinstance(m, LazyModuleMixin) and m.has_uninitialized_params() for m in model.modules()):
        return model
    with copied(model, sharing=False) as twin:
        modes = [(module, module.training) for module in twin.modules()]
        call(twin.eval(), call.tensors())
        for module, training in modes:
            module.training = training
    return twin


def on_cpu(model: nn.Module, tensors: Tensors, *, data: bool) -> Tensors:
    """Move what a model holds on the meta device to the CPU, so that it mixes with what forward makes there.

    Parameters
    ----------
    model : torch.nn.Module
        A copy: its parameters, its buffers and the tensors among its attributes are replaced.
    tensors : tuple of torch.Tensor
        What it is given; returned alike.
    data : bool
        Whether they get memory and arbitrary values; else they have shapes only.
    """
    bare = [tensor for tensor in _state(model) if tensor.is_meta]
    if not bare and not any(tensor.is_meta for tensor in tensors):
        return tensors
    if data and sum(tensor.numel() for tensor in bare) > _LARGEST:
        raise TracingError(
            f"{type(model).__name__} can only be followed with values (something in it depends on them), but it is on "
            "the meta device and too large to be given any. Build a smaller one on the CPU."
        )
    moved = _mover(data)
    for module in model.modules():
        held: list[Any] = [module._parameters, module._buffers, vars(module)]
        for attributes in held:
            for name, value in attributes.items():
                if isinstance(value, torch.Tensor):
                    attributes[name] = moved(value)
    return tuple(moved(tensor) for tensor in tensors)


def _mover(data: bool) -> Callable[[torch.Tensor], torch.Tensor]:
    mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    made: dict[int, torch.Tensor] = {}

    def moved(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_meta:
            return tensor
        if id(tensor) not in made:  # tied ones stay tied
            if data:
                new = torch.full(tensor.shape, 0.01).to(tensor.dtype)
            else:
                with mode:
                    new = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
            made[id(tensor)] = nn.Parameter(new, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else new
        return made[id(tensor)]

    return moved
