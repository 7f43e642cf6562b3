"""The inputs a model is run on: from the file, or described on the command line."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from depgraph import LoadError
from depgraph_cli.loading.files import told
from depgraph_cli.options import InputSpec

if TYPE_CHECKING:
    import torch
    from torch import nn

Inputs = tuple[tuple[Any, ...], dict[str, Any]]


def from_file(namespace: object, n: int | None, where: str) -> Inputs | None:
    """Return the positional and keyword arguments that a file's ``example_inputs`` stands for, None without any.

    Raises
    ------
    LoadError
        Where they are nothing that a model can be called with.
    """
    if not hasattr(namespace, "example_inputs") and not hasattr(namespace, "example_kwargs"):
        if n is not None:
            raise LoadError(f"--n {n} is passed on to `example_inputs`, a function of n; {where} has none.")
        return None
    value = getattr(namespace, "example_inputs", ())
    if callable(value):
        value = _call(value, n, where)
    elif n is not None:
        raise LoadError(f"--n {n} needs `example_inputs` to be a function of n; in {where} it is {_kind(value)}.")
    args, kwargs = _arguments(value, where)
    more = getattr(namespace, "example_kwargs", None) or {}
    if not isinstance(more, Mapping):
        raise LoadError(f"`example_kwargs` in {where} is {_kind(more)}, not a dict of keyword arguments.")
    return args, {**kwargs, **more}


def from_specs(module: nn.Module, specs: Sequence[InputSpec]) -> Inputs:
    """Return random tensors as described, as the keyword arguments of forward.

    Raises
    ------
    LoadError
        Where forward takes no argument of that name.
    """
    parameters = signature(module).parameters
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    names = [p.name for p in parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    for spec in specs:
        if spec.name not in names and not open_ended:
            takes = ", ".join(names) or "none that has a name"
            raise LoadError(
                f"forward of {type(module).__name__} has no argument {spec.name!r}. Its arguments are: {takes}."
            )
    return (), {spec.name: _random(spec, module) for spec in specs}


def check_fit(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], origin: str) -> None:
    """Raise where forward cannot be called with these arguments, whatever their shapes.

    Raises
    ------
    LoadError
        Saying which argument is missing, or is one too many.
    """
    try:
        signature(module).bind(*args, **kwargs)
    except TypeError as error:
        given = [*(describe(a) for a in args), *(f"{name}={describe(a)}" for name, a in kwargs.items())]
        raise LoadError(
            f"{origin} does not fit {type(module).__name__}.forward{shown_signature(module)}: {error}. "
            f"Given: {', '.join(given) or 'nothing'}."
        ) from None


def signature(module: nn.Module) -> inspect.Signature:
    """Return what forward takes; anything, where that cannot be told."""
    try:
        return inspect.signature(module.forward)
    except (TypeError, ValueError):
        return inspect.signature(lambda *args, **kwargs: None)


def shown_signature(module: nn.Module) -> str:
    """Return the arguments of forward as ``(x, mask=None)``: annotations tell little and are long."""
    taken = signature(module)
    bare = [p.replace(annotation=p.empty) for p in taken.parameters.values()]
    return str(taken.replace(parameters=bare, return_annotation=taken.empty))


def describe(value: Any) -> str:
    """Return a value in a few words: the dtype and shape of a tensor, the type of anything else."""
    import torch

    if isinstance(value, torch.Tensor):
        shape = "nested" if value.is_nested else f"({', '.join(map(str, value.shape))})"
        return f"{str(value.dtype).removeprefix('torch.')} {shape}"
    return repr(value) if isinstance(value, (bool, int, float, str, type(None))) else type(value).__name__


def _call(function: Any, n: int | None, where: str) -> Any:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    if n is not None and not parameters:
        raise LoadError(f"--n {n} needs `example_inputs` in {where} to be a function of n; it takes no argument.")
    if n is None and any(p.default is p.empty and p.kind <= p.POSITIONAL_OR_KEYWORD for p in parameters[:1]):
        raise LoadError(f"`example_inputs` in {where} needs a size: give --n, or give its argument a default.")
    try:
        return function() if n is None else function(n)
    except Exception as error:
        size = "" if n is None else str(n)
        raise LoadError(f"`example_inputs({size})` in {where} fails: {told(error)}.") from error


def _arguments(value: Any, where: str) -> Inputs:
    import torch

    if isinstance(value, torch.Tensor):
        return (value,), {}
    if isinstance(value, Mapping):
        wrong = [key for key in value if not isinstance(key, str)]
        if wrong:
            raise LoadError(
                f"`example_inputs` in {where} is a dict of keyword arguments, but has the key {wrong[0]!r}."
            )
        return (), dict(value)
    if isinstance(value, (tuple, list)):
        return tuple(value), {}
    raise LoadError(
        f"`example_inputs` in {where} is {_kind(value)}, not a tensor, a tuple of arguments, a dict of keyword "
        "arguments or a function of n returning one of these."
    )


def _random(spec: InputSpec, module: nn.Module) -> torch.Tensor:
    """Return a tensor as described, on the model's device; integers are 0 or 1, which any vocabulary has."""
    import torch

    tensors = [*module.parameters(), *module.buffers()]
    device = tensors[0].device if tensors else torch.device("cpu")
    floats = [t.dtype for t in tensors if t.is_floating_point()]
    dtype = getattr(torch, spec.dtype) if spec.dtype else (floats[0] if floats else torch.get_default_dtype())
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(spec.shape, dtype=dtype, device=device)
    return torch.randint(0, 2, spec.shape, device=device).to(dtype)


def _kind(value: Any) -> str:
    return f"a {type(value).__name__}"
