"""PyTorch's own decompositions, for operators without a rule."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from depgraph.tracing.private import FakeTensorMode, decomposition_table


class UndecomposableError(Exception):
    """The operator does not decompose, or its decomposition depends on values."""


def decompose(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tensor_types: tuple[Any, ...]) -> fx.GraphModule:
    """Return a functional graph of simpler operators that does the same; its placeholders are the tensors in order.

    Parameters
    ----------
    op : torch._ops.OpOverload
    args, kwargs
        The call's arguments; of the tensors only shape and dtype are looked at.
    tensor_types : tuple of types
        What stands for a tensor among the arguments.

    Raises
    ------
    UndecomposableError
        Where PyTorch has no decomposition that works without the values.
    """
    flat, spec = pytree.tree_flatten((args, kwargs))
    key = tuple((tuple(leaf.shape), leaf.dtype) if isinstance(leaf, tensor_types) else _Constant(leaf) for leaf in flat)
    return _decompose(op, key, spec)


class _Constant:
    """An argument that is no tensor, compared by type as well as by value: 1, 1.0 and True are three things."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Constant) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"{type(self.value).__name__}:{self.value!r}"


@lru_cache(maxsize=1024)
def _decompose(op: Any, key: tuple[Any, ...], spec: Any) -> fx.GraphModule:
    def run(*tensors: Any) -> Any:
        rest = iter(tensors)
        leaves = [part.value if isinstance(part, _Constant) else next(rest) for part in key]
        args, kwargs = pytree.tree_unflatten(leaves, spec)
        return op(*args, **kwargs)

    table = {op: decomposition_table[op]} if op in decomposition_table else {}
    with FakeTensorMode(allow_non_fake_inputs=True):
        inputs = [torch.empty(p[0], dtype=p[1]) for p in key if not isinstance(p, _Constant)]
    try:
        module = _traced(run, inputs, table)
        if _mutations(module):
            # What the decomposition itself writes to was out of functionalize's sight: now it is in the open.
            module = _traced(module, inputs, {})
    except Exception as error:  # whatever a decomposition does that needs values: we only learn that it cannot be used
        raise UndecomposableError(str(error)) from error
    module.graph.eliminate_dead_code()
    if mutations := _mutations(module):
        raise UndecomposableError(f"the decomposition of {op} writes to tensors: {mutations[0]}")
    if any(node.target is op for node in module.graph.nodes):
        raise UndecomposableError(f"{op} has no decomposition")
    return module


def _traced(function: Any, inputs: list[Any], table: dict[Any, Any]) -> fx.GraphModule:
    functional = torch.func.functionalize(function, remove="mutations")
    with torch.no_grad():
        module: fx.GraphModule = make_fx(functional, decomposition_table=table, tracing_mode="fake")(*inputs)
    return module


def _mutations(module: fx.GraphModule) -> list[fx.Node]:
    """Return the nodes that write to a tensor."""
    nodes = [node for node in module.graph.nodes if isinstance(node.target, torch._ops.OpOverload)]
    return [node for node in nodes if node.target._schema.is_mutable]
