"""Numbers read off tensors (``x.mean().item()``) and what is computed with them outside of PyTorch's operators.

Such a number is followed as a tensor without axes. An operator that takes it where it takes a number reads it, in every
element of its result, besides what it reads anyway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from depgraph.rules.arguments import swap, tensors_in
from depgraph.rules.call import Read
from depgraph.rules.registry import is_random, name_of
from depgraph.rules.values import FIRST, KNOWN, Value, forget, known, reshape, together
from depgraph.rules.values.intervals import far, of_any_size
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
    return value.through(lambda t: reshape(t, ()))


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
    if name_of(call.op) == "arange":
        return progression(call)
    # Any number will do to learn what is read besides; one that settles nothing. Where two make a difference in known
    # values, the number itself goes.
    first = call.meta[0] if isinstance(call.meta, (tuple, list)) else call.meta
    stand_ins = (1.5, 2.5) if first.is_floating_point() or first.is_complex() else (1, 2)
    if first.dtype == torch.bool:
        stand_ins = (False, True)
    taken = {id(number) for number in numbers}
    builder = call.interpreter.builder
    mark, fresh = builder.mark(), builder.count + FIRST

    def follow(stand_in: float) -> Any:
        builder.rewind(mark)
        args, kwargs = swap([list(call.args), dict(call.kwargs)], lambda v: stand_in if id(v) in taken else v)
        return call.interpreter.apply(call.op, tuple(args), kwargs, call.meta, call.label, call.layouts)

    def add(part: Any, other: Any) -> Any:
        if not isinstance(part, Value):
            return part
        codes, others, value, another = together(part.codes, other.codes, part.values(), other.values())
        placed = (codes < FIRST) & ((codes != others) | ((codes == KNOWN) & (value != another)))
        itself = placed & (value == stand_ins[0]) & (another == stand_ins[1]) & (len(numbers) == 1)
        if is_random(call.op):
            placed = torch.ones_like(placed)
        reads = [torch.where((codes >= fresh) | (placed & ~itself), read, KNOWN) for read in (codes, *_codes(numbers))]
        made = call.nodes(part.shape, *(Read(read.expand(part.shape)) for read in reads))
        new = placed | (codes >= fresh)
        codes = torch.where(itself, numbers[0].codes, torch.where(new, made, codes))
        result = part.over(codes.expand(part.shape), torch.where(placed, 0, value).expand(part.shape))
        if part.nan is None and far(part) is None:
            return of_any_size(result, new) if bool(placed.any()) else result
        return of_any_size(result, nan=part.nan is not None)

    others = follow(stand_ins[1])
    result = follow(stand_ins[0])
    if isinstance(result, (tuple, list)):
        return type(result)(map(add, result, others))
    return add(result, others)


def progression(call: Invocation) -> Value:
    """Follow ``arange`` of numbers that are not known: what it starts from and its step are read, not where it ends."""
    given = {a.name: v for a, v in zip(call.op._schema.arguments, call.args, strict=False)} | call.kwargs
    start, step = given.get("start", 0), given.get("step", 1)
    if read := tensors_in((start, step), {}):
        codes = forget(call.nodes(call.shape, *(Read(number.codes.expand(call.shape)) for number in read)))
        return of_any_size(Value(codes, None, call.dtype))
    return known((torch.arange(call.shape[0]) * step + start).to(call.dtype))


def _codes(numbers: list[Value]) -> list[torch.Tensor]:
    return [number.codes for number in numbers]
