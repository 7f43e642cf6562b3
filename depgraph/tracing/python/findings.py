"""What has to be said of values that left the graph, and of models that cannot be followed."""

from __future__ import annotations

import linecache
import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn

from depgraph.errors import TracingError
from depgraph.tracing.names import signature_of
from depgraph.tracing.origin import Line, line_of_error, module_of_error
from depgraph.tracing.program import Leaf, Source
from depgraph.tracing.python.escapes import Escape

_TEXTS: dict[str, str] = {
    "condition": "{code} depends on {origin}; {value} for the example inputs, only that branch is analysed",
    "number": "{code} makes a number of {origin}; {value} for the example inputs, what Python makes of it is as there",
    "array": "{code} takes {origin} out of PyTorch; what Python decides with it is as for the example inputs",
    "text": "{code} writes {origin} into a text; what Python makes of that is as for the example inputs",
    "size": "{code} returns as much as {origin} says; {value} for the example inputs, only that size is analysed",
    "stranger": "{code} makes a tensor of shape {value} by other means than PyTorch's operations; it counts as "
    "constant",
}
_FOLLOWED: dict[str, str] = {
    "number": "{code} makes a number of {origin}; {value} for the example inputs. What is computed from it is "
    "followed, what it decides is as there",
    "array": "{code} takes {origin} out of PyTorch; a tensor made of that is taken to read all of it",
    "stranger": "{code} makes a tensor of shape {value} by other means than PyTorch's operations; it is taken to read "
    "all inputs",
}
#: What is said of a model that draws random numbers where PyTorch does not see it.
DREW = "forward draws random numbers by Python's random or by NumPy: analysed with those that were drawn."
#: What is said of a model that starts threads.
THREADS = (
    "forward starts threads, in which nothing is followed: a tensor made or written to there is taken to read all "
    "inputs."
)
_SHOWN = 3
_LONGEST = 72
RANDOM = "random numbers"


@dataclass(frozen=True, eq=False)
class Findings:
    """The values that left the graph, with what they were made of.

    Attributes
    ----------
    escapes : list of Escape
    origins : list of dict
        For each of them, the words for what its values depend on, by the name of an input where it is one.
    more : list of str
        Further sentences.
    """

    escapes: list[Escape]
    origins: list[dict[str, str]]
    more: list[str]

    @classmethod
    def of(
        cls, escapes: Sequence[Escape], tensors: Sequence[Any], sources: Mapping[str, Source], more: Sequence[str]
    ) -> Findings:
        """Find out what values that left depend on.

        Parameters
        ----------
        escapes : sequence of Escape
        tensors : sequence of torch.fx.Node
            For each of them the node that holds the tensor.
        sources : mapping
            What the placeholders of the graph stand for.
        more : sequence of str
        """
        read = _origins([tensor for tensor in tensors if isinstance(tensor, fx.Node)])
        origins: list[dict[str, str]] = []
        for tensor in tensors:
            found = [(sources[name].name, sources[name]) if name in sources else (name, None)
                     for name in read.get(tensor, ())]  # fmt: skip
            found.sort(key=lambda one: one[1] is None or one[1].kind != "input")  # inputs first
            words = {name: _words(source) if source is not None else name for name, source in found}
            origins.append({name: text for name, text in words.items() if text})
        return cls(list(escapes), origins, list(more))

    def sentences(self, known: Collection[str] = ()) -> list[str]:
        """Return a sentence for each place where values left that other inputs could have made others.

        Parameters
        ----------
        known : collection of str
            Names of inputs that are held at their example values.
        """
        grouped: dict[tuple[Line | None, str, str], tuple[list[str], list[str]]] = {}
        for escape, origin in zip(self.escapes, self.origins, strict=True):
            if escape.kind == "symbol" or (escape.kind == "text" and escape.followed):  # it is shown to somebody
                continue
            words = [text for name, text in origin.items() if name not in known]
            if not words and escape.kind != "stranger":  # decided by known values: it is the same for all inputs
                continue
            text = (_FOLLOWED if escape.followed else _TEXTS)[escape.kind]
            names, values = grouped.setdefault((escape.line, text, escape.operation), ([], []))
            names += [word for word in words if word not in names]
            if escape.value is not None and escape.kind != "array" and str(escape.value) not in values:
                values.append(str(escape.value))
        return [
            (f"{line}: " if line else "")
            + text.format(code=_code(line, operation), origin=_listed(names), value=_listed(values))
            for (line, text, operation), (names, values) in grouped.items()
        ] + self.more


def _code(line: Line | None, operation: str) -> str:
    """Return a line of code as it is shown, or what was called where there is none to show."""
    text = linecache.getline(line.file, line.number).strip().removesuffix(":") if line is not None else ""
    if not text:
        return f"{operation}()" if operation else "something in it"
    return f'"{text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"}"'


def _origins(nodes: Sequence[fx.Node]) -> dict[fx.Node, list[str]]:
    """Return for each of some nodes the names of the placeholders that it reads, and `RANDOM` where it is random."""
    if not nodes:
        return {}
    names = [node.name for node in nodes[0].graph.nodes if node.op == "placeholder"] + [RANDOM]
    own = {name: 1 << i for i, name in enumerate(names)}
    bits: dict[fx.Node, int] = {}
    for node in nodes[0].graph.nodes:
        bits[node] = own[node.name] if node.op == "placeholder" else own[RANDOM] if _is_random(node) else 0
        for other in _lengths_of(node) or ([] if _takes_a_form(node) else node.all_input_nodes):
            bits[node] |= bits[other]
    return {node: [name for name in names if own[name] & bits[node]] for node in nodes}


def _is_random(node: fx.Node) -> bool:
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
        return False
    return torch.Tag.nondeterministic_seeded in target.tags


def _takes_a_form(node: fx.Node) -> bool:
    """Return whether a node reads no values of a tensor, only its shape and dtype."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
        return False
    name = target._opname
    return name in ("ones_like", "zeros_like", "empty_like", "new_ones", "new_zeros", "new_empty") or (
        name in ("full_like", "new_full") and len(node.all_input_nodes) == 1
    )


def _lengths_of(node: fx.Node) -> list[fx.Node]:
    """Return what the batch sizes of a packed sequence are made of, the lengths alone; nothing for other nodes."""
    packed: Any = node.args[0] if node.target is operator.getitem and node.args[1] == 1 else None
    if packed is None or packed.target is not torch.ops.aten._pack_padded_sequence.default:
        return []
    return [packed.args[1]]


def _words(source: Source) -> str:
    """Return how a source is called whose values are not given; nothing for one whose values are."""
    if source.kind == "input":
        return f"input {source.name}"
    if source.kind == "parameter" or source.mutated or source.value.is_meta:
        return f"{source.kind} {source.name}".strip()
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


def no_values(model: nn.Module, error: BaseException) -> TracingError:
    """Return the error that says that something in a model without data depends on values."""
    line = line_of_error(error)
    place = f"{line}: " if line else ""
    return TracingError(
        f"{place}{type(model).__name__} can only be followed with values: something here depends on them, and the "
        "model has none, being on the meta device or run without data. Build a smaller one on the CPU."
    )
