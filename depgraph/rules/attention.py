"""Fused attention: one node a query position.

Reads: out[…, l, e] ← q[…, l, :], and k[…, s, :], v[…, s, e] and bias[…, l, s] for every key s that l may attend to.
With one key left the weight is the constant 1: the value alone is read. With none left nothing is.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from depgraph.rules.call import Call, Read
from depgraph.rules.masking import alone, far, masked_out, of_any_size
from depgraph.rules.registry import rule
from depgraph.rules.values import KNOWN, Value, core, forget, reshape, together


@rule("scaled_dot_product_attention", contraction=True, sized=True)
def attention(
    call: Call, q: Value, k: Value, v: Value, attn_mask: Value | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> Value:  # fmt: skip
    """Attention with a mask, causal (aligned top-left) or not, and query heads that share keys."""
    # A mean of values: of ordinary size where they are.
    result = call.result(attend(call, q, k, v, attn_mask, is_causal, call.shape))
    return result if far(v) is None else of_any_size(result)


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
    blocked, single, silent = openings(mask, is_causal, length, keys)
    reads: list[Read] = []

    def onto(dead: Tensor | None, axes: int) -> Tensor | None:
        """Arrange a (…, L, S) mask as (…, L, 1, S) with further axes behind."""
        return None if dead is None else dead.unsqueeze(-2)[(...,) + (None,) * axes]

    alone_dead = None if single is None else single.expand(*single.shape[:-2], length, 1)
    reads.append(Read(q.codes.unsqueeze(-2), 1, None if alone_dead is None else alone_dead.unsqueeze(-1)))
    reads.append(Read(k.codes.unsqueeze(-3).unsqueeze(-3), 2, onto(silent, 1)))
    reads.append(Read(v.codes.transpose(-1, -2).unsqueeze(-3), 1, onto(blocked, 0)))
    if mask is not None and not mask.is_constant:
        codes = mask.codes.expand(torch.broadcast_shapes(mask.shape, (length, keys)))
        reads.append(Read(codes.unsqueeze(-2), 1, onto(None if mask.dtype == torch.bool else silent, 0)))
    return call.nodes(shape, *reads)


# The layers of a model share one mask: what follows from it is worked out once.
@lru_cache(maxsize=4)
def openings(
    mask: Value | None, is_causal: bool, length: int, keys: int
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Return which keys no query may attend to, which queries have one key left, and which scores nobody reads.

    All three broadcast to (…, L, S), None standing for nowhere.
    """
    blocked = None if mask is None else hidden_by(mask, length, keys)
    if is_causal:
        later = torch.ones(length, keys, dtype=torch.bool).triu(1)
        blocked = later if blocked is None else (blocked | later)
    single = alone(blocked, torch.Size((1, keys)) if blocked is None else blocked.shape, -1)
    return blocked, single, blocked if single is None else (single if blocked is None else single | blocked)


def hidden_by(mask: Value, length: int, keys: int) -> Tensor | None:
    """Return which keys a mask is known to hide from each query, (…, L, S); None where it hides none."""
    shape = torch.broadcast_shapes(mask.shape, (length, keys))
    if mask.dtype == torch.bool:
        codes, values = together(mask.codes, mask.values())
        hidden = ((codes == KNOWN) & (values == 0)).expand(shape)
        return hidden if bool(core(hidden).any()) else None
    known = None if mask.known is None else mask.known.expand(shape)
    return masked_out(mask.over(mask.codes.expand(shape), known), len(shape) - 1)


def share(x: Value, heads: int) -> Value:
    """Give each of ``heads`` query heads its group's keys or values."""
    copies = heads // x.shape[-3]
    codes = x.codes.unsqueeze(-3).expand(*x.shape[:-2], copies, *x.shape[-2:])
    return x.over(reshape(codes, (*x.shape[:-3], heads, *x.shape[-2:])))
