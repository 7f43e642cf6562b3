"""The names under which tensors that go in and come out are addressed."""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Sequence
from typing import Any

import torch

from depgraph.errors import TracingError
from depgraph.tracing.program import Leaf
from depgraph.tracing.structure import Found, Path, tensors_in


def arguments_of(model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[Path, Any]]:
    """Return each argument with its path: ``("x",)``, ``("args", 0)`` in ``*args``, the keyword in ``**kwargs``.

    Raises
    ------
    TracingError
        Where ``forward`` does not take these arguments.
    """
    signature = signature_of(model)
    if signature is None or not _binds(signature, args, kwargs):
        if signature is not None and not hasattr(model.forward, "__wrapped__"):  # a decorator may take other arguments
            raise TracingError(
                f"{type(model).__name__}.forward takes {signature}; it was given {_described(args, kwargs)}."
            )
        return [(("args", i), value) for i, value in enumerate(args)] + [((k,), v) for k, v in kwargs.items()]
    found: list[tuple[Path, Any]] = []
    positional = iter(signature.parameters.values())
    rest, number = "", 0
    for value in args:
        if not rest:
            parameter = next(positional)
            if parameter.kind is not inspect.Parameter.VAR_POSITIONAL:
                found.append(((parameter.name,), value))
                continue
            rest = parameter.name
        found.append(((rest, number), value))
        number += 1
    return found + [((name,), value) for name, value in kwargs.items()]


def signature_of(model: torch.nn.Module) -> inspect.Signature | None:
    """Return what a model's forward takes, None where it does not say."""
    while isinstance(model, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)):
        model = model.module
    try:
        return inspect.signature(model.forward)
    except (TypeError, ValueError):  # builtins and scripted methods
        return None


def _binds(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _described(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    named = f" and {', '.join(f'{name}=' for name in kwargs)}" if kwargs else ""
    return f"{len(args)} positional argument" + ("s" if len(args) != 1 else "") + named


def dotted(path: Path) -> str:
    """Return a path as a name: ``batch.feats.1``."""
    return ".".join(str(key) for key in path)


def tensors_of(arguments: Sequence[tuple[Path, Any]]) -> list[Found]:
    """Return every tensor among arguments, with the path that begins with that of its argument."""
    return [Found((*path, *inner), tensor) for path, value in arguments for inner, tensor in tensors_in(value)]


def input_leaves(tensors: Sequence[Found]) -> list[Leaf]:
    """Return a leaf for each input tensor; its index among them is an alias."""
    leaves: list[Leaf] = []
    taken: set[str] = set()
    for path, tensor in tensors:
        name = dotted(path)
        if name in taken:  # keys that contain dots
            name += f"#{len(leaves)}"
        taken.add(name)
        leaves.append(Leaf(name, (len(leaves),), tensor))
    return leaves


def output_leaves(outputs: Sequence[tuple[Path, torch.Tensor]]) -> list[Leaf]:
    """Return a leaf for each output tensor, named by its path or, where that is made of integers, by its number."""
    numbered = [f"output.{k}" for k in range(len(outputs))]
    by_path = ["output." + dotted(path) if path else "output" for path, _ in outputs]
    leaves: list[Leaf] = []
    taken: set[Hashable] = {*numbered, "output"}
    for k, (path, value) in enumerate(outputs):
        by_number = all(isinstance(key, int) for key in path)
        name = by_path[k] if not by_number else "output" if len(outputs) == 1 else numbered[k]
        if not by_number and name in taken:  # keys that contain dots
            name += f"#{k}"
        keys: list[Hashable] = [numbered[k]]
        if len(outputs) == 1:
            keys.append("output")
        if by_path[k] not in taken:
            keys.append(by_path[k])
        taken.update((name, *keys))
        leaves.append(Leaf(name, tuple(key for key in keys if key != name), value))
    return leaves
