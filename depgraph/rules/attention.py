"""Fused attention: one node a query position.

Reads: out[…, l, e] ← q[…, l, :], and k[…, s, :], v[…, s, e] and bias[…, l, s] for every key s that l may attend to.
With one key left the weight is the constant 1: the value alone is read. With none left nothing is.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from depgraph.rules.call import Call, Read
from depgraph.rules.registry import rule
from depgraph.rules.values import ORDINARY, Value, forget, reshape, together
from depgraph.rules.values.intervals import doubted, far, of_any_size, spoilt, wild
from depgraph.rules.values.weights import weigh


@rule("scaled_dot_product_attention", contraction=True, sized=True)
def attention(
    call: Call, q: Value, k: Value, v: Value, attn_mask: Value | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> Value:  # fmt: skip
    """Attention with a mask, causal (aligned top-left) or not, and query heads that share keys."""
    result = call.result(attend(call, q, k, v, attn_mask, is_causal, call.shape))
    # A mean of values, or 0 where none may be attended to: of ordinary size where they are.
    result = of_any_size(result, nan=True) if any(wild(t) is not None for t in (q, k)) else spoilt(result, [v])
    return doubted(result, torch.tensor(any(t is not None and bool(t.doubtful.any()) for t in (q, k, v, attn_mask))))


@rule("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention", contraction=True)
@rule("_scaled_dot_product_attention_math", "_scaled_dot_product_fused_attention_overrideable", contraction=True)
@rule("_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention", contraction=True)
def kernel(call: Call, q: Value, k: Value, v: Value, *args: Any, **kwargs: Any) -> Any:
    """The kernels behind it; the further outputs (log-sum-exp, random state) read what the first one reads."""
    given = {p.name: a for p, a in zip(call.op._schema.arguments[3:], args, strict=False)} | kwargs
    mask = given.get("attn_mask", given.get("attn_bias"))
    codes = attend(call, q, k, v, mask, bool(given.get("is_causal", False)), call.meta[0].shape)
    whole = call.nodes((), Read(codes, codes.ndim))
    rest = tuple(
        Value(forget(whole).expand(m.shape), None, m.dtype) if isinstance(m, Tensor) else m for m in call.meta[1:]
    )
    return (call.result(codes), *rest)


def attend(call: Call, q: Value, k: Value, v: Value, mask: Value | None, is_causal: bool, shape: torch.Size) -> Tensor:
    """Return the codes of the attention's output, shaped (…, L, E)."""
    heads, length, keys = q.shape[:-2], q.shape[-2], k.shape[-2]
    if k.ndim > 2 and heads and k.shape[-3] != heads[-1] and k.shape[-3] != 1:
        k, v = share(k, heads[-1]), share(v, heads[-1])
    gone = silent = quiet = None
    # A score that is no number stays so, whatever the mask.
    if all(wild(t) is None and t.nan is None for t in (q, k)):
        ordinary = all(far(t) is None for t in (q, k))
        gone, silent, quiet = openings(mask, is_causal, length, keys, ordinary, call.dtype)
    reads: list[Read] = []

    def onto(dead: Tensor | None, axes: int) -> Tensor | None:
        """Arrange a (…, L, S) mask as (…, L, 1, S) with further axes behind."""
        return None if dead is None else dead.unsqueeze(-2)[(...,) + (None,) * axes]

    reads.append(Read(q.codes.unsqueeze(-2), 1, None if silent is None else onto(silent.all(-1, keepdim=True), 0)))
    reads.append(Read(k.codes.unsqueeze(-3).unsqueeze(-3), 2, onto(silent, 1)))
    # 0 times what is no number is none.
    idle = None if v.nan is not None or wild(v) is not None else onto(gone, 0)
    reads.append(Read(v.codes.transpose(-1, -2).unsqueeze(-3), 1, idle))
    if mask is not None and not mask.is_constant:
        codes = mask.codes.expand(torch.broadcast_shapes(mask.shape, (length, keys)))
        reads.append(Read(codes.unsqueeze(-2), 1, onto(quiet, 0)))
    return call.nodes(shape, *reads)


# The layers of a model share one mask: what follows from it is worked out once.
@lru_cache(maxsize=4)
def openings(
    mask: Value | None, is_causal: bool, length: int, keys: int, ordinary: bool, dtype: torch.dtype
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Return which values, which scores and which elements of the mask nobody reads.

    All three broadcast to (…, L, S), None standing for nowhere. ``ordinary`` tells whether queries and keys are of
    ordinary size, so that a low number can hide a key.
    """
    if mask is None and not is_causal:
        one = torch.ones(1, 1, dtype=torch.bool) if keys == 1 and ordinary else None
        return None, one, one
    shape = torch.Size((length, keys)) if mask is None else torch.broadcast_shapes(mask.shape, (length, keys))
    low = high = torch.zeros((), dtype=torch.float64).expand(shape)
    nan = torch.zeros((), dtype=torch.bool).expand(shape)
    if mask is not None:
        low, high, nan = together(*(t.expand(shape) for t in (*mask.bounds, mask.doubtful)))
        low, high = (torch.where(t, 0.0, -math.inf) if t.dtype == torch.bool else t.double() for t in (low, high))
    if is_causal:
        later = torch.ones(length, keys, dtype=torch.bool).triu(1)
        low, high = (torch.where(later, -math.inf, t) for t in (low, high))
    spread = ORDINARY if ordinary else torch.finfo(torch.float64).max
    low, high = (torch.where(t.isinf(), t, t + s) for t, s in ((low, -spread), (high, spread)))
    w = weigh(low, high, nan, low.ndim - 1, keys, dtype)
    gone = w.gone & (ordinary | (high == -math.inf))
    sure = (w.single & w.visible & ~w.spoilt) | w.hidden
    # The only score that there is makes no difference; whether it is there does.
    parts = (gone, gone | (w.single & ~w.spoilt), gone | sure)
    found = [p.expand(torch.broadcast_shapes(p.shape, (1, keys))) if bool(p.any()) else None for p in parts]
    return found[0], found[1], found[2]


def share(x: Value, heads: int) -> Value:
    """Give each of ``heads`` query heads its group's keys or values."""
    copies = heads // x.shape[-3]
    codes = x.codes.unsqueeze(-3).expand(*x.shape[:-2], copies, *x.shape[-2:])
    return Value(reshape(codes, (*x.shape[:-3], heads, *x.shape[-2:])), None, x.dtype)
