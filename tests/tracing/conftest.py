"""What the tracing tests share: an interpreter that runs a program on its own values."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import fx, nn

from depgraph.tracing.capture import capture
from depgraph.tracing.program import Program
from depgraph.tracing.structure import tensors_in


def evaluate(
    program: Program, inputs: Mapping[str, torch.Tensor] | None = None
) -> tuple[list[torch.Tensor], dict[str, torch.Tensor]]:
    """Run the graph on the values that its placeholders stand for, or on others in place of its inputs.

    Returns
    -------
    list of torch.Tensor
        The outputs.
    dict
        The new values of buffers.
    """
    interpreter = fx.Interpreter(program.module, garbage_collect_values=False, graph=program.graph)
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    with torch.no_grad():
        sources = [program.sources[node.name] for node in placeholders]
        given = inputs or {}
        interpreter.run(*(given.get(s.name, s.value) if s.kind == "input" else s.value for s in sources))
    env: dict[fx.Node, Any] = interpreter.env
    results = [env[r] if isinstance(r, fx.Node) else r for r in program.results]
    return results, {name: env[node] for name, node in program.updates.items()}


@pytest.fixture
def faithful() -> Callable[..., Program]:
    """Capture a model, and hold the graph against the model run as it is: outputs and all buffers must agree."""

    def check(model: nn.Module, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Program:
        before = {name: value.clone() for name, value in model.state_dict().items()}
        program = capture(model, args, kwargs)
        assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
        results, updates = evaluate(program)
        twin = copy.deepcopy(model)
        with torch.no_grad():
            outputs = tensors_in(twin(*args, **(kwargs or {})), private=False)
        assert len(outputs) == len(results) == len(program.outputs)
        for (_, expected), result, leaf in zip(outputs, results, program.outputs, strict=True):
            torch.testing.assert_close(result, expected)
            assert (tuple(leaf.value.shape), leaf.value.dtype) == (tuple(expected.shape), expected.dtype)
        state = dict(twin.named_buffers()) | dict(twin.named_parameters())
        for name, value in state.items():
            changed = name in before and (value.shape != before[name].shape or not torch.equal(value, before[name]))
            assert not changed or name in updates
            if name in updates:
                torch.testing.assert_close(updates[name], value.detach())
        assert_well_formed(program)
        return program

    return check


@pytest.fixture
def faithful_elsewhere(faithful: Callable[..., Program]) -> Callable[..., Program]:
    """Check the same, and on other inputs than the example: no value may have been taken for a constant."""

    def check(model: nn.Module, args: tuple[Any, ...], *others: tuple[Any, ...]) -> Program:
        program = faithful(model, args)
        for other in others:
            values = [found.tensor.clone() for found in tensors_in(other)]
            names = [leaf.name for leaf in program.inputs]
            results, updates = evaluate(program, dict(zip(names, values, strict=True)))
            twin = copy.deepcopy(model)
            with torch.no_grad():
                outputs = tensors_in(twin(*copy.deepcopy(other)), private=False)
            for (_, expected), result in zip(outputs, results, strict=True):
                torch.testing.assert_close(result, expected, equal_nan=True)
            state = dict(twin.named_buffers()) | dict(twin.named_parameters())
            for name, value in updates.items():
                torch.testing.assert_close(value, state[name].detach(), equal_nan=True)
        return program

    return check


def assert_well_formed(program: Program) -> None:
    """Check what holds for every program."""
    for node in program.graph.nodes:
        assert node.op in ("placeholder", "call_function", "get_attr", "output")
        if node.op == "placeholder":
            assert node.name in program.sources
        if node.op == "call_function":
            assert node.users
            values = node.meta["val"]
            for value in values if isinstance(values, (tuple, list)) else [values]:
                assert not isinstance(value, torch.Tensor) or all(type(size) is int for size in value.shape)
        if isinstance(node.target, torch._ops.OpOverload):
            assert not node.target._schema.is_mutable
    program.graph.lint()
