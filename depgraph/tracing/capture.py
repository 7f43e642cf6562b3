"""From a model and example arguments to a `Program`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn
from torch.export import ExportedProgram, export

from depgraph.errors import TracingError
from depgraph.tracing import loaded
from depgraph.tracing.copies import Tensors, copied, initialised, on_cpu
from depgraph.tracing.exported import Reading, functional, read
from depgraph.tracing.findings import DREW, failure, sentences
from depgraph.tracing.given import given
from depgraph.tracing.names import arguments_of, input_leaves, output_leaves, tensors_of
from depgraph.tracing.opaque import is_static
from depgraph.tracing.program import Leaf, Program
from depgraph.tracing.settings import SEED, quiet, tracing_settings
from depgraph.tracing.specialised import Recording, exported, record
from depgraph.tracing.state import State
from depgraph.tracing.structure import Found, Path
from depgraph.tracing.through_python import lead_back, shifted
from depgraph.tracing.unsupported import reason, refuse_nested
from depgraph.tracing.wrapper import Call, Flat


def capture(
    model: nn.Module | ExportedProgram,
    args: tuple[Any, ...] | torch.Tensor = (),
    kwargs: dict[str, Any] | None = None,
) -> Program:
    """Return the functional graph of a model for example arguments, with names.

    Parameters
    ----------
    model : torch.nn.Module or torch.export.ExportedProgram
        A module is traced in the mode it is in; a copy of it, and the module itself stays as it is.
    args, kwargs
        Example arguments, as the model would be called; a tensor stands for one argument. An exported program has its
        own, where none are given.

    Raises
    ------
    TracingError
        Where the model cannot be followed, or the arguments are nothing to call it with.

    Examples
    --------
    >>> import torch
    >>> program = capture(torch.nn.Linear(3, 2), (torch.zeros(5, 3),))
    >>> [(leaf.name, tuple(leaf.value.shape)) for leaf in program.inputs + program.outputs]
    [('input', (5, 3)), ('output', (5, 2))]
    >>> [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    ['aten.linear.default']
    """
    args, kwargs = given(args, kwargs)
    if isinstance(model, ExportedProgram):
        args, kwargs = loaded.example_inputs(model, args, kwargs)
        try:
            with tracing_settings():
                opened = loaded.open_program(model, args, kwargs)
        except Exception:  # sizes in it depend on values: it has to be run
            program = capture(model.module(check_guards=False), args, kwargs)
            program.mode = loaded.mode_of(model)
            return program
        return _program(opened.reading, opened.inputs, opened.found, opened.state, [], loaded.mode_of(model))
    if not isinstance(model, nn.Module):
        raise TracingError(f"A model is a torch.nn.Module; got {type(model).__name__}.")
    call = Call(args, kwargs)
    inputs = input_leaves(tensors_of(arguments_of(model, args, kwargs)))
    refuse_nested(model, inputs)
    with tracing_settings():
        ready = initialised(model, call)
        subject = _Subject(ready, call, inputs, State.of(ready))
        reading, warnings = subject.read()
    if call.drew:
        warnings.append(DREW)
    return _program(reading, inputs, call.found, subject.state, warnings, "train" if model.training else "eval")


def _program(
    reading: Reading, inputs: list[Leaf], found: list[Path], state: State, warnings: list[str], mode: str
) -> Program:
    forms = [result.meta["val"] if isinstance(result, fx.Node) else result for result in reading.results]
    return Program(
        graph=reading.graph,
        module=reading.module,
        sources=reading.sources,
        inputs=inputs,
        outputs=output_leaves([Found(path, form) for path, form in zip(found, forms, strict=True)]),
        results=reading.results,
        updates=reading.updates,
        parameters=state.parameters,
        tied=state.tied,
        warnings=warnings,
        mode=mode,
    )


@dataclass(eq=False)
class _Subject:
    """A model with its example arguments, and the two ways to get a graph out of it."""

    model: nn.Module
    call: Call
    inputs: list[Leaf]
    state: State

    def read(self) -> tuple[Reading, list[str]]:
        """Read the model as it is exported or, where that is refused, what it does on its example inputs."""
        try:
            with quiet():
                program = self._exported()
            if all(is_static(node.meta.get("val")) for node in program.graph.nodes):
                return self._reading(program)[0], []
        except TracingError:
            raise
        except Exception:
            pass  # the example inputs decide
        try:
            with quiet():
                return self._recorded()
        except TracingError:
            raise
        except Exception as error:
            raise self._failure(error) from error

    def _exported(self) -> ExportedProgram:
        with copied(self.model) as model:
            tensors = on_cpu(model, self.call.tensors(), data=False)
            return functional(export(Flat(model, self.call, SEED), tensors, strict=False))

    def _recorded(self) -> tuple[Reading, list[str]]:
        recording, tensors = self._record()
        lead_back(recording, lambda changed, by: self._record(changed, by)[0])
        program = exported(recording.line, recording.state, tensors)
        reading, escaped = self._reading(program)
        warnings = sentences(recording.escapes, escaped, reading.sources)
        reading.prune()
        return reading, warnings

    def _record(self, changed: Collection[int] | None = None, by: float = 0.0) -> tuple[Recording, Tensors]:
        """Run the model on its example inputs, or once more with something changed: see `lead_back`."""
        with copied(self.model) as model:
            tensors = on_cpu(model, self.call.tensors(), data=True)
            if changed is None:
                return record(Flat(model, self.call, SEED), tensors), tensors
            found, assigned = self.call.found, self.call.assigned
            if not changed:
                tensors = tuple(
                    t + by * torch.rand_like(t) * t.abs().clamp(by) if t.is_floating_point() else t for t in tensors
                )
            try:
                return record(
                    Flat(model, self.call, SEED), tensors, lambda k, v: shifted(v, by) if k in changed else v
                ), tensors
            finally:
                self.call.found, self.call.assigned = found, assigned

    def _reading(self, program: ExportedProgram) -> tuple[Reading, list[fx.Node | torch.Tensor]]:
        reading = read(program, self.inputs, self.state)
        return reading, reading.split(len(self.call.found), self.call.assigned)

    def _failure(self, error: Exception) -> TracingError:
        with copied(self.model) as model:
            try:
                with quiet():
                    self.call(model, on_cpu(model, self.call.tensors(), data=True))
            except Exception as own:
                return failure(model, self.inputs, own, runs=False)
            tensors = on_cpu(model, self.call.tensors(), data=True)
            if known := reason(model, self.call, tensors, self.inputs, str(error)):
                return TracingError(known)
            return failure(model, self.inputs, error, runs=True)
