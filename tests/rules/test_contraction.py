"""Contractions read both factors, but no term with a known zero in it, and whatever is added."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import depgraph
from tests.jacobian import check

R = torch.randn


def test_linear():
    graph = check(
        lambda x, w, b, v: {
            "plain": F.linear(x, w),
            "with a bias": F.linear(x, w, b),
            "vector": F.linear(x, v),
            "one example": F.linear(x[0, 0], w, b),
        },
        *(R(2, 2, 3), R(2, 3), R(2), R(3)),
    )
    assert depgraph.critical_path(graph, weight="contractions").length == 1


def test_products_of_every_rank():
    check(
        lambda v, m, b, c: {
            "dot": v @ v.sin(),
            "vector matrix": v @ m,
            "matrix vector": m.T @ v,
            "matrix matrix": m.T @ m.cos(),
            "batch matrix": b @ m,
            "matrix batch": m.T @ b.transpose(1, 2),
            "batch vector": b @ v,
            "vector batch": v @ b.transpose(1, 2),
            "broadcast": c @ b,
            "bmm": torch.bmm(b, b.transpose(1, 2).tanh()),
            "inner": torch.inner(b, v),
            "inner of two": torch.inner(m.T, b),
            "outer": torch.outer(v, v.sin()),
            "vecdot": torch.linalg.vecdot(b, v),
        },
        *(R(3), R(3, 2), R(2, 2, 3), R(2, 1, 2, 2)),
    )


def test_products_onto_something():
    check(
        lambda c, a, b, x, y: {
            "addmm": torch.addmm(c, a, b),
            "addmm of a row": torch.addmm(c[0], a, b, beta=0.5),
            "without what is there": torch.addmm(c, a, b, beta=0),
            "without the product": torch.addmm(c, a, b, alpha=0),
            "addmv": torch.addmv(c[0], a[:, :2], b[0]),
            "baddbmm": torch.baddbmm(c, x, y),
            "addbmm": torch.addbmm(c, x, y),
            "addr": torch.addr(c, a[0, :2], b[0]),
        },
        *(R(2, 2), R(2, 3), R(3, 2), R(2, 2, 3), R(2, 3, 2)),
    )


def test_einsum():
    check(
        lambda a, b, c: {
            "heads": torch.einsum("bhld,bhsd->bhls", a, b),
            "trace": torch.einsum("ii->i", c),
            "all": torch.einsum("bhld,bhsd,ls->bh", a, b, c),
            "tensordot": torch.tensordot(a, b, dims=([3], [3])),
            "kron": torch.kron(c, c.sin()),
            "chain": torch.linalg.multi_dot([c, c.sin(), c.cos()]),
        },
        *(R(1, 2, 2, 2), R(1, 2, 2, 2), R(2, 2)),
    )


def test_bilinear():
    check(
        lambda a, b, w, c: {"bilinear": F.bilinear(a, b, w, c), "without": F.bilinear(a, b, w)},
        *(R(2, 2), R(2, 3), R(2, 2, 3), R(2)),
    )


def test_distances():
    check(lambda a, b: {"cdist": torch.cdist(a, b), "1-norm": torch.cdist(a, b, p=1.0)}, R(2, 3), R(3, 3))


def test_known_zeros_cut_terms():
    triangle = torch.ones(3, 3).tril().double()
    blocks = torch.block_diag(torch.ones(1, 1), torch.ones(2, 2)).double()
    graph = check(
        lambda x, w: {
            "prefix sums": triangle @ x,
            "from the right": x @ blocks,
            "masked weight": F.linear(x, w * blocks),
            "addmm": torch.addmm(x, triangle, x.sin()),
            "batch": torch.matmul(triangle.expand(2, 3, 3), x),
            "einsum": torch.einsum("ts,sd->td", triangle, x),
        },
        *(R(3, 3), R(3, 3)),
    )
    assert depgraph.critical_path(graph).length >= 1


def test_a_generated_weight_is_read():
    class Hyper(nn.Module):
        def __init__(self):
            super().__init__()
            self.make = nn.Linear(2, 6)

        def forward(self, x, context):
            return F.linear(x, self.make(context).view(2, 3))

    check(Hyper(), R(4, 3), R(2))


def test_parameters_can_be_inputs():
    model = nn.Linear(3, 2)
    positions = {"weight": (0, 1), "bias": 0, "output": 1}
    graph = depgraph.trace(model, (R(1, 3),), positions=positions)
    weight = depgraph.path_lengths(graph, "weight").reshape(2, 3, 2)
    assert (weight == torch.eye(2).long()[:, None].expand(2, 3, 2).numpy() * 2 - 1).all()
    assert depgraph.path_lengths(graph, "bias").tolist() == [[1, -1], [-1, 1]]


@pytest.mark.parametrize("low", [-float("inf"), -1e9], ids=str)
@pytest.mark.parametrize("scale", [{}, {"alpha": 0.3}, {"beta": 2.0}], ids=str)
def test_a_mask_added_to_a_product_hides(low, scale):
    class Model(torch.nn.Module):
        def forward(self, x):
            mask = torch.full((5, 5), low).triu(1)
            return torch.baddbmm(mask[None], x, x.transpose(1, 2), **scale).softmax(-1) @ x

    graph = depgraph.trace(Model(), (torch.randn(1, 5, 3),), positions={"x": 1, "output": 1})
    reached = torch.from_numpy(depgraph.path_lengths(graph) >= 0)
    assert torch.equal(reached, torch.ones(5, 5).triu().bool())
