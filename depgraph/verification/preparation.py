"""The user's model, made ready to be measured; afterwards everything about it is as it was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.nn.modules.lazy import LazyModuleMixin

from depgraph.dag.graph import DependencyGraph
from depgraph.errors import DepgraphError, GraphError, TracingError
from depgraph.tracing import loaded
from depgraph.tracing.names import arguments_of, input_leaves, tensors_of
from depgraph.tracing.private import functions_called
from depgraph.tracing.program import Leaf
from depgraph.tracing.python.findings import RANDOM, failure
from depgraph.tracing.restoring import Kept, kept
from depgraph.tracing.settings import as_if_compiled, quiet, tracing_settings
from depgraph.tracing.unsupported import refuse_nested
from depgraph.verification.arguments import Arguments
from depgraph.verification.bundles import not_finite
from depgraph.verification.memory import Memory
from depgraph.verification.subject import Subject

_PRECISIONS = (torch.float64, torch.float32, None)
#: Elements of the largest model that is given arbitrary values where it has none.
_LARGEST = 1 << 28

Runs = tuple[Subject, list[Tensor]]
"""A model ready to be run, and what it returns on its own values."""


class Prepared:
    """A model that can be run in several precisions.

    Attributes
    ----------
    narrowed : str
        Why it does not run in float64, ``""`` where it does.
    """

    def __init__(
        self,
        graph: DependencyGraph,
        model: nn.Module,
        arguments: Arguments,
        inputs: list[Leaf],
        outer: Kept,
        stack: ExitStack,
    ) -> None:
        self.graph, self.model, self.arguments, self.inputs, self.outer = graph, model, arguments, inputs, outer
        self.stack = stack
        given = {id(leaf.value) for leaf in inputs}
        held = {id(tensor): tensor for tensor in Kept(arguments.arguments).tensors if id(tensor) not in given}
        held.update({id(tensor): tensor for tensor in Kept((model,)).tensors})
        self.memory = Memory(list(held.values()))
        precisions = self.memory.precisions | Memory(arguments.forms).precisions
        #: Precisions of what there is, and of what forward makes.
        self.own_precisions = precisions | {torch.get_default_dtype()}
        self.narrowed = ""

    def best(self) -> Runs:
        """Return the model in the highest precision in which it runs.

        That is one in which no more of the outputs are infinite or NaN than in the others: a model may rely on where
        the numbers of its own precision end.

        Raises
        ------
        TracingError
            Where it runs in none.
        """
        try:
            return self._best()
        except TracingError:  # it may not have been tried as if it were compiled
            self.stack.enter_context(as_if_compiled(False))
            with suppress(TracingError):
                return self._best()
            raise

    def _best(self) -> Runs:
        error: Exception | None = None
        best, fewest, last = None, 0, None
        by_chance = any(RANDOM in warning for warning in self.graph.warnings)
        for dtype in (None,) if by_chance else _PRECISIONS:
            if by_chance:
                narrowed = f"{RANDOM} decide something in the model, and in float64 others are drawn"
            elif best is not None:
                narrowed = "in float64 more of what the model returns is infinite or NaN"
            else:
                narrowed = "the model does not run in float64" if error is not None else ""
            try:
                last = self._attempt(dtype, narrowed)
            except GraphError:
                raise
            except Exception as problem:
                error, last = problem, None
                continue
            count = not_finite(last[1])
            if best is None or count < fewest:
                best, fewest = (dtype, narrowed), count
            if not count:
                break
        if best is None:
            assert error is not None
            raise failure(self.model, self.inputs, error, runs=False) from error
        return last if last is not None and last[0].dtype == best[0] else self._attempt(*best)

    def own(self) -> Runs | None:
        """Return the model in its own precision, None where it does not run in that."""
        try:
            return self._attempt(None, self.narrowed)
        except Exception:
            return None

    def _attempt(self, dtype: torch.dtype | None, narrowed: str) -> Runs:
        self.narrowed = narrowed
        self.memory.convert(dtype)
        own = dtype is None or self.own_precisions == {dtype}
        with quiet():
            found = Subject(self.graph, self.model, self.arguments, dtype, self.outer, own=own)
            return found, found.example()


@contextmanager
def prepared(
    graph: DependencyGraph, model: nn.Module | ExportedProgram, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[Prepared]:
    """Give the model ready to be run.

    Raises
    ------
    GraphError
        Where the graph is not one of this model and these arguments.
    TracingError
        Where the model does not run.
    """
    if isinstance(model, ExportedProgram):
        args, kwargs = loaded.example_inputs(model, args, kwargs)
        module: nn.Module = model.module(check_guards=False)
    elif isinstance(model, nn.Module):
        module = model
    else:
        raise TracingError(f"A model is a torch.nn.Module; got {type(model).__name__}.")
    inputs = input_leaves(tensors_of(arguments_of(module, args, kwargs)))
    if any(leaf.value.is_nested for leaf in inputs):
        refuse_nested(module, inputs)
    _check_inputs(graph, inputs, named=not isinstance(model, ExportedProgram))
    with kept(module, args, kwargs) as outer, tracing_settings(), functions_called(), ExitStack() as stack:
        if any(leaf.value.is_meta for leaf in inputs):
            raise TracingError(
                f"The example inputs of {type(module).__name__} are on the meta device, where nothing can be measured. "
                "Make them on the CPU; parameters may stay where they are."
            )
        if any(tensor.is_nested for tensor in outer.tensors):
            refuse_nested(module, inputs)
        arguments = Arguments(args, kwargs)
        _on_cpu(module, outer.tensors)
        try:
            _initialise(module, arguments)
        except Exception as error:
            raise failure(module, inputs, error, runs=False) from error
        if not isinstance(model, ExportedProgram) and graph.mode != ("train" if module.training else "eval"):
            module.train(graph.mode == "train")
        try:
            yield Prepared(graph, module, arguments, inputs, outer, stack)
        except DepgraphError:
            raise
        except Exception as error:
            raise failure(module, inputs, error, runs=True) from error


def _on_cpu(model: nn.Module, tensors: Sequence[Tensor]) -> None:
    """Give what a model holds on the meta device arbitrary values on the CPU; parameters are drawn anew anyhow."""
    bare = {id(tensor): tensor for tensor in tensors if tensor.is_meta}
    if sum(tensor.numel() for tensor in bare.values()) > _LARGEST:
        raise TracingError(
            f"{type(model).__name__} is on the meta device and too large to be given values, which it needs to be "
            "measured. Build a smaller one on the CPU."
        )
    made: dict[int, Tensor] = {}
    for key, tensor in bare.items():
        new = torch.full(tensor.shape, 0.01).to(tensor.dtype)
        made[key] = nn.Parameter(new, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else new
    held: list[Any] = [part for m in model.modules() for part in (m._parameters, m._buffers, vars(m))]
    for attributes in held if made else ():
        for name, value in attributes.items():
            if id(value) in made:
                attributes[name] = made[id(value)]


def _initialise(model: nn.Module, arguments: Arguments) -> None:
    """Run a model once where it holds lazy modules that have seen no input yet."""
    if not any(isinstance(m, LazyModuleMixin) and m.has_uninitialized_params() for m in model.modules()):
        return
    modes = [(module, module.training) for module in model.modules()]
    args, kwargs = arguments.filled(arguments.forms)
    model.eval()(*args, **kwargs)
    for module, training in modes:
        module.training = training


def _check_inputs(graph: DependencyGraph, inputs: Sequence[Leaf], *, named: bool) -> None:
    terminals = list(graph.inputs.values())
    want = [(t.name, t.shape) for t in terminals[: len(inputs)]]
    have = [(leaf.name, tuple(leaf.value.shape)) for leaf in inputs]
    if want != have if named else [shape for _, shape in want] != [shape for _, shape in have]:
        raise GraphError(
            f"The graph has inputs {_listed(want)}, the model is given {_listed(have)}: give the arguments that were "
            "traced."
        )


def _listed(forms: Sequence[tuple[str, tuple[int, ...]]]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in forms) or "none"
