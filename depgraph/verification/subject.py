"""A model that runs again and again, on any values in place of its own."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call

from depgraph.dag.graph import DependencyGraph, Terminal
from depgraph.errors import GraphError
from depgraph.tracing.origin import WRAPPED
from depgraph.tracing.program import Leaf
from depgraph.tracing.settings import SEED, start_random
from depgraph.tracing.wrapper import Call, Flat
from depgraph.verification.decisions import noted
from depgraph.verification.values import dense, laid_out, widened

State = dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class Source:
    """An input of the graph, with the model's own value of it.

    Attributes
    ----------
    terminal : Terminal
    value : torch.Tensor
        Dense, whatever layout the model takes it in.
    state : str
        Name of the parameter or buffer that it is; ``""`` for an argument of forward.
    known : bool
        Whether it is held at that value.
    form : torch.Tensor
        A tensor in that layout.
    """

    terminal: Terminal
    value: Tensor
    state: str
    known: bool
    form: Tensor


class Subject:
    """A model that runs on any values in place of its own.

    Attributes
    ----------
    sources : list of Source
        One for each input of the graph.
    state : dict
        Parameters and buffers by name.
    parameters : set of str
        The names of those that are parameters, and no source.
    dtype : torch.dtype or None
        The precision it runs in, None for the model's own.
    narrowed : str
        Why it does not run in float64, ``""`` where it does.
    strayed, refused : int
        Runs that went another way than the example inputs do, and runs that raised.
    """

    def __init__(
        self,
        graph: DependencyGraph,
        flat: Flat,
        call: Call,
        inputs: Sequence[Leaf],
        dtype: torch.dtype | None,
        narrowed: str = "",
    ) -> None:
        self.graph, self.flat, self.call, self.dtype, self.narrowed = graph, flat, call, dtype, narrowed
        own: State = {name: p.detach() for name, p in flat.named_parameters()}
        self.state: State = {name: widened(t, dtype) for name, t in (own | dict(flat.named_buffers())).items()}
        terminals = list(graph.inputs.values())
        self.sources = [
            Source(terminal, dense(widened(tensor, dtype)), "", terminal.name in graph.known_inputs, tensor)
            for terminal, tensor in zip(terminals, call.tensors(), strict=False)
        ]
        for terminal in terminals[len(inputs) :]:
            name = self._named(terminal)
            value = self.state[name]
            self.sources.append(Source(terminal, dense(value), name, False, value))
        self.parameters = set(own) - {source.state for source in self.sources}
        self._written: list[str] = []
        self._way: list[Any] = []
        self._drawn = torch.empty(0)
        self.strayed = self.refused = 0

    def _named(self, terminal: Terminal) -> str:
        path, _, last = f"{WRAPPED}.{terminal.name}".rpartition(".")
        try:
            wanted = getattr(self.flat.get_submodule(path), last)
        except AttributeError:
            wanted = None
        held = dict(self.flat.named_parameters()) | dict(self.flat.named_buffers())
        for name, tensor in held.items():
            if tensor is wanted and tuple(tensor.shape) == terminal.shape:
                return name
        raise GraphError(
            f"The graph has an input {terminal.name} of shape {terminal.shape}, which the model has not: give the "
            "model and the arguments that were traced."
        )

    def example(self) -> list[Tensor]:
        """Run the model on its own values, and learn which way it goes and what it writes to."""
        values = [source.value for source in self.sources]
        fresh = {name: tensor.clone() for name, tensor in self.state.items()}
        with noted() as way:
            outputs, self._drawn = self._run(values, fresh, SEED)
        self._way = way
        self._written = [name for name, tensor in fresh.items() if not _equal(tensor, self.state[name])]
        self._check(outputs)
        return outputs

    def base(self, values: Sequence[Tensor], state: State, seed: int) -> list[Tensor] | None:
        """Run like `run`, for other runs to be compared with this one."""
        return self._outputs(values, state, seed, first=True)

    def run(self, values: Sequence[Tensor], state: State, seed: int) -> list[Tensor] | None:
        """Return the outputs, None where the model does not take the values or goes another way than the graph.

        A run that draws more random numbers than its base, or fewer, is not like it either: each number that is drawn
        later is another one.

        Parameters
        ----------
        values : sequence of tensors
            One for each source.
        state : dict
            As ``self.state``; what the model writes to is left as it was.
        seed : int
            What random numbers in the model start from.
        """
        return self._outputs(values, state, seed, first=False)

    def _outputs(self, values: Sequence[Tensor], state: State, seed: int, *, first: bool) -> list[Tensor] | None:
        fresh = state | {name: state[name].clone() for name in self._written}
        try:
            with noted() if self._way else contextlib.nullcontext(self._way) as way:
                outputs, drawn = self._run(values, fresh, seed)
        except Exception:  # indices out of range, sizes that do not fit, and whatever else a model checks
            self.refused += 1
            return None
        shapes = [tuple(output.shape) for output in outputs]
        self._drawn = drawn if first else self._drawn
        alike = way == self._way and torch.equal(drawn, self._drawn)
        if not alike or shapes != [terminal.shape for terminal in self.graph.outputs.values()]:
            self.strayed += 1
            return None
        return outputs

    def _run(self, values: Sequence[Tensor], state: State, seed: int) -> tuple[list[Tensor], Tensor]:
        """Return the outputs, and where the random numbers have got to; what the model writes to changes."""
        pairs = [(s.state, laid_out(value.clone(), s.form)) for s, value in zip(self.sources, values, strict=True)]
        arguments = tuple(value for name, value in pairs if not name)
        given = state | {name: value for name, value in pairs if name}
        start_random(seed, cuda=any(tensor.is_cuda for tensor in given.values()))
        with _default_dtype(self.dtype), contextlib.redirect_stdout(io.StringIO()):
            self.call.tensors()  # whose containers are new, since forward may have written to the last ones
            result = functional_call(self.flat, given, arguments)
            drawn = torch.default_generator.get_state()
        return [dense(output) for output in result[: len(self.call.found)]], drawn

    def _check(self, outputs: Sequence[Tensor]) -> None:
        terminals = list(self.graph.outputs.values())
        have, want = [tuple(o.shape) for o in outputs], [t.shape for t in terminals]
        if have != want:
            raise GraphError(
                f"The graph has outputs of shapes {want}, the model returns {have}: give the model and the arguments "
                "that were traced."
            )


def _equal(one: Tensor, other: Tensor) -> bool:
    return torch.equal(dense(one), dense(other))


@contextmanager
def _default_dtype(dtype: torch.dtype | None) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype or before)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
