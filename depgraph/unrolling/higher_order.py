"""Operators that take whole subgraphs: conditions, loops and scans.

Reads: cond         the branch that a known predicate takes; else, elementwise, the predicate and both branches
       while_loop   iteration by iteration while the condition is known; else everything that goes in
       scan         step by step: the carried state and the step's own slice
       flex         see `depgraph.unrolling.flex`
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from depgraph.rules.arguments import swap
from depgraph.rules.elementwise import choose
from depgraph.rules.movement import contents
from depgraph.rules.reduction import everything
from depgraph.rules.values import Value, compress
from depgraph.unrolling.builder import Label
from depgraph.unrolling.flex import flex_attention
from depgraph.unrolling.invocation import Invocation

if TYPE_CHECKING:
    from depgraph.unrolling.interpreter import Interpreter

LONGEST_LOOP = 100_000


class HigherOrder:
    """One call of a higher-order operator."""

    def __init__(self, interpreter: Interpreter, node: fx.Node, where: Callable[[fx.Node], tuple[str, str]]) -> None:
        self.interpreter = interpreter
        self.place = where(node)
        self.where = where
        self.meta: Any = node.meta.get("val")
        self.name = node.target.__name__ if callable(node.target) else str(node.target)
        self.label = Label(self.name, *self.place, False)

    def run(self, module: fx.GraphModule, values: list[Any]) -> list[Any]:
        """Follow a subgraph and return what it returns, as a list."""
        names = [n.name for n in module.graph.nodes if n.op == "placeholder"]
        env = self.interpreter.run(module, module.graph, dict(zip(names, values, strict=True)), self.locate)
        (output,) = module.graph.output_node().args
        result = fx.node.map_arg(output, lambda n: env[n])
        return list(result) if isinstance(result, (tuple, list)) else [result]

    def locate(self, node: fx.Node) -> tuple[str, str]:
        """Return where a node of a subgraph stands, or where the operator does."""
        module, source = self.where(node)
        return module or self.place[0], source or self.place[1]

    def call(self, op: Any, args: Any, meta: Any) -> Invocation:
        """Return a call of an ordinary operator that stands for a part of this one."""
        return Invocation(self.interpreter, op, args, {}, meta, self.label)

    def cond(self, predicate: Any, true: fx.GraphModule, false: fx.GraphModule, operands: Any) -> tuple[Any, ...]:
        """Take one of two branches."""
        if not isinstance(predicate, Value):
            return tuple(self.run(true if predicate else false, list(operands)))
        if predicate.is_known:
            return tuple(self.run(true if bool(predicate.values()) else false, list(operands)))
        results = []
        branches = (self.run(branch, list(operands)) for branch in (true, false))
        for meta, this, other in zip(self.meta, *branches, strict=True):
            call = self.call(torch.ops.aten.where.self, (predicate, this, other), meta)
            results.append(choose(call, predicate, this, other))
        return tuple(results)

    def while_loop(self, condition: fx.GraphModule, body: fx.GraphModule, carried: Any, more: Any) -> tuple[Any, ...]:
        """Repeat while a condition holds."""
        state = list(carried)
        for _ in range(LONGEST_LOOP):
            (goes_on,) = self.run(condition, [*state, *more])
            if isinstance(goes_on, Value) and not goes_on.is_known:
                break
            if not bool(goes_on.values() if isinstance(goes_on, Value) else goes_on):
                return tuple(state)
            state = self.run(body, [*state, *more])
        call = self.call(torch.ops.aten.cat.default, (), self.meta)
        call.warn("while_loop ends by values that are not known; each result is taken to read everything that goes in")
        result: tuple[Any, ...] = everything(call, list(carried), list(more))
        return result

    def scan(self, combine: fx.GraphModule, carried: Any, sequences: Any, more: Any = ()) -> tuple[Any, ...]:
        """Carry a state along the first axis of sequences."""
        state, outs = list(carried), []
        for step in range(sequences[0].shape[0]):
            result = self.run(combine, [*state, *(part(s, step) for s in sequences), *more])
            state, out = result[: len(state)], result[len(state) :]
            outs.append(out)
        return (*state, *(pile(list(column)) for column in zip(*outs, strict=True)))

    def map_impl(self, function: fx.GraphModule, sequences: Any, more: Any) -> tuple[Any, ...]:
        """Apply a function to each slice along the first axis."""
        outs = [self.run(function, [*(part(s, k) for s in sequences), *more]) for k in range(sequences[0].shape[0])]
        return tuple(pile(list(column)) for column in zip(*outs, strict=True))


def part(value: Value, step: int) -> Value:
    """Return a slice along the first axis."""
    return value.through(lambda t: t[step])


def pile(values: list[Value]) -> Value:
    """Stack slices along a new first axis."""
    low, high, nan = (part and torch.stack([part(v) for v in values]) for part in contents(values, values[0].dtype))
    return Value(compress(torch.stack([v.codes for v in values])), low, values[0].dtype, high, nan)


def follow(interpreter: Interpreter, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any], where: Any) -> Any:
    """Follow one call of a higher-order operator; one that is not understood reads everything, with a warning."""
    operator = HigherOrder(interpreter, node, where)
    method = {
        "cond": operator.cond,
        "while_loop": operator.while_loop,
        "scan": operator.scan,
        "map_impl": operator.map_impl,
        "flex_attention": partial(flex_attention, operator),
    }.get(operator.name)
    if method is not None:
        return method(*args, **kwargs)  # type: ignore[operator]
    call = operator.call(node.target, args, operator.meta)
    call.warn(f"{operator.name} has no rule; it is taken to read everything it is given")
    tensors: list[Value] = []
    swap([args, kwargs], lambda v: tensors.append(v))
    return everything(call, *tensors)
