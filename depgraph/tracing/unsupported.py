"""Tensors that cannot be followed, nested and quantised ones: found where they are, and named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from depgraph.errors import TracingError
from depgraph.tracing.origin import Line, current_line
from depgraph.tracing.private import TorchDispatchMode
from depgraph.tracing.program import Leaf
from depgraph.tracing.structure import held_by
from depgraph.tracing.wrapper import Call

_ADVICE = {
    "nested": "Nested tensors are not supported: pad them to one length, and pass the lengths.",
    "quantised": "It cannot be followed: use its dequantize().",
}
_PACKED = "objects of TorchScript"


def kind_of(tensor: torch.Tensor) -> str:
    """Return which kind of tensor it is that cannot be followed, ``""`` for all others."""
    return "nested" if tensor.is_nested else "quantised" if tensor.is_quantized else ""


def refuse_nested(model: nn.Module, inputs: Sequence[Leaf]) -> None:
    """Raise where an input of a model, or something that it holds, is a nested tensor.

    Raises
    ------
    TracingError
        Naming it.
    """
    for words, tensor in _held(model, inputs):
        if kind_of(tensor) == "nested":
            raise TracingError(_said(words, tensor))


def reason(model: nn.Module, call: Call, tensors: Sequence[torch.Tensor], inputs: Sequence[Leaf], error: str) -> str:
    """Return what in a model that runs is the reason for an error of PyTorch's in tracing it.

    Parameters
    ----------
    model : torch.nn.Module
        It is run once more.
    call, tensors
        What it is called with.
    inputs : sequence of Leaf
    error : str
        What PyTorch said.

    Returns
    -------
    str
        A sentence or two, ``""`` where the reason is another one.
    """
    if _PACKED in error:
        return _packed(model)
    held = list(_held(model, inputs))
    made = _Made([*tensors, *(tensor for _, tensor in held)])
    with suppress(Exception), made, _Results(made):
        call(model, tuple(tensors))
    places = [(f"{line}: " if line else "") + f"{type(model).__name__} makes" for line, _ in made.found]
    found = list(zip(places, [tensor for _, tensor in made.found], strict=True))
    for words, tensor in sorted([*held, *found], key=lambda one: kind_of(one[1]) != "nested"):
        if kind_of(tensor):
            return _said(words, tensor)
    return ""


def _said(words: str, tensor: torch.Tensor) -> str:
    kind = kind_of(tensor)
    layout = "" if kind == "quantised" else f" (layout {str(tensor.layout).removeprefix('torch.')})"
    return f"{words} a {kind} tensor{layout}. {_ADVICE[kind]}"


def _held(model: nn.Module, inputs: Sequence[Leaf]) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield each tensor that is there before the model runs, with the beginning of a sentence about it."""
    for leaf in inputs:
        yield f"The input {leaf.name} of {type(model).__name__} is", leaf.value
    for kind, name, tensor in held_by(model):
        yield f"The {kind} {name} of {type(model).__name__} is", tensor


def _packed(model: nn.Module) -> str:
    """Return a sentence about the first module that holds weights in a form of its own, which PyTorch cannot trace."""
    for path, module in model.named_modules():
        if any(isinstance(value, torch.ScriptObject) for value in vars(module).values()):
            owner = path.rpartition(".")[0] if type(module).__name__.endswith("PackedParams") else path
            which = f"{owner} ({type(model.get_submodule(owner)).__name__})" if owner else type(model).__name__
            return (
                f"{which} holds packed quantised weights, which cannot be followed: analyse the float model that was "
                "quantised."
            )
    return ""


class _Made(TorchFunctionMode):
    """Notes the first tensors of the kinds named above that functions take or return, with the line that calls them."""

    def __init__(self, held: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self.held = {id(tensor) for tensor in held}
        self.found: list[tuple[Line | None, torch.Tensor]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.note(args)
        result = func(*args, **(kwargs or {}))
        self.note(result)
        return result

    def note(self, values: Any) -> None:
        """Look through what an operation takes or returns; one of a kind is enough."""
        known = {kind_of(tensor) for _, tensor in self.found} | {""}
        for value in pytree.tree_leaves(values):
            if isinstance(value, torch.Tensor) and id(value) not in self.held and kind_of(value) not in known:
                self.found.append((current_line(), value))
                return


class _Results(TorchDispatchMode):
    """Shows the same the results of operators, which not every function in Python lets be seen."""

    def __init__(self, made: _Made) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.made = made

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.made.note(result)
        return result
