"""Flex attention: attention whose mask and scores are functions of the indices.

Reads: as fused attention. Both functions are followed at every (batch, head, query, key) at once; a key that the mask,
or a score of -inf, hides is not read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, fx
from torch.fx.experimental.proxy_tensor import make_fx

from depgraph.rules.attention import attend
from depgraph.rules.elementwise import choose
from depgraph.rules.values import Value, forget, generic, known
from depgraph.tracing.private import FakeTensorMode

if TYPE_CHECKING:
    from depgraph.unrolling.higher_order import HigherOrder


def flex_attention(
    operator: HigherOrder, q: Value, k: Value, v: Value, score_mod: fx.GraphModule, block_mask: Any, scale: Any = None,
    options: Any = None, score_buffers: Any = (), mask_buffers: Any = (),
) -> tuple[Any, ...]:  # fmt: skip
    """Follow one call of flex attention."""
    operator.label = replace(operator.label, contraction=True)
    sizes = (*q.shape[:2], q.shape[2], k.shape[2])
    grid = [
        known(torch.arange(n).reshape([-1 if a == b else 1 for b in range(4)]).expand(sizes))
        for a, n in enumerate(sizes)
    ]
    scores: Value = everywhere(operator, score_mod, [generic(sizes, q.dtype), *grid], score_buffers)
    allowed: Value = everywhere(operator, block_mask[-1], grid, mask_buffers)
    minus_infinity = known(torch.tensor(float("-inf"), dtype=q.dtype))
    meta = torch.empty(sizes, dtype=q.dtype, device="meta")
    call = operator.call(torch.ops.aten.where.self, (allowed, scores, minus_infinity), meta)
    mask = choose(call, allowed, scores, minus_infinity)
    call = operator.call(torch.ops.aten.scaled_dot_product_attention.default, (q, k, v, mask), operator.meta)
    codes = forget(attend(call, q, k, v, mask, False, operator.meta[0].shape))
    rest = (
        Value(codes[..., 0].expand(m.shape), None, m.dtype) if isinstance(m, Tensor) and m.numel() else m
        for m in operator.meta[1:]
    )
    return (Value(codes, None, q.dtype), *rest)


def everywhere(operator: HigherOrder, function: fx.GraphModule, points: list[Value], buffers: Any) -> Value:
    """Follow a function of numbers at every point of a four-dimensional grid."""
    shared = [b for b in buffers if isinstance(b, Value)]
    batched: Any = function
    for _ in range(4):
        batched = torch.vmap(batched, in_dims=(0,) * len(points) + (None,) * len(shared))
    with FakeTensorMode():
        inputs = [torch.empty(value.shape, dtype=value.dtype) for value in (*points, *shared)]
    result: Value = operator.run(make_fx(batched, tracing_mode="fake")(*inputs), [*points, *shared])[0]
    return result
