"""Reductions, scans along an axis, and sorting.

Reads: reduction       out[…] ← in[…, all along the reduced axes]
       cumulative      out[…, t] ← in[…, s ≤ t]
       sort, top-k     out[…, t] ← in[…, all along the axis]: which element comes t-th depends on every one

A known element may settle the result whatever the others are: a product with a known 0 reads nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from depgraph.rules.arguments import tensors_in
from depgraph.rules.call import Call, Read
from depgraph.rules.elementwise import outputs
from depgraph.rules.masking import far, masked_out, of_any_size
from depgraph.rules.registry import SIZED, name_of, rule
from depgraph.rules.settling import is_zero, where_known
from depgraph.rules.values import KNOWN, Value, compress, core, forget, together, uniform

# Where a number that is lower than another by more than numbers ordinarily differ can never be the result.
LARGEST = frozenset(("amax", "max", "argmax", "logsumexp", "special_logsumexp"))
SMALLEST = frozenset(("amin", "min", "argmin"))
# Where one known element settles the result.
ABSORBED_BY: dict[str, Callable[[Tensor], Tensor]] = {
    **dict.fromkeys(("prod", "cumprod", "all"), is_zero),
    "any": lambda v: v != 0,
    **dict.fromkeys(("sum", "mean", "cumsum"), torch.isinf),
    **dict.fromkeys(("amax", "logsumexp", "special_logsumexp"), torch.isposinf),
    "amin": torch.isneginf,
}
# Those whose result is the place of an element.
PICKS = frozenset(("argmax", "argmin", "argsort"))


def axes_of(dim: Any, ndim: int) -> list[int]:
    """Return axes as non-negative numbers; None and the empty list stand for all."""
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return list(range(ndim))
    axes = list(dim) if isinstance(dim, (list, tuple)) else [dim]
    return sorted({axis % ndim for axis in axes}) if ndim else []


def gathered(codes: Tensor, axes: list[int], keep: bool) -> Tensor:
    """Move axes to the end; with ``keep``, leave axes of length 1 in their place."""
    rest = [axis for axis in range(codes.ndim) if axis not in axes]
    moved = codes.permute((*rest, *axes))
    if keep:
        for axis in axes:
            moved = moved.unsqueeze(axis)
    return moved


def argument(call: Call, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], default: Any = None) -> Any:
    """Return an argument by its name in the operator's schema."""
    for place, parameter in enumerate(call.op._schema.arguments):
        if parameter.name == name:
            if name in kwargs:
                return kwargs[name]
            if place < len(args) and not parameter.kwarg_only:
                return args[place]
            return parameter.default_value if parameter.has_default_value() else default
    return default


@rule(
    "sum",
    "mean",
    "nansum",
    "nanmean",
    "prod",
    "amax",
    "amin",
    "aminmax",
    "max",
    "min",
    "max.dim",
    "min.dim",
    "any",
    "all",
)
@rule("argmax", "argmin", "logsumexp", "var", "std", "var_mean", "std_mean", "norm", "linalg_vector_norm", "median")
@rule("nanmedian", "mode", "count_nonzero", "kthvalue", "hash_tensor")
def reduction(call: Call, value: Value, *args: Any, **kwargs: Any) -> Any:
    """Read everything along the reduced axes."""
    if any(isinstance(arg, Value) for arg in args):  # max(a, b): elementwise under the same name
        from depgraph.rules.elementwise import elementwise

        return elementwise(call, value, *args, **kwargs)
    args = (value, *args)
    names = {a.name for a in call.op._schema.arguments}
    dim = argument(call, "dim", args, kwargs) if "dim" in names else None
    axes = axes_of(dim, value.ndim)
    shape = call.shape
    keep = len(shape) == value.ndim and value.ndim > 0
    gone = masked_out(value, axes[0]) if name_of(call.op) in LARGEST and len(axes) == 1 else None
    dead = None if gone is None else gathered(gone, axes, keep)
    settled = absorbed(call, value)
    if settled is not None:
        settled = gathered(settled, axes, keep)
        for _ in axes:
            settled = settled.any(-1)
        behind = settled[(...,) + (None,) * len(axes)]
        dead = behind if dead is None else dead | behind
    if name_of(call.op) in PICKS and single(value, axes):
        return call.result(uniform(KNOWN, shape))
    codes = call.nodes(shape, Read(gathered(value.codes, axes, keep), len(axes), dead))
    if settled is not None:
        codes = compress(torch.where(settled, KNOWN, codes))
    return sized(call, value, axes, keep, outputs(call, codes, picked(call, single(value, axes))))


SIZED.add(reduction)


def absorbed(call: Call, value: Value) -> Tensor | None:
    """Return which elements settle the result of what they are part of; None where there are none."""
    test = ABSORBED_BY.get(name_of(call.op))
    found = None if test is None else where_known(value, test)
    return found if found is not None and bool(core(found).any()) else None


def sized(call: Call, value: Value, axes: list[int], keep: bool, result: Any) -> Any:
    """Carry on what was added to unknowns: the largest of all is what had most added, but for an ordinary number."""
    where, name = far(value), name_of(call.op)
    if where is None:
        return result
    parts = result if isinstance(result, tuple) else (result,)
    if name in LARGEST | SMALLEST:
        added = gathered(value.values(), axes, keep)
        for _ in axes:
            added = added.amin(-1) if name in SMALLEST else added.amax(-1)
        first = parts[0]
        codes, known, added = together(first.codes, first.values(), added.to(first.dtype))
        parts = (first.over(first.codes, torch.where(codes == KNOWN, known, added).expand(first.shape)), *parts[1:])
    else:
        beyond = gathered(where.expand(value.shape), axes, keep)
        for _ in axes:
            beyond = beyond.any(-1)
        parts = tuple(of_any_size(part, beyond) for part in parts)
    return parts if isinstance(result, tuple) else parts[0]


def single(value: Value, axes: list[int]) -> Tensor:
    """Tell whether there is but one element along the axes, which makes its index known."""
    return torch.tensor(math.prod(value.shape[axis] for axis in axes) == 1)


def picked(call: Call, where: Tensor) -> Tensor | None:
    """Return where the index is known, for operators that return the picked elements and their indices."""
    returns = call.op._schema.returns
    return where if len(returns) == 2 and returns[1].name == "indices" else None


@rule("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp")
def cumulative(call: Call, value: Value, dim: int, **kwargs: Any) -> Any:
    """Read everything up to the element's own place along the axis."""
    if value.ndim == 0:
        return outputs(call, call.nodes((), Read(value.codes)), picked(call, torch.tensor(True)))
    axis = dim % value.ndim
    size = value.shape[axis]
    codes = value.codes.movedim(axis, -1).unsqueeze(axis)
    later = torch.ones(size, size, dtype=torch.bool).triu(1)
    later = later.reshape([size if a == axis else 1 for a in range(value.ndim)] + [size])
    first = torch.arange(size).reshape([size if a == axis else 1 for a in range(value.ndim)]) == 0
    if (settled := absorbed(call, value)) is not None:
        settled = settled.long().cumsum(axis) > 0
        codes = call.nodes(value.shape, Read(codes, 1, later | settled.unsqueeze(-1)))
        return outputs(call, compress(torch.where(settled, KNOWN, codes)))
    return outputs(call, call.nodes(value.shape, Read(codes, 1, later)), picked(call, first))


@rule("sort", "argsort", "msort", "topk")
def sorting(call: Call, value: Value, *args: Any, **kwargs: Any) -> Any:
    """Read everything along the axis."""
    dim = argument(call, "dim", (value, *args), kwargs, default=0)
    axes = axes_of(dim, value.ndim)
    if name_of(call.op) in PICKS and single(value, axes):
        return call.result(uniform(KNOWN, call.shape))
    codes = call.nodes(call.shape, Read(gathered(value.codes, axes, value.ndim > 0), len(axes)))
    return outputs(call, codes, picked(call, single(value, axes)))


def everything(call: Call, *args: Any, **kwargs: Any) -> Any:
    """Read every element of every argument: what is assumed of an operator nothing is known of."""
    reads = [Read(t.codes, t.ndim) for t in tensors_in(args, kwargs)]
    code = call.nodes((), *reads)
    return pytree.tree_map_only(Tensor, lambda m: Value(forget(code).expand(m.shape), None, m.dtype), call.meta)


@rule("depgraph::python")
def python(call: Call, value: Value, read: list[Value]) -> Value:
    """Read every element of what Python computed a tensor from."""
    return value if all(t.is_known for t in read) else cast("Value", everything(call, value, *read))
