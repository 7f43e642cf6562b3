"""Reductions, scans along an axis, and sorting.

Reads: reduction       out[…] ← in[…, all along the reduced axes]
       cumulative      out[…, t] ← in[…, s ≤ t]
       sort, top-k     out[…, t] ← in[…, all along the axis]: which element comes t-th depends on every one

A known element may settle the result whatever the others are: a product with a known 0 reads nothing.
"""

from __future__ import annotations

import math
from typing import Any, cast

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from depgraph.rules.arguments import tensors_in
from depgraph.rules.call import Call, Read
from depgraph.rules.elementwise import outputs
from depgraph.rules.registry import SIZED, name_of, rule
from depgraph.rules.values import KNOWN, ORDINARY, RANGED, Value, core, forget, swap, together, uniform, usual
from depgraph.rules.values.intervals import NEARLY, STRETCH, bounded, largest, same, spoilt, stretch, wild
from depgraph.rules.values.weights import weigh

# Those that rise with every element: what they make of the least and of the largest of all are the ends of what they
# make. Of the first, an element that is lower than what another is for sure cannot be the result; …
LARGEST = frozenset(("amax", "max"))
SMALLEST = frozenset(("amin", "min"))
# … these add up, and round;
SUMS = frozenset(("sum", "mean", "cumsum"))
RISING = LARGEST | SMALLEST | SUMS | frozenset(("any", "all", "logsumexp", "logcumsumexp", "median"))
RISING |= frozenset(("kthvalue", "cummax", "cummin", "sort", "msort", "topk"))
# … and these are no less than 0.
CLOSED = frozenset(("norm", "linalg_vector_norm", "std", "var"))
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
    name, shape = name_of(call.op), call.shape
    keep = len(shape) == value.ndim and value.ndim > 0
    if name in PICKS and single(value, axes):
        return call.result(uniform(KNOWN, shape))
    group = gathered(value.codes, axes, keep)
    if (value.plain and name not in CLOSED) or not value.codes.numel() or not shape.numel():
        return outputs(call, call.nodes(shape, Read(group, len(axes))), picked(call, single(value, axes)))
    dead = out_of_reach(name, value, axes)
    dead = None if dead is None else gathered(dead.expand(value.shape), axes, keep)
    ends = reduced(call, name, value, args[1:], kwargs, axes, keep)
    if ends is not None:
        settled = (same(ends[0], ends[1]) & ~ends[2])[(...,) + (None,) * len(axes)]
        dead = settled if dead is None else dead | settled
    codes = call.nodes(shape, Read(group, len(axes), dead if dead is not None and bool(dead.any()) else None))
    result = outputs(call, codes, picked(call, single(value, axes)))
    parts = result if isinstance(result, tuple) else (result,)
    if ends is None:
        parts = tuple(spoilt(part, [value]) for part in parts)
    else:
        parts = (bounded(codes, *ends[:2], parts[0].dtype, ends[2]), *parts[1:])
    return parts if isinstance(result, tuple) else parts[0]


SIZED.add(reduction)

Ends = tuple[Tensor, Tensor, Tensor]


def out_of_reach(name: str, value: Value, axes: list[int]) -> Tensor | None:
    """Return which elements make no difference, being less (or more) than another is for sure; None where none."""
    if value.dtype not in RANGED or value.dtype == torch.bool or not axes:
        return None
    low, high, nan = together(*value.bounds, value.doubtful.expand(value.shape))
    if name in ("logsumexp", "special_logsumexp"):
        if len(axes) > 1:
            return None
        return weigh(low, high, nan, axes[0], value.shape[axes[0]], value.dtype).gone
    if name in LARGEST | {"argmax"}:
        return (high < low.amax(axes, keepdim=True)) & ~nan
    if name in SMALLEST | {"argmin"}:
        return (low > high.amin(axes, keepdim=True)) & ~nan
    return None


def reduced(
    call: Call, name: str, value: Value, args: tuple[Any, ...], kwargs: dict[str, Any], axes: list[int], keep: bool
) -> Ends | None:
    """Return the least and the largest that comes out, and where it may be NaN; None where no more is known of it."""
    if value.dtype not in RANGED or name in ("aminmax", "hash_tensor", "var_mean", "std_mean"):
        return None
    if name in PICKS:
        return place_of(call, name, value, axes, keep)
    if name == "count_nonzero":
        count = math.prod(value.shape[axis] for axis in axes)
        return torch.zeros(()), torch.tensor(count), torch.tensor(False)
    nan = along(value.doubtful.expand(value.shape), axes, keep)
    if name in RISING:
        return risen(call, name, value, args, kwargs, nan, lambda t: along(t, axes, keep))
    top: float = torch.finfo(call.dtype).max if call.dtype.is_floating_point else torch.iinfo(call.dtype).max
    if name in CLOSED and call.dtype.is_floating_point and not value.is_known:
        sure = along((core(value.codes) != KNOWN).expand(value.shape), axes, keep)
        exact = call.values(torch.zeros((), dtype=torch.int64), everywhere=True)
        assert exact is not None
        high = torch.tensor(ORDINARY if largest(value) <= NEARLY else top, dtype=torch.float64)
        return torch.where(sure, 0.0, exact.double()), torch.where(sure, high, exact.double()), nan
    if name == "prod":
        known, low = core(value.codes) == KNOWN, core(value.bounds[0])
        zero = along((known & (low == 0)).expand(value.shape), axes, keep)
        finite = wild(value) is None
        exact = call.values(torch.zeros((), dtype=torch.int64), everywhere=True)
        assert exact is not None
        sure = ~along((~known).expand(value.shape), axes, keep) | (zero & finite)
        if call.dtype.is_floating_point:
            factors = torch.where(
                core(value.codes) == KNOWN, core(value.values()).abs().double().clamp(min=1), stretch(value)
            )
            most = ORDINARY * factors.expand(value.shape)
            for axis in sorted(axes, reverse=True):
                most = most.prod(axis, keepdim=keep) / ORDINARY ** (value.shape[axis] - 1)
            limit = most.clamp(max=top)
        else:
            limit = torch.tensor(top)
        exact = torch.where(zero & finite, 0, exact)
        return torch.where(sure, exact, -limit), torch.where(sure, exact, limit), nan & ~sure
    return None


def along(mask: Tensor, axes: list[int], keep: bool) -> Tensor:
    """Return where a mask is True somewhere along axes."""
    mask = gathered(mask, axes, keep)
    for _ in axes:
        mask = mask.any(-1)
    return mask


def place_of(call: Call, name: str, value: Value, axes: list[int], keep: bool) -> Ends:
    """Return the first and the last place at which the result of ``argmax`` may be."""
    count = math.prod(value.shape[axis] for axis in axes)
    first, last, never = torch.zeros(()), torch.tensor(count - 1), torch.tensor(False)
    dead = out_of_reach(name, value, axes)
    if dead is None or len(axes) != 1:
        return first, last, never
    alive = ~gathered(dead.expand(value.shape), axes, keep)
    return alive.int().argmax(-1), count - 1 - alive.flip(-1).int().argmax(-1), never


def risen(
    call: Call, name: str, value: Value, args: tuple[Any, ...], kwargs: dict[str, Any], nan: Tensor, some: Any
) -> Ends:
    """Return what an operator that rises with every element makes of the ends of the intervals.

    ``some`` tells, of a mask, where it is True for some element of what a result is made of.
    """

    def of(tensor: Tensor) -> Tensor:
        with torch.no_grad():
            result = call.op(tensor.contiguous(), *swap(args, Value.values), **swap(kwargs, Value.values))
        first: Tensor = result[0] if isinstance(result, tuple) else result
        return first

    ends = truths(value) if name in ("any", "all") else value.bounds
    low, high = (of(end) for end in ends)
    broken = some((core(value.bounds[0]).isnan()).expand(value.shape)) if value.dtype.is_floating_point else None
    if low.dtype == torch.bool:
        return low, high, torch.tensor(False)
    if not low.is_floating_point():
        if name in SUMS:  # it may run over
            exact = [of(end.double()) for end in value.bounds]
            least, most = usual(low.dtype)
            over = (exact[0] <= float(least)) | (exact[1] >= float(most))
            low, high = torch.where(over, least, low), torch.where(over, most, high)
        return low, high, torch.tensor(False)
    nan = nan if broken is None else nan & ~broken
    # Infinities of both signs leave no number.
    lost = low.isnan() | high.isnan()
    nan = nan | (lost if broken is None else lost & ~broken)
    gone = nan & lost
    low, high = torch.where(gone, -math.inf, low), torch.where(gone, math.inf, high)
    if name in SUMS:
        low, high = rounded(value, of, some, low, high)
    return low, high, nan


def truths(value: Value) -> tuple[Tensor, Tensor]:
    """Return which elements are True for sure, and which may be."""
    low, high, nan = together(*value.bounds, value.doubtful.expand(value.shape))
    sure, may = ((low > 0) | (high < 0) | low.isnan(), (low != 0) | (high != 0) | nan)
    return sure.expand(value.shape), may.expand(value.shape)


def rounded(value: Value, of: Any, some: Any, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Widen sums by what rounding in another order may make of them, and hold sums of ordinary numbers for ordinary."""
    codes, least, most = core(value.codes), core(value.bounds[0]), core(value.bounds[1])
    unknown = some((codes != KNOWN).expand(value.shape))
    sure, least, most = together(codes == KNOWN, least, most)
    known = torch.where(sure, least, torch.zeros((), dtype=value.dtype))
    sizes = torch.maximum(least.double().abs(), most.double().abs()).expand(value.shape)
    slack = of(sizes).double() * torch.finfo(low.dtype).eps * 4 * sizes.numel() ** 0.5
    slack = torch.where(unknown, slack.nan_to_num(0.0, 1e307), 0.0)
    ends = low.double() - slack, high.double() + slack
    # Of numbers of one sign, what is lost is a part of the sum; what is made of them has that sign.
    share = max(0.5, 1 - sizes.numel() * torch.finfo(low.dtype).eps)
    one_sign = ~some((least < 0).expand(value.shape)), ~some((most > 0).expand(value.shape))
    ends = torch.where(one_sign[0], low.double() * share, ends[0]), torch.where(one_sign[1], high * share, ends[1])
    middle = of(known.expand(value.shape).double())
    ordinary = unknown & middle.isfinite() & ~some((sizes > NEARLY) & (codes != KNOWN))
    return (
        torch.where(ordinary, torch.maximum(ends[0], middle - ORDINARY), ends[0]),
        torch.where(ordinary, torch.minimum(ends[1], middle + ORDINARY), ends[1]),
    )


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
    read = Read(codes, 1, later)
    if value.plain or value.dtype not in RANGED:
        return outputs(call, call.nodes(value.shape, read), picked(call, first))
    name, nan = name_of(call.op), value.doubtful.expand(value.shape).long().cumsum(axis) > 0
    if name == "cumprod":
        known = ((core(value.codes) == KNOWN) & (core(value.values()) == 0)).expand(value.shape)
        settled = (known.long().cumsum(axis) > 0) & (wild(value) is None)
        made = call.nodes(value.shape, Read(codes, 1, later | settled.unsqueeze(-1)))
        result = call.result(made)
        ends = [
            torch.where(settled | (result.codes == KNOWN), torch.where(settled, 0, result.values()), end)
            for end in beyond(value, call)
        ]
        return bounded(made, ends[0], ends[1], call.dtype, nan & ~settled)
    low, high, nan = risen(call, name, value, (dim,), kwargs, nan, lambda t: t.long().cumsum(axis) > 0)
    settled = same(low, high) & ~nan
    made = call.nodes(value.shape, Read(codes, 1, later | settled.unsqueeze(-1)))
    result = outputs(call, made, picked(call, first))
    if isinstance(result, tuple):
        return (bounded(made, low, high, value.dtype, nan), *result[1:])
    return bounded(made, low, high, call.dtype, nan)


def beyond(value: Value, call: Call) -> tuple[Tensor, Tensor]:
    """Return the range of products of many numbers: ordinary where all of them are."""
    top = torch.finfo(call.dtype).max if call.dtype.is_floating_point else torch.iinfo(call.dtype).max
    known = core(value.codes) == KNOWN
    calm = stretch(value) <= 2 and not bool((known & (core(value.values()).abs() > STRETCH)).any())
    limit = torch.tensor(ORDINARY if calm and call.dtype.is_floating_point else top, dtype=call.dtype)
    return -limit, limit


@rule("sort", "argsort", "msort", "topk")
def sorting(call: Call, value: Value, *args: Any, **kwargs: Any) -> Any:
    """Read everything along the axis."""
    dim = argument(call, "dim", (value, *args), kwargs, default=0)
    axes = axes_of(dim, value.ndim)
    if name_of(call.op) in PICKS and single(value, axes):
        return call.result(uniform(KNOWN, call.shape))
    codes = call.nodes(call.shape, Read(gathered(value.codes, axes, value.ndim > 0), len(axes)))
    result = outputs(call, codes, picked(call, single(value, axes)))
    parts = result if isinstance(result, tuple) else (result,)
    if value.plain or value.dtype not in RANGED or name_of(call.op) in PICKS:
        return result
    nan = value.doubtful.expand(value.shape).any(axes, keepdim=True) if axes else value.doubtful
    low, high, nan = risen(
        call, name_of(call.op), value, args, kwargs, nan, lambda t: t.any(axes, keepdim=True) if axes else t
    )
    first = bounded(codes, low, high, parts[0].dtype, nan)
    return (first, *parts[1:]) if isinstance(result, tuple) else first


def everything(call: Call, *args: Any, **kwargs: Any) -> Any:
    """Read every element of every argument: what is assumed of an operator nothing is known of."""
    reads = [Read(t.codes, t.ndim) for t in tensors_in(args, kwargs)]
    code = call.nodes((), *reads)
    return pytree.tree_map_only(Tensor, lambda m: Value(forget(code).expand(m.shape), None, m.dtype), call.meta)


@rule("depgraph::python")
def python(call: Call, value: Value, read: list[Value]) -> Value:
    """Read every element of what Python computed a tensor from."""
    return value if all(t.is_known for t in read) else cast("Value", everything(call, value, *read))
