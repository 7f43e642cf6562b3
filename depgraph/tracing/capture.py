"""From a model and example arguments to a `Program`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn
from torch.export import ExportedProgram, export

from depgraph.errors import TracingError
from depgraph.tracing import specialised
from depgraph.tracing.copies import copied, initialised, named_state, on_cpu, tied_names
from depgraph.tracing.exported import Reading, functional, read
from depgraph.tracing.findings import failure, sentences
from depgraph.tracing.names import arguments_of, input_leaves, output_leaves
from depgraph.tracing.opaque import is_static
from depgraph.tracing.program import Leaf, Program
from depgraph.tracing.settings import quiet, tracing_settings
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
    if not isinstance(model, nn.Module):
        raise TracingError(f"A model is a torch.nn.Module; got {type(model).__name__}.")
    call = Call(args, kwargs or {})
    inputs = input_leaves(arguments_of(model, args, kwargs or {}))
    with tracing_settings():
        ready = initialised(model, call)
        subject = _Subject(ready, call, inputs, named_state(ready), tied_names(ready))
        reading, warnings = subject.read()
    forms = [r.meta["val"] if isinstance(r, fx.Node) else r for r in reading.results]
    return Program(
        graph=reading.graph,
        module=reading.module,
        sources=reading.sources,
        inputs=inputs,
        outputs=output_leaves(list(zip(call.found, forms, strict=True))),
        results=reading.results,
        updates=reading.updates,
        parameters=[name for name, _ in ready.named_parameters(remove_duplicate=False)],
        tied=subject.tied,
        warnings=warnings,
        mode="train" if model.training else "eval",
    )


@dataclass(eq=False)
class _Subject:
    """A model with its example arguments, and the two ways to get a graph out of it."""

    model: nn.Module
    call: Call
    inputs: list[Leaf]
    state: dict[str, torch.Tensor]
    tied: dict[str, str]

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
            program = export(Flat(model, self.call), tensors, strict=False)
            return functional(program)

    def _recorded(self) -> tuple[Reading, list[str]]:
        with copied(self.model) as model:
            tensors = on_cpu(model, self.call.tensors(), data=True)
            flat = Flat(model, self.call)
            recording = specialised.record(flat, tensors)
            program = specialised.exported(recording, named_state(flat), tensors)
        reading, escaped = self._reading(program)
        warnings = sentences(recording.escapes, escaped, reading.sources)
        reading.prune()
        return reading, warnings

    def _reading(self, program: ExportedProgram) -> tuple[Reading, list[fx.Node | torch.Tensor]]:
        reading = read(program, self.inputs, self.state, self.tied)
        return reading, reading.split(len(self.call.found), self.call.assigned)

    def _failure(self, error: Exception) -> TracingError:
        try:
            with quiet(), copied(self.model) as model:
                tensors = on_cpu(model, self.call.tensors(), data=True)
                self.call(model, tensors)
        except Exception as own:
            return failure(self.model, self.inputs, own, runs=False)
        return failure(self.model, self.inputs, error, runs=True)
