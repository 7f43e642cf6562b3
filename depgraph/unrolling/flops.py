"""How many floating-point operations a call takes: PyTorch's own count, and formulas for what it does not know.

A multiply-add counts 2. Elementwise operators, reductions, factorisations and Fourier transforms count 0, as they do in
`torch.utils.flop_counter`. An operator made of others is run without data while PyTorch counts.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import torch
from torch import Tensor, fx
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from depgraph.rules.registry import CONTRACTIONS
from depgraph.tracing.private import is_composite
from depgraph.tracing.python.ways_out import has_sizes_from_values
from depgraph.tracing.recorder.functional import InPlace
from depgraph.unrolling.traffic import UncountableError, is_sparse, tensors_of, value_of

aten = torch.ops.aten
Shape = tuple[int, ...]

#: Counts by shape, as PyTorch's formulas do: of the arguments, and of the result as ``out_shape``.
FORMULAS: dict[Any, Callable[..., int]] = {}


def formula(*packets: Any) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Enter a formula for operators that PyTorch does not count."""

    def enter(function: Callable[..., int]) -> Callable[..., int]:
        FORMULAS.update(dict.fromkeys(packets, function))
        return function

    return enter


@formula(aten.scaled_dot_product_attention, aten._scaled_dot_product_attention_math)
@formula(aten._scaled_dot_product_flash_attention_for_cpu, aten._scaled_dot_product_fused_attention_overrideable)
def attention(q: Shape, k: Shape, v: Shape, *_: Any, out_shape: Any, **__: Any) -> int:
    """Every query with every key, and every weight with every value; masked or not, as PyTorch counts."""
    out = out_shape[0] if isinstance(out_shape[0], (tuple, list)) else out_shape
    return 2 * prod(out[:-1]) * k[-2] * (q[-1] + v[-1])


@formula(aten.mv, aten._scaled_mm_v2)
def product(a: Shape, b: Shape, *_: Any, **__: Any) -> int:
    """Every element of a matrix once for each column of the other factor."""
    return 2 * prod(a) * prod(b[1:])


@formula(aten.dot, aten.vdot)
def dot(a: Shape, b: Shape, **_: Any) -> int:
    """Every element once."""
    return 2 * prod(a)


@formula(aten.linalg_vecdot)
def vecdot(a: Shape, b: Shape, **_: Any) -> int:
    """Every element once."""
    return int(2 * prod(torch.broadcast_shapes(a, b)))


@formula(aten.addmv, aten.addbmm, aten._addmm_activation)
def added(c: Shape, a: Shape, b: Shape, **_: Any) -> int:
    """A product; what it is added to counts 0."""
    return 2 * prod(a) * (b[-1] if len(b) > 1 else 1)


@formula(aten.ger, aten.outer, aten.addr)
def outer(*_: Any, **__: Any) -> int:
    """Nothing is summed."""
    return 0


@formula(aten.bilinear)
def bilinear(a: Shape, b: Shape, weight: Shape, *_: Any, **__: Any) -> int:
    """Every weight with every pair of features."""
    return 2 * prod(a[:-1]) * prod(weight)


@formula(aten.cdist, aten._cdist_forward)
def distances(a: Shape, b: Shape, *_: Any, out_shape: Shape, **__: Any) -> int:
    """Every row with every row, over all features."""
    return 2 * prod(out_shape) * a[-1]


def count(node: fx.Node) -> int:
    """Return how many floating-point operations a call takes.

    Parameters
    ----------
    node : torch.fx.Node
        A call of an operator, with shapes in its ``meta``.

    Raises
    ------
    UncountableError
        Where neither PyTorch nor a formula knows.
    """
    op: Any = node.target
    if isinstance(op, torch._ops.HigherOrderOperator):
        return _count_higher_order(node, op)
    if isinstance(op, InPlace):
        return _by_formula(op.op, *_arguments(node), bare(node)) if known(op.op) else _none(op.op)
    if any(map(is_sparse, tensors_of(node.all_input_nodes))):
        return _none(op)
    args, kwargs = _arguments(node)
    if known(op):
        return _by_formula(op, args, kwargs, bare(node))
    if not isinstance(op, torch._ops.OpOverload):  # Python's arithmetic of numbers
        return 0
    if is_composite(op) and not has_sizes_from_values(op, node.args, _dtype):  # those do not run without data
        with FlopCounterMode(display=False, custom_mapping=FORMULAS) as counter, torch.no_grad():
            op(*args, **kwargs)
        return int(counter.get_total_flops())
    return _none(op)


def known(op: Any) -> bool:
    """Tell whether there is a formula for an operator, PyTorch's, a user's or one of ours."""
    packet = getattr(op, "overloadpacket", op)
    return packet in FORMULAS or packet in flop_registry


def _by_formula(op: Any, args: Any, kwargs: Any, result: Any) -> int:
    packet = getattr(op, "overloadpacket", op)
    if packet in FORMULAS:
        args, kwargs, out = pytree.tree_map(_shape, (args, kwargs, result))
        return FORMULAS[packet](*args, out_shape=out, **kwargs)
    return int(flop_registry[packet](*args, **kwargs, out_val=result))


def _count_higher_order(node: fx.Node, op: torch._ops.HigherOrderOperator) -> int:
    """Count what is done besides the calls in subgraphs."""
    if op.name() == "cond":  # one of two results is taken
        return 0
    args, kwargs = _arguments(node)
    if known(op):
        return _by_formula(op, args, kwargs, bare(node))
    raise UncountableError(f"how many operations {op.name()} takes is not known")


def _none(op: Any) -> int:
    """Return 0 for an operator that PyTorch does not count, unless it multiplies and sums."""
    if op._schema.name.partition("::")[2] in CONTRACTIONS:
        raise UncountableError(
            f"how many operations {op._schema.name} takes is not known; "
            "torch.utils.flop_counter.register_flop_formula can say so"
        )
    return 0


def _dtype(argument: Any) -> Any:
    return getattr(value_of(argument), "dtype", None) if isinstance(argument, fx.Node) else None


def _arguments(node: fx.Node) -> tuple[Any, dict[str, Any]]:
    args: Any = fx.node.map_arg(node.args, bare)
    kwargs: Any = fx.node.map_arg(node.kwargs, bare)
    return args, kwargs


def bare(node: fx.Node) -> Any:
    """Return what a node gives, tensors without data."""
    return pytree.tree_map_only(Tensor, _without_data, value_of(node))


def _without_data(tensor: Tensor) -> Tensor:
    if tensor.layout != torch.strided:
        return torch.empty(tensor.shape, dtype=tensor.dtype, device="meta")
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")


def _shape(value: Any) -> Any:
    return tuple(value.shape) if isinstance(value, Tensor) else value
