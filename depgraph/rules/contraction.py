"""Contractions: products summed over shared axes.

Reads: out[i, j] ← a[i, k] and b[k, j] for all k, but no term in which either factor is a known 0. Any factor may be
data: a weight that carries nodes is read like everything else.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from depgraph.rules.arguments import tensors_in
from depgraph.rules.call import Call, Read
from depgraph.rules.registry import rule
from depgraph.rules.values import KNOWN, ORDINARY, RANGED, Value, core, together
from depgraph.rules.values.intervals import (
    NEARLY,
    bounded,
    doubted,
    largest,
    of_any_size,
    size,
    sized,
    stretch,
    wild,
    within,
)


def contract(
    call: Call, left: Value, right: Value, inner: int, extra: tuple[Read, ...] = (), shape: Any = None
) -> Tensor:
    """Read two factors, arranged alike (output axes, then ``inner`` summed axes, broadcasting), and what is added."""
    return call.nodes(
        call.shape if shape is None else shape,
        Read(left.codes, inner, voided(left, right)),
        Read(right.codes, inner, voided(right, left)),
        *extra,
    )


def voided(factor: Value, other: Value) -> Tensor | None:
    """Return where a factor makes no difference, the other one being 0: not where it may be infinite or NaN."""
    if other.zero is None or (factor.nan is None and wild(factor) is None):
        return other.zero
    zero, sizes, doubt = together(other.zero, size(factor), factor.doubtful)
    return zero & sizes.isfinite() & ~doubt


def arrange(value: Value, *how: Any) -> Value:
    """Apply view operations, given as functions, to all that a value consists of."""
    for step in how:
        value = value.through(step)
    return value


def summed(
    call: Call, codes: Tensor, factors: tuple[Value, ...], inner: int = 1, added: Any = None, **scales: Any
) -> Value:
    """Return a sum of products: ordinary where the factors are, as many times larger as they are, and what is added.

    Parameters
    ----------
    factors : tuple of Value
        Arranged as in `contract`, with ``inner`` summed axes; none where their product counts for nothing.
    added : Value, optional
        What is added, times ``beta``, to ``alpha`` times the sum.
    """
    alpha, beta = scales.get("alpha", 1), scales.get("beta", 1)
    added = None if beta == 0 else added
    result = call.result(codes)
    if call.dtype not in RANGED or not call.dtype.is_floating_point or result.is_known:
        return result
    if any(wild(factor) is not None for factor in factors):
        return of_any_size(result, nan=True)
    doubt = torch.zeros((), dtype=torch.bool)
    for factor in factors:
        if factor.nan is not None:
            lost = factor.doubtful.expand(factor.shape)
            doubt = doubt | (lost.any(tuple(range(-inner, 0))) if inner else lost)
    limit = abs(alpha) * product(factors[0], factors[1], inner) if factors else torch.tensor(0.0, dtype=torch.float64)
    limit = torch.where(limit <= NEARLY, limit.clamp(max=ORDINARY), limit)
    if added is None or (added.plain and abs(beta) <= 2):
        result = result if bool((limit <= ORDINARY).all()) else sized(result, limit.expand(call.shape) + ORDINARY)
        return doubted(result, doubt)
    # What is known to be added (a mask) carries over, give or take the sum of products.
    parts = (core(result.codes) == KNOWN, result.values(), *added.bounds, added.doubtful, limit)
    sure, values, low, high, nan, limit = together(*(part.expand(call.shape) for part in parts))
    low, high = (low.double() * beta, high.double() * beta) if beta > 0 else (high.double() * beta, low.double() * beta)
    ordinary = (low >= -NEARLY) & (high <= NEARLY) & (limit <= ORDINARY)
    low, high = within((low - limit, high + limit), ORDINARY, ordinary)
    low, high = (torch.where(sure, values.double(), end) for end in (low, high))
    return doubted(bounded(result.codes, low, high, call.dtype, nan & ~sure), doubt)


def product(left: Value, right: Value, inner: int) -> Tensor:
    """Return how large sums of products may be.

    Sums of ordinary numbers are ordinary, so what counts is how large the largest known factor is, or the sum of all of
    them where that is less; and how far factors that are not known are from ordinary.
    """
    if not (left.is_known or right.is_known):
        return torch.tensor(ORDINARY * stretch(left) * stretch(right), dtype=torch.float64)
    factor, other = (left, right) if left.is_known else (right, left)
    if not factor.codes.numel():
        return torch.zeros((), dtype=torch.float64)
    sizes = size(factor).expand(factor.shape)
    if inner:
        axes = tuple(range(-inner, 0))
        sizes = torch.minimum(sizes.sum(axes), sizes.amax(axes).clamp(min=1.0))
    return sizes * largest(other)


@rule("linear", contraction=True, sized=True)
def linear(call: Call, x: Value, weight: Value, bias: Value | None = None) -> Value:
    """``y[…, o] = Σ_i x[…, i] w[o, i] + b[o]``."""
    extra = () if bias is None else (Read(bias.codes),)
    rows = x if weight.ndim == 1 else arrange(x, lambda t: t.unsqueeze(-2))
    return summed(call, contract(call, rows, weight, 1, extra), (rows, weight), added=bias)


@rule("matmul", "mm", "bmm", "mv", "dot", "vdot", "_sparse_mm", contraction=True, sized=True)
def matmul(call: Call, a: Value, b: Value, *_: Any, **__: Any) -> Value:
    """``y[…, i, j] = Σ_k a[…, i, k] b[…, k, j]``; vectors as `torch.matmul` has them."""
    left, right = (a, b) if a.ndim <= 1 and b.ndim <= 1 else products(a, b)
    return summed(call, contract(call, left, right, 1), (left, right))


@rule("inner", contraction=True, sized=True)
def inner(call: Call, a: Value, b: Value) -> Value:
    """``y[…, …] = Σ_k a[…, k] b[…, k]``; numbers scale."""
    if a.ndim == 0 or b.ndim == 0:
        return summed(call, contract(call, a, b, 0), (a, b), 0)
    left = arrange(a, lambda t: t.reshape(*t.shape[:-1], *(1,) * (b.ndim - 1), t.shape[-1]))
    return summed(call, contract(call, left, b, 1), (left, b))


@rule("linalg_vecdot", contraction=True, sized=True)
def vecdot(call: Call, a: Value, b: Value, *, dim: int = -1) -> Value:
    """``y[…] = Σ_k a[…, k] b[…, k]`` along any axis."""
    ndim = max(a.ndim, b.ndim)
    axis = dim % ndim - ndim  # counted from behind, as broadcasting does
    a, b = (arrange(v, lambda t: t.expand((1,) * (ndim - t.ndim) + t.shape).movedim(axis, -1)) for v in (a, b))
    return summed(call, contract(call, a, b, 1), (a, b))


def products(a: Value, b: Value) -> tuple[Value, Value]:
    """Arrange the factors of a matrix product: (…, i, j, k) each, less the axes a vector lacks."""
    left = a if b.ndim == 1 else arrange(a, lambda t: t.unsqueeze(-2))
    right = b if b.ndim == 1 else arrange(b, lambda t: t.movedim(-2, -1))
    if a.ndim > 1 and b.ndim > 1:
        right = arrange(right, lambda t: t.unsqueeze(-3))
    return left, right


@rule("addmm", "addmv", "baddbmm", "_addmm_activation", "_sparse_addmm", contraction=True, sized=True)
def matmul_onto(call: Call, added: Value, a: Value, b: Value, **scales: Any) -> Value:
    """``beta · c + alpha · a @ b``; a scale of 0 leaves its term unread."""
    extra = () if scales.get("beta", 1) == 0 else (Read(added.codes),)
    if scales.get("alpha", 1) == 0:
        return summed(call, call.nodes(call.shape, *extra), (), added=added, **scales)
    left, right = products(a, b)
    return summed(call, contract(call, left, right, 1, extra), (left, right), 1, added, **scales)


@rule("addbmm", contraction=True, sized=True)
def addbmm(call: Call, added: Value, a: Value, b: Value, **scales: Any) -> Value:
    """``c + Σ_batch a @ b``."""
    left, right = (arrange(v, lambda t: t.movedim(0, -2)) for v in products(a, b))
    extra = () if scales.get("beta", 1) == 0 else (Read(added.codes),)
    if scales.get("alpha", 1) == 0:
        return summed(call, call.nodes(call.shape, *extra), (), added=added, **scales)
    return summed(call, contract(call, left, right, 2, extra), (left, right), 2, added, **scales)


@rule("addr", contraction=True, sized=True)
def addr(call: Call, added: Value, a: Value, b: Value, **scales: Any) -> Value:
    """``c + a ⊗ b``."""
    extra = () if scales.get("beta", 1) == 0 else (Read(added.codes),)
    if scales.get("alpha", 1) == 0:
        return summed(call, call.nodes(call.shape, *extra), (), added=added, **scales)
    left = arrange(a, lambda t: t.unsqueeze(-1))
    return summed(call, contract(call, left, b, 0, extra), (left, b), 0, added, **scales)


@rule("_scaled_mm", "_scaled_mm_v2", contraction=True)
def scaled_mm(call: Call, a: Value, b: Value, *scales: Any, **more: Any) -> Value:
    """A matrix product of small floats, scaled."""
    extra = tuple(Read(scale.codes, scale.ndim) for scale in tensors_in(scales, more))
    return call.result(contract(call, *products(a, b), 1, extra))


@rule("outer", "ger", contraction=True, sized=True)
def outer(call: Call, a: Value, b: Value) -> Value:
    """``a ⊗ b``."""
    left = arrange(a, lambda t: t.unsqueeze(-1))
    return summed(call, contract(call, left, b, 0), (left, b), 0)


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
