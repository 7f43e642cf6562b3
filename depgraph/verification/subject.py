"""A model that runs again and again, on any values in place of its own, and is the same after each run."""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from depgraph.dag.graph import DependencyGraph, Terminal
from depgraph.errors import GraphError
from depgraph.tracing.restoring import Kept, set_data
from depgraph.tracing.settings import SEED, start_random
from depgraph.tracing.structure import tensors_in
from depgraph.tracing.writes import Writes
from depgraph.verification.arguments import Arguments, arranged
from depgraph.verification.decisions import noted
from depgraph.verification.derivatives import Guarded
from depgraph.verification.memory import place
from depgraph.verification.values import Draws, dense, widened

_WEIGHTS = 5000  # what the random numbers of parameters start from, lest they be those of arguments


@dataclass(frozen=True, eq=False)
class Source:
    """An input of the graph, with the model's own value of it.

    Attributes
    ----------
    terminal : Terminal
    value : torch.Tensor
        Dense, whatever layout the model takes it in.
    held : torch.Tensor or None
        The parameter or buffer that it is; None for an argument of forward.
    known : bool
        Whether it is held at that value.
    """

    terminal: Terminal
    value: Tensor
    held: Tensor | None
    known: bool


class Subject:
    """The user's model, which runs on any values in place of its own.

    Parameters
    ----------
    graph : DependencyGraph
    model : torch.nn.Module
        Its tensors are in the precision that it is to run in; what it is at the moment is what each run starts from.
    arguments : Arguments
    dtype : torch.dtype or None
        That precision, None for the model's own.
    outer : Kept
        Told of each tensor of the model's that is written to between runs.
    own : bool
        Whether that is the precision of everything in the model.

    Attributes
    ----------
    sources : list of Source
        One for each input of the graph.
    strayed, refused : int
        Runs that went another way than the example inputs do, and runs that raised.
    drew : bool
        Whether the model draws random numbers by other means than PyTorch's.
    constants : set of int
        Whole numbers that it compares whole numbers with.
    """

    def __init__(
        self, graph: DependencyGraph, model: nn.Module, arguments: Arguments, dtype: torch.dtype | None, outer: Kept,
        *, own: bool,
    ) -> None:  # fmt: skip
        self.graph, self.model, self.arguments, self.dtype, self.own = graph, model, arguments, dtype, own
        terminals = list(graph.inputs.values())
        self.sources = [
            Source(terminal, dense(widened(form, dtype)), None, terminal.name in graph.known_inputs)
            for terminal, form in zip(terminals, arguments.forms, strict=False)
        ]
        for terminal in terminals[len(arguments.forms) :]:
            held = _held(model, terminal)
            self.sources.append(Source(terminal, dense(held.detach()).clone(), held, False))
        self.keeper = Kept((model, *arguments.arguments))
        places = {place(source.held) for source in self.sources if source.held is not None}
        drawn: dict[Any, Tensor] = {}
        for tensor in self.keeper.tensors:
            if isinstance(tensor, nn.Parameter) and not tensor.is_meta and place(tensor) not in places:
                drawn.setdefault(place(tensor), tensor.detach())
        self._parameters = list(drawn.values())
        for tensor in (*self._parameters, *(source.held for source in self.sources if source.held is not None)):
            outer.before_write(tensor)
        self._own = [tensor.clone() for tensor in self._parameters]
        self._weights: int | None = None
        self._way: list[Any] = []
        self._random = torch.empty(0)
        self._watched = True
        self.constants: set[int] = set()
        self.drew = False
        self.strayed = self.refused = 0

    def weigh(self, number: int | None) -> None:
        """Give the parameters that are no sources the values of a draw, or their own ones."""
        if number == self._weights:
            return
        draws = Draws(_WEIGHTS + (number or 0))
        for tensor, own in zip(self._parameters, self._own, strict=True):
            tensor.copy_(own if number is None else draws.parameter(own))
        self._weights = number

    def example(self) -> list[Tensor]:
        """Run the model on its own values, and learn which way it goes, and whether it writes to anything."""
        start_random(SEED)  # as each run does
        before = _drawn()
        with self._running([source.value for source in self.sources], SEED, self.constants) as (outputs, way):
            self._way, self._random = way, torch.default_generator.get_state()
            self.drew = _drawn() != before
            self._watched = bool(way) or self.keeper.wrote
            found = [dense(output).detach().clone() for output in outputs]
        start_random(SEED)
        self._check(found)
        return found

    def base(self, values: Sequence[Tensor], seed: int) -> list[Tensor] | None:
        """Run like `run`, for other runs to be compared with this one."""
        return self._outputs(values, seed, first=True)

    def run(self, values: Sequence[Tensor], seed: int) -> list[Tensor] | None:
        """Return the outputs, None where the model does not take the values or goes another way than the graph.

        A run that draws more random numbers than its base, or fewer, is not like it either: each number that is drawn
        later is another one.

        Parameters
        ----------
        values : sequence of tensors
            One for each source.
        seed : int
            What random numbers in the model start from.
        """
        return self._outputs(values, seed, first=False)

    @contextmanager
    def followed(self, values: Sequence[Tensor], leaves: Sequence[int], seed: int) -> Iterator[Any]:
        """Give the outputs, with their history, and the tensors to derive by, in place of some sources.

        The model is put back only afterwards: what derivatives are made of may lie in its memory.
        """
        given, found = list(values), []
        with torch.enable_grad():
            for number in leaves:
                held = self.sources[number].held
                if held is None:
                    given[number] = values[number].detach().clone().requires_grad_()
                elif held.layout == torch.strided and held.is_leaf:
                    held.requires_grad_()
                found.append(given[number] if held is None else held)
            with Guarded(), self._running(given, seed) as (outputs, way):  # type: ignore[no-untyped-call]
                yield (outputs if way == self._way else None), found

    def _outputs(self, values: Sequence[Tensor], seed: int, *, first: bool) -> list[Tensor] | None:
        try:
            with self._running(values, seed) as (returned, way):
                drawn = torch.default_generator.get_state()
                outputs = [dense(output).detach().clone() for output in returned]
        except Exception:  # indices out of range, sizes that do not fit, and whatever else a model checks
            self.refused += 1
            return None
        shapes = [tuple(output.shape) for output in outputs]
        self._random = drawn if first else self._random
        alike = way == self._way and torch.equal(drawn, self._random)
        if not alike or shapes != [terminal.shape for terminal in self.graph.outputs.values()]:
            self.strayed += 1
            return None
        return outputs

    @contextmanager
    def _running(
        self, values: Sequence[Tensor], seed: int, constants: set[int] | None = None
    ) -> Iterator[tuple[list[Tensor], list[Any]]]:
        """Run the model; give what it returns, and what left its tensors. Afterwards it is as it was."""
        try:
            given, known = [], []
            for source, value in zip(self.sources, values, strict=True):
                if source.held is None:
                    given.append(value)
                    known.append(source.known)
                else:
                    _set(source.held, value.detach())
            args, kwargs = self.arguments.filled(given, known)
            start_random(seed, cuda=any(value.is_cuda for value in values))
            with ExitStack() as stack:
                way: list[Any] = []
                stack.enter_context(_default_dtype(self.dtype))
                stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
                if self._watched:
                    stack.enter_context(Writes(self.keeper))
                    way = stack.enter_context(noted(constants))
                outputs = [tensor for _, tensor in tensors_in(self.model(*args, **kwargs), private=False)]
            yield outputs, way
        finally:
            self.keeper.put_back()

    def _check(self, outputs: Sequence[Tensor]) -> None:
        terminals = list(self.graph.outputs.values())
        have, want = [tuple(o.shape) for o in outputs], [t.shape for t in terminals]
        if have != want:
            raise GraphError(
                f"The graph has outputs of shapes {want}, the model returns {have}: give the model and the arguments "
                "that were traced."
            )


def _held(model: nn.Module, terminal: Terminal) -> Tensor:
    registered = dict(model.named_parameters(remove_duplicate=False))
    registered.update(dict(model.named_buffers(remove_duplicate=False)))  # type: ignore[arg-type]
    tensor = registered.get(terminal.name)
    if tensor is None or tuple(tensor.shape) != terminal.shape:
        raise GraphError(
            f"The graph has an input {terminal.name} of shape {terminal.shape}, which the model has not: give the "
            "model and the arguments that were traced."
        )
    return tensor


def _set(held: Tensor, value: Tensor) -> None:
    """Write a value to where a parameter or buffer lies, so that whatever shares that memory has it too."""
    if held.layout == torch.strided:
        held.detach().copy_(value)
    else:
        set_data(held, arranged(value, held))


def _drawn() -> Any:
    """Return where the random numbers of Python and of NumPy have got to."""
    numpy: Any = np.random.get_state()  # noqa: NPY002 - the one that all share
    return random.getstate(), numpy[1].tobytes(), numpy[2:]


@contextmanager
def _default_dtype(dtype: torch.dtype | None) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype or before)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
