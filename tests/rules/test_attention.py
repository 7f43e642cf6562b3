"""Fused attention reads the query, the keys and values it is allowed to, and its bias."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import depgraph
from tests.jacobian import Apply, check

R = torch.randn
INF = float("inf")
sdpa = F.scaled_dot_product_attention


def qkv(length=3, keys=4, heads=(), d=2):
    return R(*heads, length, d), R(*heads, keys, d), R(*heads, keys, d)


def test_full():
    # Queries and keys are read by all their features, a value feature by itself.
    check(lambda q, k, v: sdpa(q, k, v), *qkv())
    check(lambda q, k, v: sdpa(q, k, v, scale=0.3), *qkv(2, 2, (2, 2)), draws=3)


MASKS = {
    "all": torch.ones(3, 4).bool(),
    "some": torch.tensor([[1, 1, 0, 0], [1, 0, 1, 1], [0, 1, 1, 0]]).bool(),
    "one": torch.eye(4)[:3].bool(),
    "one row": torch.tensor([[1, 0, 1, 0]]).bool(),
}


def masked(form, keep, q, k, v):
    if form == "bool":
        return sdpa(q, k, v, attn_mask=keep)
    if form == "by hand":
        return (q @ k.mT / 2**0.5).masked_fill(~keep, -INF).softmax(-1) @ v
    return sdpa(q, k, v, attn_mask=torch.where(keep, 0.0, -INF if form == "float" else -1e9).double())


def test_known_masks():
    forms = [(form, name) for form in ("bool", "float", "low", "by hand") for name in MASKS]
    check(
        lambda q, k, v: {f"{form}, {name}": masked(form, MASKS[name], q, k, v) for form, name in forms}, *qkv(), draws=4
    )


def test_causal():
    # Aligned at the first query and the first key, whatever their numbers.
    check(
        lambda q, k, v: {
            "square": sdpa(q, k[:3], v[:3], is_causal=True),
            "more keys": sdpa(q[:2], k, v, is_causal=True),
            "fewer keys": sdpa(q, k[:2], v[:2], is_causal=True),
        },
        *qkv(),
    )


def test_masks_a_head():
    keep = torch.stack([torch.ones(3, 3).tril(), torch.ones(3, 3).triu()]).bool()
    check(lambda q, k, v: sdpa(q, k, v, attn_mask=keep), *qkv(3, 3, (2,)))


def test_a_bias_is_read():
    check(lambda q, k, v, b: {"whole": sdpa(q, k, v, attn_mask=b), "a row": sdpa(q, k, v, b[:1])}, *qkv(), R(3, 4))
    keep = MASKS["some"]
    check(
        lambda q, k, v, b: {"masked": sdpa(q, k, v, b.masked_fill(~keep, -INF)), "only": sdpa(q, k, v, b + LOW)},
        *qkv(),
        R(3, 4),
    )


LOW = torch.where(MASKS["one"], 0.0, -INF).double()


def test_an_unknown_mask_is_read():
    check(
        lambda q, k, v, m: sdpa(q, k, v, attn_mask=m),
        *qkv(2, 2),
        torch.tensor([[True, False], [True, True]]),
        draws=40,
        exact=False,  # which draws leave a query with nothing, and so with no number at all
    )


def test_one_key():
    check(lambda q, k, v: sdpa(q, k, v), *qkv(2, 1))


def test_grouped_queries():
    check(
        lambda q, k, v: {
            "fused": sdpa(q, k, v, enable_gqa=True),
            "by hand": sdpa(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)),
        },
        *(R(1, 4, 2, 2), R(1, 2, 2, 2), R(1, 2, 2, 2)),
        draws=3,
    )


@pytest.mark.parametrize("need_weights", [False, True])
def test_the_module(need_weights):
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

        def forward(self, x, memory):
            return self.attention(x, memory, memory, need_weights=need_weights)[0]

    check(Attention().eval(), R(2, 3, 4), R(2, 4, 4), axes={0: (0, 1), 1: (0, 1)}, out_axes={"0": (0, 1)}, draws=2)


def test_its_masks():
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
            self.register_buffer("padding", torch.tensor([[False, False, True]]))
            self.register_buffer("later", torch.ones(3, 3).triu(1).bool())

        def forward(self, x):
            return self.attention(x, x, x, key_padding_mask=self.padding, attn_mask=self.later, need_weights=False)[0]

    check(Attention().eval(), R(1, 3, 4), axes={0: (1,)}, out_axes={"0": (1,)})


def test_one_node_a_query():
    graph = depgraph.trace(Apply(sdpa), tuple(x[None] for x in qkv(5, 7)), positions={0: 1, 1: 1, 2: 1})
    assert depgraph.parallelism(graph).work == 5
    assert depgraph.critical_path(graph, weight="contractions").length == 1
