"""A mixture of experts, written out in each form: a token is made of itself alone."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import depgraph

TOKENS, WIDTH, EXPERTS = 7, 4, 3


class Mixture(nn.Module):
    def __init__(self, form):
        super().__init__()
        self.form = form
        self.router = nn.Linear(WIDTH, EXPERTS)
        self.up = nn.Parameter(torch.randn(EXPERTS, 2 * WIDTH, WIDTH))
        self.down = nn.Parameter(torch.randn(EXPERTS, WIDTH, WIDTH))

    def forward(self, x):
        shape = x.shape
        x = x.reshape(-1, WIDTH)
        weights, chosen = self.router(x).softmax(-1).topk(2)
        weights = weights / weights.sum(-1, keepdim=True)
        return self.form(self, x, weights, chosen).reshape(shape)

    def expert(self, e, x):
        gate, up = F.linear(x, self.up[e]).chunk(2, dim=-1)
        return F.linear(F.silu(gate) * up, self.down[e])


def looped(self, x, weights, chosen):
    y = torch.zeros_like(x)
    for e in range(EXPERTS):
        i, k = torch.where(chosen == e)
        y.index_add_(0, i, self.expert(e, x[i]) * weights[i, k, None])
    return y


def over_those_hit(self, x, weights, chosen):
    y = torch.zeros_like(x)
    mask = F.one_hot(chosen, EXPERTS + 1).permute(2, 1, 0)
    for (e,) in mask.sum((-1, -2)).greater(0).nonzero():
        if e == EXPERTS:
            continue
        k, i = torch.where(mask[e])
        y.index_add_(0, i, self.expert(e, x[i]) * weights[i, k, None])
    return y


def over_those_that_any_is_sent_to(self, x, weights, chosen):
    y = torch.zeros_like(x)
    mask = torch.stack([(chosen == e).any(-1) for e in range(EXPERTS)])
    for row in mask.any(-1).nonzero():
        i = mask[row[0]].nonzero().flatten()
        y = y.index_add(0, i, self.expert(row[0], x[i]))
    return y


def masked(self, x, weights, chosen):
    y = torch.zeros_like(x)
    for e in range(EXPERTS):
        mask = (chosen == e).any(-1)
        weight = torch.where(chosen == e, weights, 0).sum(-1, keepdim=True)
        part = torch.zeros_like(x)
        part[mask] = self.expert(e, x[mask]) * weight[mask]
        y = y + part
    return y


def accumulated(self, x, weights, chosen):
    y = torch.zeros_like(x)
    for e in range(EXPERTS):
        i, k = (chosen == e).nonzero().unbind(-1)
        y = y.index_put((i,), self.expert(e, x[i]) * weights[i, k].unsqueeze(-1), accumulate=True)
    return y


def scattered(self, x, weights, chosen):
    y = torch.zeros_like(x)
    for e in range(EXPERTS):
        i = torch.where((chosen == e).any(-1))[0]
        y = y.scatter_add(0, i.unsqueeze(-1).expand(-1, WIDTH), self.expert(e, x[i]))
    return y


def _sorted(self, x, weights, chosen, product):
    key, order = chosen.reshape(-1).sort()
    ends = torch.histc(key.float(), EXPERTS, min=0, max=EXPERTS - 1).cumsum(0, dtype=torch.int32)
    gate, up = product(x[order // 2], self.up.transpose(-2, -1), ends, key).chunk(2, dim=-1)
    h = product(F.silu(gate) * up, self.down.transpose(-2, -1), ends, key) * weights.reshape(-1)[order, None]
    return order, h


def _grouped(x, weights, ends, key):
    return F.grouped_mm(x, weights, offs=ends)


def _batched(x, weights, ends, key):
    return torch.bmm(x.unsqueeze(1), weights[key]).squeeze(1)


def grouped(self, x, weights, chosen):
    order, h = _sorted(self, x, weights, chosen, _grouped)
    inverse = torch.empty_like(order)
    inverse[order] = torch.arange(order.size(0))
    return h[inverse].view(-1, 2, WIDTH).sum(1)


def grouped_and_sorted_back(self, x, weights, chosen):
    order, h = _sorted(self, x, weights, chosen, _grouped)
    return h[order.argsort()].view(-1, 2, WIDTH).sum(1)


def grouped_and_added(self, x, weights, chosen):
    order, h = _sorted(self, x, weights, chosen, _grouped)
    return torch.zeros_like(x).index_add(0, order // 2, h)


def sorted_and_batched(self, x, weights, chosen):
    order, h = _sorted(self, x, weights, chosen, _batched)
    y = torch.empty_like(h)
    y[order] = h
    return y.view(-1, 2, WIDTH).sum(1)


def batched(self, x, weights, chosen):
    h = x.repeat_interleave(2, dim=0)
    h = _batched(h, self.up.transpose(-2, -1), None, chosen.reshape(-1))
    gate, up = h.chunk(2, dim=-1)
    h = _batched(F.silu(gate) * up, self.down.transpose(-2, -1), None, chosen.reshape(-1))
    return (h * weights.reshape(-1, 1)).view(-1, 2, WIDTH).sum(1)


FORMS = [
    looped, over_those_hit, over_those_that_any_is_sent_to, masked, accumulated, scattered, grouped,
    grouped_and_sorted_back, grouped_and_added, sorted_and_batched, batched,
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(3))
def test_a_token_reads_itself(form, seed):
    torch.manual_seed(seed)
    model, x = Mixture(form).eval(), torch.randn(1, TOKENS, WIDTH)
    graph = depgraph.trace(model, (x,), positions={0: 1, "output": 1})
    assert np.array_equal(depgraph.path_lengths(graph) >= 0, np.eye(TOKENS, dtype=bool))


@pytest.mark.parametrize("form", [looped, over_those_hit, grouped])
def test_layer_after_layer(form):
    torch.manual_seed(0)
    model = nn.Sequential(*(Mixture(form) for _ in range(5))).eval()
    graph = depgraph.trace(model, (torch.randn(2, TOKENS, WIDTH),), positions={0: (0, 1), "output": (0, 1)})
    assert np.array_equal(depgraph.path_lengths(graph) >= 0, np.eye(2 * TOKENS, dtype=bool))


def test_an_expert_that_no_token_of_the_example_is_sent_to_is_followed_too():
    torch.manual_seed(0)
    model = Mixture(over_those_hit).eval()
    with torch.no_grad():
        model.router.bias[:] = torch.tensor([0.0, 0.0, -100.0])
    graph = depgraph.trace(model, (torch.randn(1, TOKENS, WIDTH),), positions={0: 1, "output": 1})
    assert sum(operation.name == "silu" for operation in graph.operations) == EXPERTS
    assert graph.costs("flops").sum() == 2 * TOKENS * (EXPERTS * WIDTH + 2 * 3 * WIDTH * WIDTH)
