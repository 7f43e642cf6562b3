"""Loading a TARGET: the model, in the mode asked for, and the inputs to run it on."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from depgraph import LoadError
from depgraph_cli.loading.files import import_module, run_file, shown, told
from depgraph_cli.loading.inputs import Inputs, check_fit, from_file, from_specs, shown_signature, signature
from depgraph_cli.loading.model import find_model
from depgraph_cli.loading.target import parse
from depgraph_cli.options import Request

if TYPE_CHECKING:
    from torch import nn
    from torch.export import ExportedProgram


@dataclass(frozen=True)
class Loaded:
    """A model, and what to run it on.

    Attributes
    ----------
    name : str
        The TARGET as it was given.
    module : torch.nn.Module
    args, kwargs : tuple, dict
        What forward is called with.
    positions : dict or None
        Tracked axes by name, None where they are to be inferred.
    """

    name: str
    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    positions: dict[str | int, Any] | None


def load(request: Request) -> Loaded:
    """Return the model that a request is about.

    Raises
    ------
    LoadError
        Where the file, the model in it or its inputs cannot be had.
    """
    import torch

    torch.manual_seed(0)  # The same inputs every time, where a file draws them at random.
    target = parse(request.target)
    where = shown(target.file) if target.file else target.module
    if target.exported:
        assert target.file is not None
        module, offered = _opened(_read_program(target.file))
        positions = None
        if request.n is not None:
            raise LoadError(
                f"--n {request.n} needs a model file: an exported program has the sizes it was exported with."
            )
    else:
        namespace = run_file(target.file) if target.file else import_module(target.module)
        model = find_model(namespace, target.attribute, where)
        offered = None
        if isinstance(model, torch.export.ExportedProgram):
            module, offered = _opened(model)
        else:
            module = getattr(model, "_orig_mod", model)  # What torch.compile wrapped.
            _set_mode(module, request.train)
        positions = _positions(namespace, where)
        if not request.inputs:
            offered = from_file(namespace, request.n, where) or offered
    args, kwargs = _inputs(module, offered, request, where)
    return Loaded(target.text, module, args, kwargs, request.positions or positions)


def _inputs(module: nn.Module, offered: Inputs | None, request: Request, where: str) -> Inputs:
    if request.inputs:
        args, kwargs = from_specs(module, request.inputs)
        check_fit(module, args, kwargs, "--input")
        return args, kwargs
    if offered is None:
        needed = [p for p in signature(module).parameters.values() if p.default is p.empty]
        if needed:
            first = next((p.name for p in needed if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)), "NAME")
            raise LoadError(
                f"{where} has no example inputs. Define `example_inputs` (a tensor, a tuple, a dict of keyword "
                "arguments, or a function of n returning one of these), or give --input for the arguments of "
                f"{type(module).__name__}.forward{shown_signature(module)}, as in --input {first}=1,64,512."
            )
        offered = (), {}
    check_fit(module, *offered, "`example_inputs`")
    return offered


def _positions(namespace: object, where: str) -> dict[str | int, Any] | None:
    value = getattr(namespace, "positions", None)
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise LoadError(f"`positions` in {where} is a {type(value).__name__}, not a dict such as {{'x': 1}}.")
    return dict(value)


def _set_mode(module: nn.Module, train: bool) -> None:
    with contextlib.suppress(NotImplementedError):  # The module of an exported program keeps its mode.
        module.train(train)


def _read_program(file: Path) -> ExportedProgram:
    import torch

    try:
        return torch.export.load(file)
    except Exception as error:
        raise LoadError(
            f"{shown(file)} cannot be read as an exported program (written by torch.export.save): {told(error)}."
        ) from error


def _opened(program: ExportedProgram) -> tuple[nn.Module, Inputs | None]:
    """Return an exported program as a module, with the inputs it was exported with, where it kept them."""
    module = program.module()
    for part in module.modules():
        part.training = False  # It has no mode to switch.
    example = program.example_inputs
    return module, None if example is None else (tuple(example[0]), dict(example[1]))
