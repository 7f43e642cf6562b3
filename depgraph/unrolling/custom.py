"""Following operators by rules that users wrote, and operators that write to their arguments."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from depgraph.errors import TracingError
from depgraph.rules import registry
from depgraph.rules.arguments import tensors_in
from depgraph.rules.reduction import everything
from depgraph.rules.registration import UserRule
from depgraph.rules.values import FIRST, Value, core
from depgraph.tracing.origin import Line
from depgraph.unrolling.builder import Label
from depgraph.unrolling.decomposition import UndecomposableError
from depgraph.unrolling.invocation import HoldInputsError, Invocation, NotKnownError

if TYPE_CHECKING:
    from depgraph.unrolling.interpreter import Interpreter


def follow_rule(rule: UserRule, call: Invocation) -> Any:
    """Follow a call by a user's rule.

    Raises
    ------
    TracingError
        Where the rule raises, or returns what the operator cannot have returned.
    """
    call.interpreter.user_rules[rule.operator] = None
    args, kwargs = arguments(call.op, call.args, call.kwargs)
    try:
        result = rule(call, *args, **kwargs)
    except (NotKnownError, HoldInputsError, UndecomposableError):
        raise
    except Exception as error:
        raise TracingError(
            f"{_place(call)}the rule {rule.name} for {rule.operator} fails ({_line_in(rule, error)}): "
            f"{type(error).__name__}: {error}"
        ) from error
    if fault := wrong(result, call):
        raise TracingError(f"{_place(call)}the rule {rule} for {rule.operator} {fault}.")
    return list(result) if isinstance(call.meta, list) else result


def arguments(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return all arguments of a call, those with defaults included, as the operator's schema has them."""
    positional: list[Any] = []
    by_keyword: dict[str, Any] = {}
    for place, argument in enumerate(op._schema.arguments):
        if place < len(args) and not argument.kwarg_only:
            value = args[place]
        else:
            value = kwargs.get(argument.name, argument.default_value)
        if argument.kwarg_only:
            by_keyword[argument.name] = value
        else:
            positional.append(value)
    return positional, by_keyword


def wrong(result: Any, call: Invocation) -> str:
    """Return what is wrong with what a rule returned, ``""`` for nothing."""
    several = isinstance(call.meta, (tuple, list))
    if several and not isinstance(result, (tuple, list)):
        return f"returns one {type(result).__name__}; the operator returns {len(call.meta)} tensors"
    values, forms = (list(result), list(call.meta)) if several else ([result], [call.meta])
    if len(values) != len(forms):
        return f"returns {len(values)} values; the operator returns {len(forms)} tensors"
    for number, (value, form) in enumerate(zip(values, forms, strict=True)):
        which = f" as number {number}" if several else ""
        if not isinstance(form, Tensor):
            continue
        if not isinstance(value, Value):
            return f"returns a {type(value).__name__}{which}, not a Value: see call.result"
        if value.shape != form.shape:
            return f"returns shape {tuple(value.shape)}{which}; the operator returns {tuple(form.shape)}"
        codes = core(value.codes)
        last = call.interpreter.builder.count + FIRST
        if codes.dtype != torch.int64 or (codes.numel() and not 0 <= int(codes.min()) <= int(codes.max()) < last):
            return f"returns codes{which} that stand for no node: they are to come from call.nodes or from arguments"
    return ""


def in_place(interpreter: Interpreter, op: Any, args: Any, kwargs: dict[str, Any], meta: Any, label: Label) -> Any:
    """Follow an operator that writes to its arguments, as one that returns what it returns and what it writes."""
    rule = registry.find(op)
    call = Invocation(interpreter, op, args, kwargs, meta[0] if len(meta) == 1 else tuple(meta), label)
    if isinstance(rule, UserRule):
        result = follow_rule(rule, call)
        return (result,) if len(meta) == 1 else tuple(result)
    call = Invocation(interpreter, op, args, kwargs, tuple(meta), label)
    call.warn(f"{op} has no rule; it is taken to read everything it is given")
    return everything(call, *tensors_in(args, kwargs))


def _place(call: Invocation) -> str:
    return f"{call.label.source}: " if call.label.source else ""


def _line_in(rule: UserRule, error: BaseException) -> str:
    """Return the last line of the rule's own file that the error passed through."""
    if rule.line is None:
        return "no file"
    lines = [
        line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == rule.line.file
    ]
    return str(Line(rule.line.file, lines[-1]) if lines else rule.line)
