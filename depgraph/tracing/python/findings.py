"""What has to be said of values that left the graph, and of models that cannot be followed."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import fx, nn

from depgraph.errors import TracingError
from depgraph.tracing.python.ways_out import Kind
from depgraph.tracing.names import signature_of
from depgraph.tracing.origin import line_of_error, module_of_error
from depgraph.tracing.program import Leaf, Source

if TYPE_CHECKING:
    from depgraph.tracing.recorder.recorder import Escape

_TEXTS: dict[Kind, str] = {
    "condition": "a condition on {origin} was {value}: analysed the branch taken by the example inputs",
    "number": "a number made of {origin} was taken to be {value}: analysed as for the example inputs",
    "array": "{operation}() takes {origin} out of PyTorch: what Python makes of that may not be followed",
    "size": "the size of what {operation}() returns depends on {origin}: analysed with {value}, as in the example",
    "stranger": "a tensor of shape {value} was made by other means than PyTorch's operations: it counts as constant",
}
_FOLLOWED: dict[Kind, str] = {
    "number": "a number made of {origin} was {value}: what is computed from it is followed, "
    "what it decides is as in the example",
    "array": "{operation}() takes {origin} out of PyTorch: a tensor made of that is taken to read all of it",
    "stranger": "a tensor of shape {value} was made by other means than PyTorch's operations: "
    "it is taken to read all inputs",
}
#: What is said of a model that draws random numbers where PyTorch does not see it.
DREW = "forward draws random numbers by Python's random or by NumPy: analysed with those that were drawn."
_UNSEEN = "what they make it"
_SHOWN = 3
RANDOM = "random numbers"


def sentences(escapes: Sequence[Escape], tensors: Sequence[Any], sources: Mapping[str, Source]) -> list[str]:
    """Return a sentence for each place where values left the graph that other inputs could have made others.

    Parameters
    ----------
    escapes : sequence of Escape
    tensors : sequence of torch.fx.Node
        For each of them the node that holds the tensor, in a functional graph.
    sources : mapping
        What the placeholders of that graph stand for.
    """
    read = _origins([tensor for tensor in tensors if isinstance(tensor, fx.Node)])
    grouped: dict[tuple[str, str, str], tuple[list[str], list[str]]] = {}
    for escape, tensor in zip(escapes, tensors, strict=True):
        origins = [_words(sources[name]) if name in sources else name for name in read.get(tensor, ())]
        origins = [words for words in origins if words]
        if not origins and escape.kind != "stranger":  # decided by known values: it is the same for all inputs
            continue
        place = str(escape.line) if escape.line else "the model"
        text = (_FOLLOWED if escape.followed else _TEXTS)[escape.kind]
        names, values = grouped.setdefault((place, text, escape.operation), ([], []))
        names += [words for words in origins if words not in names]
        if escape.value is not None and escape.kind != "array" and str(escape.value) not in values:
            values.append(str(escape.value))
    return [
        f"{place}: {text.format(operation=operation, origin=_listed(names), value=_listed(values) or _UNSEEN)}."
        for (place, text, operation), (names, values) in grouped.items()
    ]


def _origins(nodes: Sequence[fx.Node]) -> dict[fx.Node, list[str]]:
    """Return for each of some nodes the names of the placeholders that it reads, and `RANDOM` where it is random."""
    if not nodes:
        return {}
    names = [node.name for node in nodes[0].graph.nodes if node.op == "placeholder"] + [RANDOM]
    own = {name: 1 << i for i, name in enumerate(names)}
    bits: dict[fx.Node, int] = {}
    for node in nodes[0].graph.nodes:
        bits[node] = own[node.name] if node.op == "placeholder" else own[RANDOM] if _is_random(node) else 0
        for other in _lengths_of(node) or node.all_input_nodes:
            bits[node] |= bits[other]
    return {node: [name for name in names if own[name] & bits[node]] for node in nodes}


def _is_random(node: fx.Node) -> bool:
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
        return False
    return torch.Tag.nondeterministic_seeded in target.tags


def _lengths_of(node: fx.Node) -> list[fx.Node]:
    """Return what the batch sizes of a packed sequence are made of, the lengths alone; nothing for other nodes."""
    packed: Any = node.args[0] if node.target is operator.getitem and node.args[1] == 1 else None
    if packed is None or packed.target is not torch.ops.aten._pack_padded_sequence.default:
        return []
    return [packed.args[1]]


def _words(source: Source) -> str:
    """Return how a source is called whose values are not given; nothing for one whose values are."""
    if source.kind == "input":
        return f"the values of {source.name}"
    if source.kind == "parameter" or source.value.is_meta:
        return f"the values of the {source.kind} {source.name}"
    return ""


def _listed(words: Sequence[str]) -> str:
    if len(words) > _SHOWN:
        return ", ".join(words[:_SHOWN]) + f" and {len(words) - _SHOWN} more"
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def failure(model: nn.Module, inputs: Sequence[Leaf], error: BaseException, *, runs: bool) -> TracingError:
    """Return the error that says why a model cannot be traced.

    Parameters
    ----------
    model : torch.nn.Module
        The model that was run.
    inputs : sequence of Leaf
    error : Exception
        What was raised; by the model itself, or where it ``runs``, by tracing it.
    runs : bool
    """
    line, module = line_of_error(error), module_of_error(error, model)
    place = (f"{line}: " if line else "") + type(model).__name__
    inside = f" in {module} ({type(model.get_submodule(module)).__name__})" if module else ""
    given = ", ".join(f"{leaf.name} {_form(leaf.value)}" for leaf in inputs) or "no tensor"
    if runs:
        return TracingError(f"{place} runs, but cannot be followed{inside}: {_short(error)} Inputs: {given}.")
    takes = f"; forward takes {signature_of(model)}" if signature_of(model) else ""
    return TracingError(f"{place} fails on its example inputs{inside}: {_short(error)} Inputs: {given}{takes}.")


def _form(tensor: torch.Tensor) -> str:
    if tensor.is_nested:  # has no shape
        return f"nested {str(tensor.dtype).removeprefix('torch.')}"
    return f"{tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"


def _short(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    message = f"{type(error).__name__}: {lines[0] if lines else 'no message'}"
    return message if message.endswith((".", "!", "?")) else message + "."
