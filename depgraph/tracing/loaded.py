"""Programs that were exported before, and perhaps loaded from a file: they hold a graph and names already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument
from torch.utils import _pytree as pytree

from depgraph.errors import TracingError
from depgraph.tracing import specialised
from depgraph.tracing.exported import Reading, functional, read
from depgraph.tracing.names import input_leaves, tensors_of
from depgraph.tracing.opaque import is_static
from depgraph.tracing.program import Leaf
from depgraph.tracing.state import State
from depgraph.tracing.structure import Found, Path, tensors_in


@dataclass(eq=False)
class Opened:
    """What an exported program holds, in the terms of a `Program`."""

    reading: Reading
    inputs: list[Leaf]
    found: list[Path]
    state: State


def example_inputs(
    exported: ExportedProgram, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments an exported program is to be called with: its own, where none are given.

    Raises
    ------
    TracingError
        Where there are none, or they are not what the program takes.
    """
    structure = exported.call_spec.in_spec
    if not args and not kwargs and structure.num_leaves:
        if exported.example_inputs is None:
            raise TracingError("The exported program comes without example inputs. Give it some to be traced with.")
        args, kwargs = exported.example_inputs
    order = structure.children()[1].context or []
    kwargs = {key: kwargs[key] for key in order if key in kwargs} | kwargs
    values, given = pytree.tree_flatten((args, kwargs))
    if given != structure:
        raise TracingError(f"The exported program takes arguments like {_form(structure)}; got {_form(given)}.")
    names = [spec.arg.name for spec in exported.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
    forms = {node.name: node.meta.get("val") for node in exported.graph.find_nodes(op="placeholder")}
    for name, value in zip(names, values, strict=True):
        form = forms.get(name)
        if not isinstance(form, torch.Tensor):
            continue
        if not isinstance(value, torch.Tensor) or value.dtype != form.dtype or not _fits(value.shape, form.shape):
            got = f"{tuple(value.shape)} {value.dtype}" if isinstance(value, torch.Tensor) else repr(value)
            raise TracingError(f"The exported program takes {name} of {tuple(form.shape)} {form.dtype}; got {got}.")
    return args, kwargs


def open_program(exported: ExportedProgram, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Opened:
    """Return what an exported program holds, for arguments that it takes."""
    values = pytree.tree_leaves((args, kwargs))
    inputs = input_leaves(_named(exported, values))
    state = State.named(dict(exported.named_parameters()), dict(exported.named_buffers()), _memory)
    if all(is_static(node.meta.get("val")) for node in exported.graph.nodes):
        program = functional(exported)
    else:  # sizes were left open; the example inputs settle them
        named = dict(exported.named_parameters()) | dict(exported.named_buffers())
        program = specialised.exported(exported.module(check_guards=False), named, values)
    return Opened(read(program, inputs, state), inputs, _output_paths(exported), state)


def _form(structure: pytree.TreeSpec) -> str:
    args, kwargs = pytree.tree_unflatten(["…"] * structure.num_leaves, structure)
    return str((*args, *(f"{name}={value}" for name, value in kwargs.items()))).replace("'", "")


def _fits(given: Sequence[int], taken: Sequence[Any]) -> bool:
    return len(given) == len(taken) and all(
        isinstance(t, torch.SymInt) or t == g for g, t in zip(given, taken, strict=True)
    )


def _named(exported: ExportedProgram, values: Sequence[Any]) -> list[Found]:
    """Return the example tensors, each with its path, in flat order."""
    markers = [torch.empty(0) if isinstance(value, torch.Tensor) else value for value in values]
    args, kwargs = pytree.tree_unflatten(markers, exported.call_spec.in_spec)
    signature = exported.module_call_graph[0].signature
    names = (signature.forward_arg_names if signature else None) or [f"args.{i}" for i in range(len(args))]
    found = tensors_of([((name,), value) for name, value in zip(names, args, strict=False)])
    found += tensors_of([((name,), value) for name, value in kwargs.items()])
    path = {id(marker): path for path, marker in found}
    return [
        Found(path.get(id(marker), (f"args.{i}",)), value)
        for i, (marker, value) in enumerate(zip(markers, values, strict=True))
        if isinstance(value, torch.Tensor)
    ]


def _output_paths(exported: ExportedProgram) -> list[Path]:
    """Return the path of each output tensor, in flat order."""
    specs = [spec for spec in exported.graph_signature.output_specs if spec.kind is OutputKind.USER_OUTPUT]
    markers = [torch.empty(0) if isinstance(spec.arg, TensorArgument) else None for spec in specs]
    outputs = pytree.tree_unflatten(markers, exported.call_spec.out_spec)
    path = {id(marker): path for path, marker in tensors_in(outputs, private=False)}
    return [path.get(id(marker), (i,)) for i, marker in enumerate(markers) if marker is not None]


def _memory(tensor: torch.Tensor) -> Any:
    """Return what makes two tensors one: a file keeps memory shared, not objects."""
    if tensor.is_meta or not tensor.numel():
        return id(tensor)
    return tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype


def mode_of(exported: ExportedProgram) -> str:
    """Return the mode the model was in when it was exported, as far as its operations show it."""
    for node in exported.graph.find_nodes(op="call_function", target=torch.ops.aten.dropout.default):
        if node.args[2]:
            return "train"
    names = {str(node.target) for node in exported.graph.nodes}
    return "train" if any(kind in name for name in names for kind in _TRAINING) else "eval"


_TRAINING = ("native_dropout", "_native_batch_norm_legit_functional")
