"""Following an operator as if it were a function written in PyTorch's operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from depgraph.rules.values import Value, generic
from depgraph.tracing.capture import capture
from depgraph.tracing.program import Program

if TYPE_CHECKING:
    from depgraph.unrolling.invocation import Invocation


def like(call: Invocation, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Follow a function of `Value` and other arguments; see `depgraph.rules.call.Call.like`."""
    from depgraph.unrolling.interpreter import constant

    interpreter = call.interpreter
    leaves, structure = pytree.tree_flatten((args, kwargs))
    values = [leaf for leaf in leaves if isinstance(leaf, Value)]
    key = (function, structure, *(_form(leaf) for leaf in leaves))
    if key not in interpreter.references:
        forms = tuple(torch.empty(value.shape, dtype=value.dtype, device="meta") for value in values)
        interpreter.references[key] = capture(Reference(function, leaves, structure), forms)
    program: Program = interpreter.references[key]
    given = {leaf.name: value for leaf, value in zip(program.inputs, values, strict=True)}
    placeholders = {}
    for name, source in program.sources.items():
        if source.kind == "input":
            placeholders[name] = given[source.name]
        elif source.kind == "parameter" or source.mutated:
            placeholders[name] = generic(source.value.shape, source.value.dtype)
        else:
            placeholders[name] = constant(source.value)
    place = (call.label.module, call.label.source)
    env = interpreter.run(program.module, program.graph, placeholders, lambda _: place)
    results = [env[r] for r in program.results]
    return tuple(results) if isinstance(call.meta, (tuple, list)) else results[0]


class Reference(nn.Module):
    """A function with some of its arguments filled in, as a module of tensors."""

    def __init__(self, function: Callable[..., Any], leaves: list[Any], structure: pytree.TreeSpec) -> None:
        super().__init__()
        self.function, self.structure = function, structure
        self.leaves = [None if isinstance(leaf, Value) else (leaf,) for leaf in leaves]

    def forward(self, *tensors: torch.Tensor) -> Any:
        """Call the function."""
        given = iter(tensors)
        leaves = [next(given) if leaf is None else leaf[0] for leaf in self.leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self.structure)
        return self.function(*args, **kwargs)


def _form(leaf: Any) -> Any:
    return (tuple(leaf.shape), leaf.dtype) if isinstance(leaf, Value) else (type(leaf).__name__, repr(leaf))
