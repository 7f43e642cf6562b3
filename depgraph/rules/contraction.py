"""Contractions: products summed over shared axes.

Reads: out[i, j] ← a[i, k] and b[k, j] for all k, but no term in which either factor is a known 0. Any factor may be
data: a weight that carries nodes is read like everything else.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from depgraph.rules.arguments import tensors_in
from depgraph.rules.call import Call, Read
from depgraph.rules.masking import far, of_any_size, shifted
from depgraph.rules.registry import rule
from depgraph.rules.values import Value


def contract(
    call: Call, left: Value, right: Value, inner: int, extra: tuple[Read, ...] = (), shape: Any = None
) -> Tensor:
    """Read two factors, arranged alike (output axes, then ``inner`` summed axes, broadcasting), and what is added."""
    return call.nodes(
        call.shape if shape is None else shape,
        Read(left.codes, inner, right.zero),
        Read(right.codes, inner, left.zero),
        *extra,
    )


def arrange(value: Value, *how: Any) -> Value:
    """Apply view operations, given as functions, to the codes and the known values alike."""
    codes, values = value.codes, value.known
    for step in how:
        codes, values = step(codes), None if values is None else step(values)
    return value.over(codes, values)


@rule("linear", contraction=True)
def linear(call: Call, x: Value, weight: Value, bias: Value | None = None) -> Value:
    """``y[…, o] = Σ_i x[…, i] w[o, i] + b[o]``."""
    extra = () if bias is None else (Read(bias.codes),)
    if weight.ndim == 1:
        return call.result(contract(call, x, weight, 1, extra))
    return call.result(contract(call, arrange(x, lambda t: t.unsqueeze(-2)), weight, 1, extra))


@rule("matmul", "mm", "bmm", "mv", "dot", "vdot", "_sparse_mm", contraction=True)
def matmul(call: Call, a: Value, b: Value, *_: Any, **__: Any) -> Value:
    """``y[…, i, j] = Σ_k a[…, i, k] b[…, k, j]``; vectors as `torch.matmul` has them."""
    if a.ndim <= 1 and b.ndim <= 1:
        return call.result(contract(call, a, b, 1))
    return call.result(contract(call, *products(a, b), 1))


@rule("inner", contraction=True)
def inner(call: Call, a: Value, b: Value) -> Value:
    """``y[…, …] = Σ_k a[…, k] b[…, k]``; numbers scale."""
    if a.ndim == 0 or b.ndim == 0:
        return call.result(contract(call, a, b, 0))
    left = arrange(a, lambda t: t.reshape(*t.shape[:-1], *(1,) * (b.ndim - 1), t.shape[-1]))
    return call.result(contract(call, left, b, 1))


@rule("linalg_vecdot", contraction=True)
def vecdot(call: Call, a: Value, b: Value, *, dim: int = -1) -> Value:
    """``y[…] = Σ_k a[…, k] b[…, k]`` along any axis."""
    ndim = max(a.ndim, b.ndim)
    axis = dim % ndim - ndim  # counted from behind, as broadcasting does
    a, b = (arrange(v, lambda t: t.expand((1,) * (ndim - t.ndim) + t.shape).movedim(axis, -1)) for v in (a, b))
    return call.result(contract(call, a, b, 1))


def products(a: Value, b: Value) -> tuple[Value, Value]:
    """Arrange the factors of a matrix product: (…, i, j, k) each, less the axes a vector lacks."""
    left = a if b.ndim == 1 else arrange(a, lambda t: t.unsqueeze(-2))
    right = b if b.ndim == 1 else arrange(b, lambda t: t.movedim(-2, -1))
    if a.ndim > 1 and b.ndim > 1:
        right = arrange(right, lambda t: t.unsqueeze(-3))
    return left, right


def plus(call: Call, added: Value, factors: tuple[Value, ...], scales: dict[str, Any], codes: Tensor) -> Value:
    """Return a sum of products and ``c``; what is known of c (a mask of -inf or -1e9) carries over to the sum."""
    if scales.get("beta", 1) == 0 or added.known is None or not call.dtype.is_floating_point:
        result = call.result(codes)
    else:
        values = call.values(codes, everywhere=True)
        assert values is not None
        result = Value(*shifted(codes, values), call.dtype)
    return result if all(far(factor) is None for factor in factors) else of_any_size(result)


@rule("addmm", "addmv", "baddbmm", "_addmm_activation", "_sparse_addmm", contraction=True, sized=True)
def matmul_onto(call: Call, added: Value, a: Value, b: Value, **scales: Any) -> Value:
    """``beta · c + alpha · a @ b``; a scale of 0 leaves its term unread."""
    extra = () if scales.get("beta", 1) == 0 else (Read(added.codes),)
    if scales.get("alpha", 1) == 0:
        return plus(call, added, (), scales, call.nodes(call.shape, *extra))
    return plus(call, added, (a, b), scales, contract(call, *products(a, b), 1, extra))


@rule("addbmm", contraction=True, sized=True)
def addbmm(call: Call, added: Value, a: Value, b: Value, **scales: Any) -> Value:
    """``c + Σ_batch a @ b``."""
    left, right = (arrange(v, lambda t: t.movedim(0, -2)) for v in products(a, b))
    extra = () if scales.get("beta", 1) == 0 else (Read(added.codes),)
    if scales.get("alpha", 1) == 0:
        return plus(call, added, (), scales, call.nodes(call.shape, *extra))
    return plus(call, added, (a, b), scales, contract(call, left, right, 2, extra))


@rule("addr", contraction=True, sized=True)
def addr(call: Call, added: Value, a: Value, b: Value, **scales: Any) -> Value:
    """``c + a ⊗ b``."""
    extra = () if scales.get("beta", 1) == 0 else (Read(added.codes),)
    if scales.get("alpha", 1) == 0:
        return plus(call, added, (), scales, call.nodes(call.shape, *extra))
    return plus(call, added, (a, b), scales, contract(call, arrange(a, lambda t: t.unsqueeze(-1)), b, 0, extra))


@rule("_scaled_mm", "_scaled_mm_v2", contraction=True)
def scaled_mm(call: Call, a: Value, b: Value, *scales: Any, **more: Any) -> Value:
    """A matrix product of small floats, scaled."""
    extra = tuple(Read(scale.codes, scale.ndim) for scale in tensors_in(scales, more))
    return call.result(contract(call, *products(a, b), 1, extra))


@rule("outer", "ger", contraction=True)
def outer(call: Call, a: Value, b: Value) -> Value:
    """``a ⊗ b``."""
    return call.result(contract(call, arrange(a, lambda t: t.unsqueeze(-1)), b, 0))


@rule("cov", contraction=True)
def cov(call: Call, x: Value, *_: Any, **weights: Any) -> Value:
    """``y[i, j]`` ← rows i and j, and the weights of the observations."""
    rows = x.codes if x.ndim > 1 else x.codes.reshape(1, -1)
    extra = [Read(weight.codes, 1) for weight in tensors_in((), weights)]
    codes = call.nodes((rows.shape[0],) * 2, Read(rows.unsqueeze(1), 1), Read(rows.unsqueeze(0), 1), *extra)
    return call.result(codes.reshape(call.shape))


@rule("_trilinear", "bilinear", contraction=True)
def bilinear(call: Call, a: Value, b: Value, weight: Value, bias: Any = None, *rest: Any) -> Any:
    """``y[…, o] = Σ_ij a[…, i] w[o, i, j] b[…, j] + c[o]``."""
    if call.op._schema.name != "aten::bilinear":
        return call.decompose()
    zero_w = weight.zero
    left = Read(a.codes.unsqueeze(-2).unsqueeze(-1), 2, zero_w)
    right = Read(b.codes.unsqueeze(-2).unsqueeze(-2), 2, zero_w)
    extra = () if bias is None else (Read(bias.codes),)
    return call.result(call.nodes(call.shape, left, right, Read(weight.codes, 2), *extra))


@rule("_cdist_forward", "cdist", contraction=True)
def distances(call: Call, a: Value, b: Value, *_: Any, **__: Any) -> Value:
    """``y[…, i, j]`` ← a[…, i, :] and b[…, j, :]."""
    return call.result(call.nodes(call.shape, Read(a.codes.unsqueeze(-2), 1), Read(b.codes.unsqueeze(-3), 1)))
