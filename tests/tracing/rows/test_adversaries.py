"""Functions that look like work done row by row, and let something else through: no dependence may be missed.

The truth is measured: one token is changed, and whatever changes then reads it.
"""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import depgraph
from tests.tracing.rows.idioms import TOKENS, WIDTH, Model, example

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def picked(m, x):
    return torch.where(m.score(x) > 0)[0]


def added(x, i, h):
    return torch.zeros_like(x).index_add(0, i, h)


def counted(count):
    """Divide rows by a number of theirs, found out in some way."""

    def run(m, x):
        i = picked(m, x)
        h = m.one(x[i])
        return added(x, i, h / count(i, h))

    return run


for name, way in {
    "len": lambda i, h: len(i),
    "len_of_rows": lambda i, h: len(h),
    "shape": lambda i, h: h.shape[0],
    "shape_turned": lambda i, h: h.T.relu().shape[-1],
    "size": lambda i, h: h.size(0),
    "size_of_all": lambda i, h: h.size()[0],
    "numel": lambda i, h: h.numel(),
    "stride": lambda i, h: h.T.contiguous().stride(0),
    "nbytes": lambda i, h: h.nbytes,
    "iterating": lambda i, h: len([row for row in h]),  # noqa: C416
    "unbound": lambda i, h: len(h.unbind()),
    "split": lambda i, h: len(h.split(1)),
    "split_function": lambda i, h: len(torch.split(i, 1)),
    "list": lambda i, h: len(i.tolist()),
    "array": lambda i, h: len(i.numpy()),
    "array_shape": lambda i, h: h.detach().numpy().shape[0],
    "not_on_the_list": lambda i, h: len(h.flip(0)),
    "not_read_otherwise": lambda i, h: len(i.clone()),
    "joined": lambda i, h: len(torch.cat([h, h])),
    "of_a_matrix": lambda i, h: (h @ h.T).shape[1],
    "function": lambda i, h: torch.numel(i),
    "through_zeros": lambda i, h: torch.ones_like(i).float().sum(),
}.items():
    CASES[f"count_by_{name}"] = counted(way)


@case
def count_of_another_mask(m, x):
    n = len(x[m.score(x) > 0.1])
    i = picked(m, x)
    return added(x, i, m.one(x[i]) / (n + 1))


@case
def count_of_the_mask(m, x):
    mask = m.score(x) > 0
    y = x.clone()
    y[mask] = m.one(x[mask]) / mask.sum()
    return y


@case
def rank(m, x):
    i = picked(m, x)
    return added(x, i, m.one(x[i]) * torch.arange(1.0, len(i) + 1, dtype=x.dtype)[:, None])


@case
def rank_by_adding_up(m, x):
    i = picked(m, x)
    return added(x, i, m.one(x[i]) * torch.ones_like(i).cumsum(0)[:, None])


@case
def rank_of_the_mask(m, x):
    mask = m.score(x) > 0
    i = torch.where(mask)[0]
    return added(x, i, m.one(x[i]) * mask.cumsum(0)[i][:, None])


@case
def rank_in_a_table(m, x):
    i = picked(m, x)
    return added(x, i, m.one(x[i]) * m.table[: len(i)])


@case
def adding_up(m, x):
    i = picked(m, x)
    return added(x, i, m.one(x[i]).cumsum(0))


@case
def softmax_over_rows(m, x):
    i = picked(m, x)
    return added(x, i, m.one(x[i]).softmax(0))


@case
def mean_over_rows(m, x):
    i = picked(m, x)
    return added(x, i, x[i] - x[i].mean(0, keepdim=True))


@case
def batch_norm_over_rows(m, x):
    i = picked(m, torch.cat([x, x]))
    return added(x, i % TOKENS, F.batch_norm(x[i % TOKENS], None, None, training=True))


@case
def attention_among_rows(m, x):
    i = picked(m, x)
    return added(x, i, (x[i] @ x[i].T).softmax(-1) @ x[i])


@case
def turned_round(m, x):
    i = picked(m, x)
    return added(x, i, m.one(x[i]).flip(0))


@case
def rolled(m, x):
    i = picked(m, x)
    return added(x, i, x[i].roll(1, 0))


@case
def last_row(m, x):
    i = picked(m, torch.cat([x, x.abs() + m.gate.weight.sign()]))
    return added(x, i % TOKENS, x[i % TOKENS] + x[i % TOKENS][-1])


@case
def rows_sorted(m, x):
    i = picked(m, x)
    return added(x, i, x[i].sort(0).values)


@case
def rows_reshaped(m, x):
    i = picked(m, x)
    return added(x, i, x[i].T.reshape(-1, WIDTH))


@case
def rows_multiplied_with_themselves(m, x):
    i = picked(m, x)
    return added(x, i, m.one(x[i]) @ (x[i].T @ x[i]))


@case
def several_to_one(m, x):
    i = picked(m, x)
    y = x.clone()
    y[i // 2] = m.one(x[i])
    return y


@case
def several_copied_to_one(m, x):
    i = picked(m, x)
    return x.index_copy(0, i // 3, m.one(x[i]))


@case
def several_scattered_to_one(m, x):
    i = picked(m, x)
    return x.scatter(0, (i // 2)[:, None].expand(-1, WIDTH), m.one(x[i]))


@case
def neighbours(m, x):
    i = picked(m, x)
    return added(x, (i + 1) % TOKENS, m.one(x[i]))


@case
def two_masks(m, x):
    mask = m.score(x) > 0
    i, j = torch.where(mask)[0], torch.where(mask.flip(0))[0]
    return added(x, i, m.one(x[i]) + x[j])


@case
def put_back_by_another_mask(m, x):
    mask = m.score(x) > 0
    i, j = torch.where(mask)[0], torch.where(~mask.flip(0).logical_not())[0]
    return added(x, j, m.one(x[i]))


@case
def mask_put_back_by_another(m, x):
    mask = m.score(x) > 0
    y = x.clone()
    y[mask.flip(0)] = x[mask]
    return y


@case
def picked_twice(m, x):
    i = picked(m, x)
    h = x[i]
    j = torch.where(h[:, 0] > 0)[0]
    return added(x, i, h.index_add(0, j, m.one(h[j])))


@case
def capacity_that_is_not_reached(m, x):
    """Of the first five of three rows nothing is seen."""
    i = picked(m, x)[: TOKENS - 1]
    return added(x, i, m.one(x[i]))


@case
def capacity_of_each_expert(m, x):
    chosen, y = m.router(x).argmax(-1), torch.zeros_like(x)
    for e in range(3):
        i = torch.where(chosen == e)[0][:4]
        y = y.index_add(0, i, x[i] @ m.experts[e])
    return y


@case
def the_last_rows(m, x):
    i = picked(m, x)
    h = m.one(x[i])[-5:]
    return added(x, i[-5:], h)


@case
def count_by_known_numbers(m, x):
    i = picked(m, x)
    h = m.one(x[i])
    return added(x, i, h / (h * 0 + 1).sum())


@case
def count_by_an_order(m, x):
    i = picked(m, x)
    h = m.one(x[i])
    order = h[:, 0].argsort()
    return added(x, i, h / (F.pad(order, (0, 1)).max() + 1))


@case
def count_by_an_order_put_back(m, x):
    i = picked(m, x)
    h = m.one(x[i])
    order = h[:, 0].argsort()
    return added(x, i, h / (F.pad((order * 2)[order.argsort()], (0, 1)).max() + 1))


@case
def count_of_the_others(m, x):
    i, j = picked(m, x), torch.where(m.score(x) <= 0)[0]
    return added(x, i, m.one(x[i]) / torch.ones_like(j).sum().add(1))


@case
def empty_or_not(m, x):
    i = picked(m, x)
    return added(x, i, m.one(x[i])) + (1 if len(i) > 2 else 0)


def of_two(shaped):
    """Bring rows into a shape that is theirs where there are two: the example has two."""

    def run(m, x):
        i = torch.where(m.score(x) > m.score(x).topk(3).values[-1])[0]
        return added(x, i, shaped(m.one(x[i])))

    return run


for name, way in {
    "viewed": lambda h: h.view(2, -1).relu().view(-1, WIDTH),
    "parted": lambda h: (h.unflatten(0, (2, -1)).cumsum(1)).flatten(0, 1),
    "reshaped": lambda h: h.reshape(2, -1).softmax(-1).reshape(-1, WIDTH),
    "joined": lambda h: h.reshape(1, -1).softmax(-1).reshape(-1, WIDTH),
    "turned": lambda h: h.T.reshape(-1, 2).softmax(-1).reshape(WIDTH, -1).T,
}.items():
    CASES[f"two_rows_{name}"] = of_two(way)


@case
def index_beyond(m, x):
    """The neighbour of the last token does not exist; it is never picked."""
    mask = m.score(x) > 0
    i = torch.where(mask & (torch.arange(TOKENS) < TOKENS - 1))[0]
    return added(x, i + 1, m.one(x[i]) + x[i + 1])


@case
def capacity(m, x):
    i = picked(m, x)[:2]
    return added(x, i, m.one(x[i]))


@case
def sum_of_rows(m, x):
    i = picked(m, x)
    return x + m.one(x[i]).sum(0)


@case
def two_coordinates(m, x):
    k, i = torch.where((m.router(x) > 0).T)
    y = torch.zeros_like(x)
    y[i] = m.one(x[i]) * k[:, None]
    return y


@case
def sorted_and_left(m, x):
    return m.one(x[m.score(x).argsort()])


@case
def sorted_twice(m, x):
    order = m.score(x).argsort()
    return m.one(x[order])[order]


@case
def sorted_back_by_another_key(m, x):
    return m.one(x[m.score(x).argsort()])[x[:, 0].argsort().argsort()]


@case
def sorted_back_downwards(m, x):
    order = m.score(x).argsort()
    return m.one(x[order])[order.argsort(descending=True)]


@case
def sorted_back_reversed(m, x):
    order = m.score(x).argsort()
    inverse = torch.empty_like(order)
    inverse[order] = torch.arange(TOKENS).flip(0)
    return m.one(x[order])[inverse]


@case
def sorted_back_shifted(m, x):
    order = m.score(x).argsort()
    inverse = torch.empty_like(order)
    inverse[order] = torch.arange(1, TOKENS + 1) % TOKENS
    return m.one(x[order])[inverse]


@case
def sorted_with_ranks(m, x):
    order = m.score(x).argsort()
    h = m.one(x[order]) * torch.arange(1.0, TOKENS + 1, dtype=x.dtype)[:, None]
    return h[order.argsort()]


@case
def sorted_and_added_up(m, x):
    order = m.score(x).argsort()
    return x[order].cumsum(0)[order.argsort()]


@case
def ranks_themselves(m, x):
    return x * m.score(x).argsort().argsort()[:, None]


@case
def slices_of_an_order(m, x):
    order = m.score(x).argsort()
    y = torch.zeros_like(x).index_add(0, order[:3], m.one(x[order[:3]]))
    return y.index_add(0, order[3:], x[order[3:]])


@case
def grouped_by_another_key(m, x):
    _, order = m.router(x).argmax(-1).sort()
    ends = torch.histc(m.router(x).argmin(-1).to(x.dtype), 3, min=0, max=2).cumsum(0, dtype=torch.int32)
    return F.grouped_mm(x[order].float(), m.experts.float(), offs=ends).to(x.dtype)[order.argsort()]


@case
def grouped_downwards(m, x):
    chosen, order = m.router(x).argmax(-1).sort(descending=True)
    ends = torch.histc(chosen.to(x.dtype), 3, min=0, max=2).cumsum(0, dtype=torch.int32)
    return F.grouped_mm(x[order].float(), m.experts.float(), offs=ends).to(x.dtype)[order.argsort()]


@case
def wrong_ends(m, x):
    chosen, order = m.router(x).argmax(-1).sort()
    ends = torch.histc(chosen.to(x.dtype), 3, min=0, max=2).flip(0).cumsum(0, dtype=torch.int32)
    return F.grouped_mm(x[order].float(), m.experts.float(), offs=ends).to(x.dtype)[order.argsort()]


def looped(step, start=lambda y: y):
    """Go through the experts that are hit."""

    def run(m, x):
        mask = F.one_hot(m.router(x).topk(2).indices, 3).permute(2, 1, 0)
        y = start(torch.zeros_like(x))
        for n, e in enumerate(mask.sum((-1, -2)).gt(0).nonzero()):
            _, i = torch.where(mask[e[0]])
            y = step(m, x, y, n, e[0], i)
        return y

    return run


for name, step in {
    "numbered": lambda m, x, y, n, e, i: y.index_add(0, i, x[i] * (n + 1)),
    "decaying": lambda m, x, y, n, e, i: 0.5 * y.index_add(0, i, x[i]),
    "with_its_index": lambda m, x, y, n, e, i: y.index_add(0, i, x[i]) + e,
    "with_the_mean": lambda m, x, y, n, e, i: y.index_add(0, i, x[i] - x[i].mean(0, keepdim=True)),
    "read_on_the_way": lambda m, x, y, n, e, i: y.index_add(0, i, x[i] + y[i].mean()),
    "first_only": lambda m, x, y, n, e, i: y.index_add(0, i, x[i]) if n == 0 else y,
    "over_each_other": lambda m, x, y, n, e, i: y.index_copy(0, i, x[i] + y[i]),
    "kept": lambda m, x, y, n, e, i: torch.where(y != 0, y, y.index_add(0, i, x[i])),
}.items():
    CASES[f"loop_{name}"] = looped(step)


def counting(used):
    """Go through the experts that are hit, count them in Python, and make something of that."""

    def run(m, x):
        mask = F.one_hot(m.router(x).topk(1).indices, 3).permute(2, 1, 0)
        y, n = torch.zeros_like(x), 0
        for e in mask.sum((-1, -2)).gt(0).nonzero():
            _, i = torch.where(mask[e[0]])
            y, n = y.index_add(0, i, m.one(x[i])), n + 1
        return used(m, y, n)

    return run


for name, way in {
    "divisor": lambda m, y, n: y / n,
    "one_more": lambda m, y, n: y / (n + 1),
    "root": lambda m, y, n: y * n**-0.5,
    "row": lambda m, y, n: y + m.table[n],
    "branch": lambda m, y, n: y * 2 if n > 2 else y,
    "tensor": lambda m, y, n: y / torch.tensor(n),
    "filled": lambda m, y, n: y / torch.full((1,), n, dtype=y.dtype),
    "array": lambda m, y, n: y / torch.from_numpy(np.array([float(n)])).to(y.dtype),
    "power": lambda m, y, n: y.pow(n),
    "expert": lambda m, y, n: y @ m.experts[n - 1],
    "layers": lambda m, y, n: m.one(y) if n % 2 else m.two(y),
    "text": lambda m, y, n: y * float(f"{n}.5"),
}.items():
    CASES[f"loop_counted_as_{name}"] = counting(way)


@case
def loop_over_others(m, x):
    """What is true of the second mask says nothing of the first."""
    mask = F.one_hot(m.router(x).topk(1).indices, 3).permute(2, 1, 0)
    other = F.one_hot(m.router(x.flip(0)).topk(1).indices, 3).permute(2, 1, 0)
    y = torch.zeros_like(x)
    for e in other[:, :, :2].sum((-1, -2)).gt(0).nonzero():
        _, i = torch.where(mask[e[0]])
        y = y.index_add(0, i, m.one(x[i]))
    return y


def measured(model, inputs=15, changes=3):
    """Return which tokens (axis 0) each output (axis 1) changes with."""
    found = np.zeros((TOKENS, TOKENS), bool)
    model = model.double()
    with torch.no_grad():
        for _ in range(inputs):
            x = torch.randn(TOKENS, WIDTH, dtype=torch.float64)
            y = model(x)
            for i in range(TOKENS):
                for _ in range(changes):
                    z = x.clone()
                    z[i] = torch.randn(WIDTH, dtype=torch.float64)
                    found[i] |= ((model(z) - y).abs() > 1e-9).any(1).numpy()
    model.float()
    return found


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore:.*NumPy.*:DeprecationWarning")
@pytest.mark.parametrize("name", CASES)
def test_no_dependence_is_missed(name):
    torch.manual_seed(11)
    model = Model(CASES[name]).eval()
    truth = measured(model)
    graph = depgraph.trace(model, (example(model),), positions={0: 0, "output": 0})
    missed = truth & ~(depgraph.path_lengths(graph) >= 0)
    assert not missed.any(), f"{int(missed.sum())} of {int(truth.sum())} missed"
