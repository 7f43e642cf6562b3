"""Ways to pick rows, to work on them and to put them back, from which models are put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from depgraph.tracing.capture import capture
from depgraph.tracing.program import Program
from depgraph.tracing.rows.widening import Widened, widened
from tests.tracing.conftest import evaluate

TOKENS, WIDTH = 6, 4


class Model(nn.Module):
    """A function of tokens, with some weights."""

    def __init__(self, function: Callable[[Model, Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function
        self.one, self.two, self.gate = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 1)
        self.table = nn.Parameter(torch.randn(TOKENS, WIDTH))
        self.router = nn.Linear(WIDTH, 3)
        self.experts = nn.Parameter(torch.randn(3, WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """Call the function."""
        return self.function(self, x)

    def score(self, x: Tensor) -> Tensor:
        """Return one number a token."""
        return self.gate(x)[:, 0]


#: What is done to rows h, of the tokens with the numbers i.
WORK: dict[str, Callable[[Model, Tensor, Tensor], Tensor]] = {
    "linear": lambda m, h, i: m.one(h),
    "relu": lambda m, h, i: h.relu(),
    "gated": lambda m, h, i: torch.mul(*m.one(h).chunk(2, dim=-1)).repeat(1, 2),
    "softmax": lambda m, h, i: h.softmax(-1),
    "norm": lambda m, h, i: F.layer_norm(h, (WIDTH,)),
    "rms": lambda m, h, i: h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6),
    "centred": lambda m, h, i: h - h.mean(1, keepdim=True),
    "positions": lambda m, h, i: h + m.table[i],
    "scaled": lambda m, h, i: h * m.table[i, 0][:, None],
    "heads": lambda m, h, i: h.view(-1, 2, 2).transpose(1, 2).reshape(-1, WIDTH),
    "cut": lambda m, h, i: torch.cat([h[:, 1:], h[:, :1]], -1),
    "most": lambda m, h, i: h - h.max(-1, keepdim=True).values,
    "where": lambda m, h, i: torch.where(h > 0, h, m.two(h)),
    "logarithm": lambda m, h, i: (h * h).log1p().sqrt(),
    "double": lambda m, h, i: h.double().float(),
    "stacked": lambda m, h, i: torch.stack([h, -h], 1).amax(1),
    "turned": lambda m, h, i: h.flip(-1),
    "bias": lambda m, h, i: torch.addmm(m.one.bias, h, m.one.weight.t()),
}

Work = Callable[[Model, Tensor, Tensor], Tensor]


def _added(m: Model, x: Tensor, work: Work) -> Tensor:
    i = torch.where(m.score(x) > 0)[0]
    return torch.zeros_like(x).index_add_(0, i, work(m, x[i], i))


def _nonzero(m: Model, x: Tensor, work: Work) -> Tensor:
    i = (m.score(x) > 0).nonzero().squeeze(1)
    return x.index_add(0, i, work(m, x.index_select(0, i), i), alpha=-2)


def _mask(m: Model, x: Tensor, work: Work) -> Tensor:
    mask = m.score(x) > 0
    y = x.clone()
    y[mask] = work(m, x[mask], torch.where(mask)[0])
    return y


def _over(m: Model, x: Tensor, work: Work) -> Tensor:
    (i,) = torch.where(m.score(x) > 0)
    y = 2 * x
    y[i] = work(m, x[i], i)
    return y


def _accumulated(m: Model, x: Tensor, work: Work) -> Tensor:
    (i,) = torch.where(m.score(x) > 0)
    return x.index_put((i,), work(m, x[i], i), accumulate=True)


def _copied(m: Model, x: Tensor, work: Work) -> Tensor:
    (i,) = torch.where(m.score(x) > 0)
    return x.index_copy(0, i, work(m, x[i], i))


def _scattered(m: Model, x: Tensor, work: Work) -> Tensor:
    (i,) = torch.where(m.score(x) > 0)
    return x.scatter_add(0, i[:, None].expand(-1, WIDTH), work(m, x[i], i))


def _loop(m: Model, x: Tensor, work: Work) -> Tensor:
    chosen = m.router(x).argmax(-1)
    y = torch.zeros_like(x)
    for e in range(3):
        i = torch.where(chosen == e)[0]
        y = y.index_add(0, i, work(m, x[i] @ m.experts[e], i))
    return y


def _two(m: Model, x: Tensor, work: Work) -> Tensor:
    weights, chosen = m.router(x).softmax(-1).topk(2)
    y = torch.zeros_like(x)
    mask = F.one_hot(chosen, 3).permute(2, 1, 0)
    for e in range(3):
        k, i = torch.where(mask[e])
        y.index_add_(0, i, work(m, x[i] @ m.experts[e], i) * weights[i, k, None])
    return y


def _hit(m: Model, x: Tensor, work: Work) -> Tensor:
    weights, chosen = m.router(x).softmax(-1).topk(2)
    y = torch.zeros_like(x)
    mask = F.one_hot(chosen, 3).permute(2, 1, 0)
    for e in mask.sum((-1, -2)).gt(0).nonzero():
        k, i = torch.where(mask[e[0]])
        y.index_add_(0, i, work(m, x[i] @ m.experts[e[0]], i) * weights[i, k, None])
    return y


def _sorted(m: Model, x: Tensor, work: Work) -> Tensor:
    order = m.score(x).argsort()
    return work(m, x[order], order)[order.argsort()]


def _filled(m: Model, x: Tensor, work: Work) -> Tensor:
    values, order = m.score(x).sort(descending=True)
    inverse = torch.empty_like(order)
    inverse[order] = torch.arange(TOKENS)
    return (work(m, x[order], order) * values[:, None])[inverse]


def _sorted_back(m: Model, x: Tensor, work: Work) -> Tensor:
    order = m.score(x).argsort()
    y = torch.empty_like(x)
    y[order] = work(m, x[order], order)
    return y


def _batched(m: Model, x: Tensor, work: Work) -> Tensor:
    chosen = m.router(x).argmax(-1)
    (i,) = torch.where(m.score(x) > 0)
    return x.index_add(0, i, work(m, torch.bmm(x[i].unsqueeze(1), m.experts[chosen[i]]).squeeze(1), i))


def _grouped(m: Model, x: Tensor, work: Work) -> Tensor:
    chosen, order = m.router(x).argmax(-1).sort()
    ends = torch.histc(chosen.float(), 3, min=0, max=2).cumsum(0, dtype=torch.int32)
    h = F.grouped_mm(x[order], m.experts, offs=ends)
    return work(m, h, order)[order.argsort()]


#: How rows are picked and put back.
FORMS: dict[str, Callable[[Model, Tensor, Work], Tensor]] = {
    name.removeprefix("_"): function
    for name, function in list(globals().items())
    if getattr(function, "__annotations__", {}).get("work") == "Work"
}


def model(form: str, work: Sequence[str]) -> Model:
    """Return a model that picks rows in one of the forms, and does some things to them."""

    def all_work(m: Model, h: Tensor, i: Tensor) -> Tensor:
        for name in work:
            h = WORK[name](m, h, i)
        return h

    return Model(lambda m, x: FORMS[form](m, x, all_work)).eval()


def example(model: Model) -> Tensor:
    """Return tokens of which some are picked, and some are not."""
    with torch.no_grad():
        while not 1 < (model.score(x := torch.randn(TOKENS, WIDTH)) > 0).sum() < TOKENS:
            pass
    return x


def rewritten(model: nn.Module, x: Tensor) -> tuple[Program, Widened]:
    """Return a model as it is recorded, and as it is followed."""
    program = capture(model, (x,))
    return program, widened(program.graph, program.results, program.told)


def compute(program: Program, followed: Widened, x: Tensor) -> Tensor:
    """Return what a rewritten graph computes."""
    (result,), _ = evaluate(
        replace(program, graph=followed.graph, results=followed.results), {program.inputs[0].name: x}
    )
    return result
