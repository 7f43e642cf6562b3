"""Loading a model: in the mode asked for, with the inputs to run it on."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from depgraph import LoadError
from depgraph_cli.loading.files import import_module, run_file, shown, told
from depgraph_cli.loading.inputs import Inputs, check_fit, from_file, from_specs, shown_signature, signature
from depgraph_cli.loading.model import find_model
from depgraph_cli.loading.target import Target
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
        What runs.
    program : torch.export.ExportedProgram or None
        What the module was made from, where it was exported before.
    args, kwargs : tuple, dict
        What forward is called with.
    positions : dict or None
        Tracked axes by name, None where they are to be inferred.
    """

    name: str
    module: nn.Module
    program: ExportedProgram | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    positions: dict[str | int, Any] | None

    @property
    def kind(self) -> str:
        """What the model is, in a word or two."""
        return type(self.module).__name__ if self.program is None else "exported program"

    @property
    def tracking(self) -> str:
        """How the tracked axes came about: ``"inferred"`` or ``"given"``."""
        return "inferred" if self.positions is None else "given"


def load_model(request: Request, target: Target) -> Loaded:
    """Return the model that a request is about.

    Raises
    ------
    LoadError
        Where the file, the model in it or its inputs cannot be had.
    """
    import torch

    torch.manual_seed(0)  # The same inputs every time, where a file draws them at random.
    where = shown(target.file) if target.file else target.module
    positions, offered = None, None
    if target.exported:
        assert target.file is not None
        model: nn.Module | ExportedProgram = _read_program(target.file)
        if request.n is not None:
            raise LoadError(
                f"--n {request.n} needs a model file: an exported program has the sizes it was exported with."
            )
    else:
        namespace = run_file(target.file) if target.file else import_module(target.module)
        model = find_model(namespace, target.attribute, where)
        positions = _positions(namespace, where)
        if not request.inputs:
            offered = from_file(namespace, request.n, where)
    program = model if isinstance(model, torch.export.ExportedProgram) else None
    module: nn.Module
    if isinstance(model, torch.export.ExportedProgram):
        if request.train:
            raise LoadError(f"--train needs a model file: {where} is an exported program, which keeps its mode.")
        module = model.module()
        if offered is None and model.example_inputs is not None:
            offered = tuple(model.example_inputs[0]), dict(model.example_inputs[1])
    else:
        module = getattr(model, "_orig_mod", model)  # What torch.compile wrapped.
        module.train(request.train)
    args, kwargs = _inputs(module, offered, request, where)
    if program is not None:
        args, kwargs = _arranged(program, module, args, kwargs)
    return Loaded(target.text, module, program, args, kwargs, request.positions or positions)


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


def _read_program(file: Path) -> ExportedProgram:
    import torch

    # PyTorch logs a traceback besides raising what is reported below.
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        return torch.export.load(file)
    except Exception as error:
        raise LoadError(
            f"{shown(file)} cannot be read as an exported program (written by torch.export.save): {told(error)}."
        ) from error
    finally:
        logging.disable(before)


def _arranged(program: ExportedProgram, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Inputs:
    """Return the arguments divided into positional and keyword ones as they were when the program was exported."""
    given = signature(module).bind(*args, **kwargs).arguments
    positional = len(program.call_spec.in_spec.child(0).children()) if program.call_spec.in_spec else len(args)
    values = list(given.items())
    return tuple(value for _, value in values[:positional]), dict(values[positional:])
