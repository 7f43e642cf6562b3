"""Programs that were exported before, and perhaps loaded from a file: their operators run like any model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx, nn
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree

from depgraph.errors import TracingError
from depgraph.tracing import origin
from depgraph.tracing.names import tensors_of
from depgraph.tracing.origin import Line, telling
from depgraph.tracing.state import State
from depgraph.tracing.structure import Found

_FRAME = re.compile(r'^\s*File "(?P<file>[^"\n]+)", line (?P<line>\d+)', re.MULTILINE)


def opened(exported: ExportedProgram) -> nn.Module:
    """Return an exported program as a module, whose operations are said to be where those of the model were."""
    module: Any = exported.module(check_guards=False)
    graph = module.graph

    def forward(*args: Any, **kwargs: Any) -> Any:
        values = pytree.tree_leaves((args, kwargs))
        result = _Replay(module).run(*values, enable_io_processing=False)
        return pytree.tree_unflatten(pytree.tree_leaves(result), exported.call_spec.out_spec)

    assert isinstance(graph, fx.Graph)
    for region in module.modules():
        if isinstance(region, fx.GraphModule):
            region.forward = _Replay(region).run
    module.forward = forward
    return module  # type: ignore[no-any-return]


class _Replay(fx.Interpreter):
    """Runs a graph, and tells of each node where it comes from."""

    def run_node(self, n: fx.Node) -> Any:
        """Run one node."""
        stack = n.meta.get("nn_module_stack") or {"": ("",)}
        path: str = next(reversed(stack.values()))[0]
        frames = _FRAME.finditer(n.meta.get("stack_trace") or "")
        line = telling(Line(match["file"], int(match["line"])) for match in frames)
        with origin.placed(path, line):
            return super().run_node(n)


def inputs_of(exported: ExportedProgram, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Found]:
    """Return the example tensors of an exported program, each with its path, in flat order."""
    return _named(exported, pytree.tree_leaves((args, kwargs)))


def state_of(module: nn.Module) -> State:
    """Return the parameters and buffers of an opened program: a file keeps memory shared, not objects."""
    return State.named(dict(module.named_parameters(remove_duplicate=False)),
                       dict(module.named_buffers(remove_duplicate=False)), _memory)  # fmt: skip


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
