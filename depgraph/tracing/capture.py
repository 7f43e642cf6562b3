"""From a model and example arguments to a `Program`."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn
from torch.export import export

from depgraph.errors import TracingError
from depgraph.tracing.exported import read
from depgraph.tracing.names import arguments_of, input_leaves, output_leaves
from depgraph.tracing.program import Program
from depgraph.tracing.settings import tracing_settings
from depgraph.tracing.wrapper import Call, Flat


def capture(model: nn.Module, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Program:
    """Return the functional graph of a model for example arguments, with names.

    Parameters
    ----------
    model : torch.nn.Module
        Traced in the mode it is in. A copy is traced; the model itself stays as it is.
    args, kwargs
        Example arguments, as the model would be called.

    Raises
    ------
    TracingError
        Where the model cannot be followed.
    """
    arguments = arguments_of(model, args, kwargs or {})
    inputs = input_leaves(arguments)
    with tracing_settings():
        call = Call(args, kwargs or {})
        flat = Flat(copy.deepcopy(model), call)
        exported = export(flat, call.tensors(), strict=False).run_decompositions({})
    if not call.found:
        raise TracingError(f"{type(model).__name__} returns no tensor, so nothing depends on anything.")
    named = dict(model.named_parameters(remove_duplicate=False))
    tied = _tied(model)
    values: dict[str, torch.Tensor] = {**named, **dict(model.named_buffers(remove_duplicate=False))}
    reading = read(exported, inputs, values, tied)
    shapes = [r.meta["val"] if isinstance(r, torch.fx.Node) else r for r in reading.results]
    outputs = output_leaves(list(zip(call.found, shapes, strict=True)))
    return Program(
        graph=reading.graph,
        module=reading.module,
        sources=reading.sources,
        inputs=inputs,
        outputs=outputs,
        results=reading.results,
        updates=reading.updates,
        parameters=list(named),
        tied=tied,
        warnings=[],
        mode="train" if model.training else "eval",
    )


def _tied(model: nn.Module) -> dict[str, str]:
    """Return the second names of parameters and buffers that have several, with the first one."""
    first: dict[int, str] = {}
    tied: dict[str, str] = {}
    for named in (model.named_parameters(remove_duplicate=False), model.named_buffers(remove_duplicate=False)):
        for name, value in named:
            if first.setdefault(id(value), name) != name:
                tied[name] = first[id(value)]
    return tied
