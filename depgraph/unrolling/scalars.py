"""Numbers read off tensors (``x.mean().item()``) and what is computed with them outside of PyTorch's operators.

Such a number is followed as a tensor without axes. An operator that takes it where it takes a number reads it, in every
element of its result, besides what it reads anyway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from depgraph.rules.call import Read
from depgraph.rules.elementwise import tensors_in
from depgraph.rules.masking import far, of_any_size
from depgraph.rules.movement import swap
from depgraph.rules.registry import name_of
from depgraph.rules.values import Value, forget, reshape
from depgraph.unrolling.builder import Label

if TYPE_CHECKING:
    from depgraph.unrolling.interpreter import Interpreter
    from depgraph.unrolling.invocation import Invocation


def reads_a_number(op: Any) -> bool:
    """Tell whether an operator takes the number out of a tensor."""
    return name_of(op) in ("item", "local_scalar_dense")


def number_of(value: Value) -> Any:
    """Return the number in a tensor: itself where it is known, else as a tensor without axes."""
    if value.is_known:
        return value.values().reshape(()).item()
    return value.over(reshape(value.codes, ()), None if value.known is None else value.known.reshape(()))


def arithmetic(interpreter: Interpreter, numbers: list[Value], label: Label) -> Value:
    """Follow a Python function of numbers that are not all known."""
    codes = interpreter.builder.add(label, (), [Read(number.codes) for number in numbers])
    return of_any_size(Value(forget(codes), None, torch.float64))


def unknown_numbers(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Value]:
    """Return the arguments that are not known where the operator takes numbers."""
    found: list[Value] = []
    for place, parameter in enumerate(op._schema.arguments):
        value = kwargs.get(parameter.name, args[place] if place < len(args) else None)
        if "Tensor" not in str(parameter.type):
            found.extend(tensors_in((value,), {}))
    return found


def with_numbers(call: Invocation, numbers: list[Value]) -> Any:
    """Follow an operator that is given numbers which are not known."""
    if call.pointwise:
        tensors = tensors_in(call.args, call.kwargs)
        codes = forget(call.nodes(call.shape, *(Read(t.codes) for t in tensors)))
        parts = call.meta if isinstance(call.meta, (tuple, list)) else [call.meta]
        results = tuple(of_any_size(Value(codes.expand(m.shape), None, m.dtype)) for m in parts)
        return results if isinstance(call.meta, (tuple, list)) else results[0]
    # Any number will do to learn what is read besides; one that settles nothing.
    first = call.meta[0] if isinstance(call.meta, (tuple, list)) else call.meta
    stand_in = 1.5 if first.is_floating_point() or first.is_complex() else 1
    taken = {id(number) for number in numbers}
    args, kwargs = swap([list(call.args), dict(call.kwargs)], lambda value: stand_in if id(value) in taken else value)
    result = call.interpreter.apply(call.op, tuple(args), kwargs, call.meta, call.label, call.layouts)

    def add(part: Any) -> Any:
        if not isinstance(part, Value):
            return part
        codes = call.nodes(part.shape, Read(part.codes), *(Read(number.codes) for number in numbers))
        value = Value(forget(codes), None, part.dtype)
        return value if far(part) is None else of_any_size(value)

    return type(result)(add(part) for part in result) if isinstance(result, (tuple, list)) else add(result)
