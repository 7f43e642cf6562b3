"""Writes: by known indices they move data, by unknown ones every place may be written to."""

import torch

from tests.jacobian import changes, check

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
