"""The user's model, made ready to be measured; the model itself stays as it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import ExportedProgram

from depgraph.dag.graph import DependencyGraph
from depgraph.errors import GraphError, TracingError
from depgraph.tracing import loaded
from depgraph.tracing.copies import copied, initialised, on_cpu
from depgraph.tracing.findings import RANDOM, failure
from depgraph.tracing.names import arguments_of, input_leaves, tensors_of
from depgraph.tracing.program import Leaf
from depgraph.tracing.settings import quiet, tracing_settings
from depgraph.tracing.unsupported import refuse_nested
from depgraph.tracing.wrapper import Call, Flat
from depgraph.verification.bundles import not_finite
from depgraph.verification.subject import Subject
from depgraph.verification.values import widened

_PRECISIONS = (torch.float64, torch.float32, None)


@contextmanager
def subject(
    graph: DependencyGraph, model: nn.Module | ExportedProgram, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[tuple[Subject, list[Tensor]]]:
    """Give the model ready to be run, and what it returns on its own values; in float64 where it can do that.

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
    call = Call(args, kwargs)
    inputs = input_leaves(tensors_of(arguments_of(module, args, kwargs)))
    refuse_nested(module, inputs)
    _check_inputs(graph, inputs, named=not isinstance(model, ExportedProgram))
    with tracing_settings(), copied(initialised(module, call)) as twin:
        if any(leaf.value.is_meta for leaf in inputs):
            raise TracingError(
                f"The example inputs of {type(twin).__name__} are on the meta device, where nothing can be measured. "
                "Make them on the CPU; parameters may stay where they are."
            )
        on_cpu(twin, (), data=True)  # parameters are drawn anew anyhow
        if not isinstance(model, ExportedProgram) and graph.mode != ("train" if twin.training else "eval"):
            twin.train(graph.mode == "train")
        yield _ready(graph, twin, call, inputs)


def _ready(graph: DependencyGraph, twin: nn.Module, call: Call, inputs: list[Leaf]) -> tuple[Subject, list[Tensor]]:
    """Return the model in the highest precision in which it runs, and what it returns on its own values.

    That is one in which no more of the outputs are infinite or NaN than in the others: a model may rely on where
    the numbers of its own precision end.
    """
    flat = Flat(twin, call)
    loose = [(vars(m), name, t) for m in twin.modules() for name, t in vars(m).items() if isinstance(t, Tensor)]
    error: Exception | None = None

    def attempt(dtype: torch.dtype | None, narrowed: str) -> tuple[Subject, list[Tensor]]:
        for attributes, name, tensor in loose:
            attributes[name] = widened(tensor, dtype)
        with quiet():
            found = Subject(graph, flat, call, inputs, dtype, narrowed)
            return found, found.example()

    best, fewest, last = None, 0, None
    by_chance = any(RANDOM in warning for warning in graph.warnings)
    for dtype in (None,) if by_chance else _PRECISIONS:
        if by_chance:
            narrowed = f"{RANDOM} decide something in the model, and in float64 others are drawn"
        elif best is not None:
            narrowed = "in float64 more of what the model returns is infinite or NaN"
        else:
            narrowed = "the model does not run in float64" if error is not None else ""
        try:
            last = attempt(dtype, narrowed)
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
        raise failure(twin, inputs, error, runs=False) from error
    return last if last is not None and last[0].dtype == best[0] else attempt(*best)


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
