"""Reductions read all along the reduced axes, cumulative operations what comes before, sorting everything."""

import pytest
import torch

import depgraph
from tests.jacobian import Apply, changes, check

INF = float("inf")


def test_smooth_reductions():
    graph = check(
        lambda x: {
            "sum": x.sum(),
            "sum over rows": x.sum(0),
            "mean kept": x.mean(-1, keepdim=True),
            "two axes": x.sum((0, 2)),
            "prod": x.prod(1),
            "logsumexp": x.logsumexp((1, 2)),
            "var": x.var(1),
            "std": x.std((0, 1)),
            "norm": x.norm(dim=-1),
            "vector norm": torch.linalg.vector_norm(x, dim=(0, 1)),
            "var and mean": torch.var_mean(x, 0)[0],
            "no axes": torch.sum(x, dim=()),
        },
        torch.randn(2, 3, 2),
    )
    assert depgraph.parallelism(graph).span == 1


def test_reductions_with_kinks():
    check(
        lambda x: {
            "amax": x.amax(1),
            "amin of all": x.amin(),
            "max": x.max(0).values,
            "min of all": x.min(),
            "aminmax": torch.aminmax(x, dim=1)[0],
            "median": x.median(1).values,
            "kthvalue": x.kthvalue(2, dim=1).values,
        },
        torch.randn(2, 4),
        draws=40,
    )


def test_reductions_to_integers_and_flags():
    check(
        lambda x: {
            "argmax": x.argmax(1),
            "argmin of all": x.argmin(),
            "max indices": x.max(0).indices,
            "any": (x > 1).any(0),
            "all": (x > -1).all(),
            "count": torch.count_nonzero(x > 0, dim=1),
            "sort indices": x.argsort(1),
        },
        torch.randn(2, 3),
        oracle=changes,
        draws=60,
    )


def test_cumulative():
    check(
        lambda x: {
            "cumsum": x.cumsum(1),
            "cumsum over rows": x.cumsum(0),
            "cumprod": x.cumprod(-1),
            "logcumsumexp": x.logcumsumexp(1),
            "backwards": x.flip(1).cumsum(1).flip(1),
        },
        torch.randn(2, 4),
    )


def test_cumulative_maxima():
    check(lambda x: {"cummax": x.cummax(1).values, "cummin": x.cummin(0).values}, torch.randn(3, 4), draws=40)


def test_sorting():
    check(
        lambda x: {
            "sort": x.sort(1).values,
            "descending": x.sort(0, descending=True).values,
            "topk": x.topk(2, dim=1).values,
            "msort": x.msort(),
        },
        torch.randn(3, 3),
        draws=60,
    )


@pytest.mark.parametrize(("dim", "nodes"), [(None, 1), (0, 4), (1, 3), ((0, 1), 1)])
def test_a_mean_is_one_node_a_group(dim, nodes):
    graph = depgraph.trace(Apply(lambda x: x.mean(dim)), (torch.randn(3, 4),), positions={0: (0, 1)})
    assert depgraph.parallelism(graph).work == nodes


def test_a_maximum_over_known_numbers_reads_nothing():
    table = torch.tensor([[1.0, 5.0], [7.0, 2.0]])
    graph = depgraph.trace(Apply(lambda x: x[:, table.argmax(1)]), (torch.randn(1, 2),), positions={0: 1, "output": 1})
    assert graph.dag.nodes == 2
    assert depgraph.path_lengths(graph).tolist() == [[-1, 0], [0, -1]]


def test_a_known_element_may_settle_the_result():
    low, flags = torch.tensor([[1.0, 0.0, -INF], [1.0, 2.0, 3.0]]).double(), torch.tensor([True, False])

    def beside(x):
        return torch.cat([x, low], 1)

    check(
        lambda x, c: {
            "prod": beside(x)[:, :5].prod(1),
            "prod of all": (x[:, :2] * low[:, :2]).prod(),
            "prod along": (x[:, :2] * low[:, :2]).prod(0),
            "cumprod": torch.cat([x, low[:, :2], x], 1).cumprod(1),
            "sum": beside(x).sum(1),
            "mean": beside(x).mean(),
            "cumsum": beside(x).flip(1).cumsum(1),
            "amax": (-beside(x)).amax(1, keepdim=True),
            "amin": beside(x).amin(1),
            "logsumexp": (-beside(x)).logsumexp(1),
            "any": torch.stack([x[:, 0] > 0, c, flags]).any(0) * 1.0,
            "all": torch.stack([x[:, 0] > 0, c, flags]).all(0) * 1.0,
            "all of them": (torch.stack([x[:, 0] > 0, flags]).all() * 2.0).sin(),
        },
        *(torch.randn(2, 3), torch.tensor([True, True])),
        oracle=changes,
        draws=60,
    )
