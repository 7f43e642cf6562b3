"""Writes: by known indices they move data, by unknown ones every place may be written to."""

from itertools import product

import pytest
import torch

import depgraph
from tests.jacobian import Apply, changes, check

R = torch.randn
MANY = 50


def test_writes_by_known_indices():
    i = torch.tensor([0, 2])

    def put(x, y):
        z = x.clone()
        z[i] = y[:2]
        z[1, [0, 1]] = y[2]
        z[z.new_zeros(3, 2) > 1] = 0
        return z

    graph = check(
        lambda x, y: {
            "put": put(x, y),
            "index_copy": x.index_copy(0, i, y[:2]),
            "scatter": x.scatter(0, torch.tensor([[2, 0]]), y[:1]),
            "scatter a number": x.scatter(1, torch.tensor([[1]]), 4.0),
            "masked_scatter": x.masked_scatter(torch.tensor([[True], [False], [True]]), y),
            "index_fill": x.index_fill(0, i, 3.0),
        },
        *(R(3, 2), R(3, 2)),
    )
    assert graph.dag.nodes == graph.dag.inputs


def test_the_last_write_stands():
    def twice(x, y):
        z = x.clone()
        z[0] = y[0]
        z[:2] = y[1]
        return z

    check(
        lambda x, y: {"twice": twice(x, y), "scatter": x.scatter(0, torch.tensor([[1, 1], [1, 0]]), y)},
        *(R(3, 2), R(2, 2)),
        oracle=changes,
    )


def test_accumulation_by_known_indices():
    i = torch.tensor([0, 2, 2])

    def graph_convolution(x):
        source, target = torch.tensor([[0, 1, 2], [1, 2, 1]])
        return torch.zeros_like(x).index_add(0, target, x[source])

    check(
        lambda x, y: {
            "index_add": x.index_add(0, i, y),
            "accumulate": x.index_put((i,), y, accumulate=True),
            "scatter_add": x.scatter_add(0, i[:, None].expand(3, 2), y),
            "into zeros": torch.zeros_like(x).scatter_add(0, i[:, None], y[:, :1]),
            "messages": graph_convolution(x),
            "mean": x.scatter_reduce(0, i[:, None].expand(3, 2), y, "mean", include_self=False),
            "prod": x.scatter_reduce(0, i[:, None].expand(3, 2), y, "prod"),
        },
        *(R(3, 2), R(3, 2)),
    )


SEGMENTS = torch.tensor([0, 0, 1, 1])
BOTH = [[True, False], [True, False], [False, True], [False, True]]
INF = float("inf")


@pytest.mark.filterwarnings("ignore:index_reduce")
def test_accumulation_onto_a_known_base():
    def onto(x, how, base, include):
        whole = x.new_full((2,), base)
        return [
            whole.index_reduce(0, SEGMENTS, x, how, include_self=include) + 1,
            whole.scatter_reduce(0, SEGMENTS, x, how, include_self=include).neg(),
        ]

    cases = list(product(("amax", "amin", "prod", "mean"), (-INF, -1e9, 0.0, 1.0, 1e9, INF), (True, False)))
    graph = depgraph.trace(
        Apply(lambda x: [part for case in cases for part in onto(x, *case)]),
        (torch.randn(4),),
        positions={0: 0} | {f"output.{k}": 0 for k in range(2 * len(cases))},
    )
    for number, name in enumerate(graph.outputs):
        how, base, include = cases[number // 2]
        settled = {"amax": base >= 1e9, "amin": base <= -1e9, "prod": base == 0, "mean": abs(base) == INF}[how]
        expected = [[False] * 2] * 4 if settled and include else BOTH
        assert (depgraph.path_lengths(graph, target=name) >= 0).tolist() == expected, cases[number // 2]


def test_what_was_added_is_accumulated():
    low, third = torch.tensor([0.0, -1e9, -1e9, -1e9]).double(), torch.tensor([0, 0, 1, 2])
    check(
        lambda x: {
            # Something low beside something else is not the largest.
            "largest": x.new_full((3,), -INF).scatter_reduce(0, third, x + low, "amax") * 2,
            "sum": x.new_full((2,), -1e9).index_add(0, SEGMENTS, x).exp(),
            "of low ones": x.new_zeros(3).index_add(0, third, x + low).exp(),
            "sum with known ones": (x.index_add(0, SEGMENTS, low) + low.flip(0)).exp(),
            "scaled": x.new_zeros(2).index_add(0, SEGMENTS, x.detach() * 0 - 1.0, alpha=1e9) + x[0],
            "product": (x.new_full((2,), 1e9).scatter_reduce(0, SEGMENTS, x, "prod") - 1e9).sigmoid() * 0 + x[0],
            "nothing landed": (x.new_full((3,), -INF).scatter_reduce(0, SEGMENTS, x, "amax") + 1).exp(),
        },
        R(4),
        draws=40,
    )


def test_what_may_be_found_in_the_place_of_a_result_decides_its_size():
    def kept(x, i):
        best = x.new_full((4,), -1e9).scatter(0, i, x[:2])
        return (best + torch.tensor([0.0, 0.0, -1e9, -1e9]).double()).softmax(0)

    check(kept, R(4), torch.tensor([0, 3]), exact=False, draws=MANY)


def test_softmax_over_segments():
    target = torch.tensor([0, 0, 1, 1, 1, 2])

    def weights(scores):
        most = scores.new_full((3,), -INF).scatter_reduce(0, target, scores, "amax")
        raised = (scores - most[target]).exp()
        return raised / scores.new_zeros(3).index_add(0, target, raised)[target]

    check(
        lambda x, y: {"weights": weights(x) * y, "messages": y.new_zeros(3).index_add(0, target, weights(x) * y)},
        *(R(6), R(6)),
        exact=False,  # what is alone is 1
        draws=30,
    )
    graph = depgraph.trace(Apply(weights), (R(6),), positions={0: 0, "output": 0})
    assert ((depgraph.path_lengths(graph) >= 0) == (target[:, None] == target).numpy()).all()


def test_writes_by_unknown_indices():
    check(
        lambda x, y, i: {
            "scatter": x.scatter(0, i[:, None].expand(2, 2), y),
            "scatter_add": x.scatter_add(0, i[:, None].expand(2, 2), y),
            "index_add": x.index_add(0, i, y),
        },
        *(R(3, 2), R(2, 2), torch.tensor([0, 2])),
        draws=MANY,
        exact=False,
    )


def test_writes_where_an_unknown_mask_is_true():
    def put(x, m):
        z = x.clone()
        z[m] = 0.0
        return z

    check(
        lambda x, m: {"put": put(x, m), "fill": x.masked_fill(m, 0.0)},
        *(R(3), torch.tensor([True, False, False])),
        draws=MANY,
    )


def test_writes_in_the_order_of_a_mask():
    check(
        lambda x, m, y: x.masked_scatter(m, y),
        *(R(4), torch.tensor([True, False, True, True]), R(4)),
        draws=MANY,
    )


def test_places_of_the_flattened_tensor():
    check(
        lambda x, y: {
            "put": x.put(torch.tensor([3, 0]), y),
            "put accumulates": x.put(torch.tensor([3, 3]), y, accumulate=True),
        },
        *(R(2, 3), R(2)),
    )


def test_unpooling():
    check(
        lambda x: torch.nn.functional.max_unpool2d(
            *torch.nn.functional.max_pool2d(x, 2, return_indices=True), kernel_size=2
        ),
        R(1, 2, 2, 4),
        exact=False,
    )
