"""Norms and softmax read their group, and scale and shift at the element's own place."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import depgraph
from tests.jacobian import Apply, changes, check

R = torch.randn
INF = float("inf")


def test_norms_over_the_last_axes():
    graph = check(
        lambda x, w, b: {
            "layer norm": F.layer_norm(x, (4,), w, b),
            "without parameters": F.layer_norm(x, (4,)),
            "two axes": F.layer_norm(x, (3, 4), w.expand(3, 4)),
            "rms norm": F.rms_norm(x, (4,), w),
            "unit length": F.normalize(x, dim=-1),
        },
        *(R(2, 3, 4), R(4), R(4)),
    )
    assert depgraph.critical_path(graph).length <= 3


def test_norms_over_channels():
    check(
        lambda x, w, b: {
            "group norm": F.group_norm(x, 2, w, b),
            "one group": F.group_norm(x, 1),
            "instance norm": F.instance_norm(x, weight=w, bias=b),
            "batch norm in training": F.batch_norm(x, None, None, w, b, training=True),
            "batch norm": F.batch_norm(x, torch.zeros(4).double(), torch.ones(4).double(), w, b),
            "neighbouring channels": F.local_response_norm(x, 3),
        },
        *(R(2, 4, 3), R(4), R(4)),
    )


def test_running_statistics_can_be_data():
    check(
        lambda x, m, v, w: F.batch_norm(x, m, v.exp(), w),
        *(R(2, 2, 3), R(2), R(2), R(2)),
        oracle=changes,
    )


@pytest.mark.parametrize("training", [False, True])
def test_batch_norm_mixes_examples_in_training_only(training):
    model = nn.BatchNorm1d(3).train(training)
    graph = depgraph.trace(model, (R(4, 3),), positions={"input": 0, "output": 0})
    reached = depgraph.path_lengths(graph) >= 0
    assert reached.tolist() == (torch.ones(4, 4) if training else torch.eye(4)).bool().tolist()
    assert graph.mode == ("train" if training else "eval")


def test_a_group_of_one_element_is_constant():
    check(
        lambda x, w: {
            "layer norm": F.layer_norm(x, (1,), w),
            "softmax": x.softmax(-1),
            "log softmax": x.log_softmax(-1),
            "scaled": x.softmax(-1) * w,
        },
        *(R(3, 1), R(1)),
    )


def test_softmax():
    graph = check(
        lambda x: {
            "softmax": x.softmax(-1),
            "over rows": x.softmax(0),
            "log": x.log_softmax(1),
            "softmin": F.softmin(x, 1),
            "loss": F.cross_entropy(x[0], torch.tensor([1, 0, 3]), reduction="none"),
        },
        R(2, 3, 4),
        exact=False,
    )
    assert {op.name for op in graph.operations} >= {"softmax"}
    check(lambda x: {"softmax": x.softmax(-1), "over rows": x.softmax(0), "log": x.log_softmax(1)}, R(2, 3, 4))


# Rows with all, some, one and no element left.
MASK = torch.tensor([[1, 1, 1], [0, 1, 1], [0, 1, 0], [1, 0, 0]]).bool()
LOW = torch.where(MASK, 0.0, -1e9).double()
FORMS = {
    "masked_fill": lambda x: x.masked_fill(~MASK, -INF),
    "where": lambda x: torch.where(MASK, x, torch.full_like(x, -INF)),
    "added infinities": lambda x: x + torch.where(MASK, 0.0, -INF).double(),
    "added low numbers": lambda x: x + LOW,
    "subtracted": lambda x: x - (1 - MASK.double()) * 1e9,
    "scaled after": lambda x: (x + LOW) * 0.5,
    "scaled before": lambda x: x / 8 + LOW,
    "filled with low numbers": lambda x: x.masked_fill(~MASK, -1e9),
    "the lowest of all": lambda x: x.masked_fill(~MASK, torch.finfo(x.dtype).min),
    "clamped": lambda x: torch.maximum(x + LOW, torch.tensor(-1e9)),
    "through another axis": lambda x: (x.t() + LOW.t()).t(),
    "through a copy": lambda x: torch.cat([x + LOW, x])[:4].clone(),
}


def test_masked_softmax():
    check(lambda x: {form: mask(x).softmax(-1) for form, mask in FORMS.items()}, R(4, 3))
    check(lambda x: {form: mask(x).softmax(-1) @ x[:3].sin() for form, mask in FORMS.items()}, R(4, 3), draws=3)


def test_weights_masked_by_a_product():
    check(
        lambda x: {"weights": x.exp() * MASK / (x.exp() * MASK).sum(-1, keepdim=True)},
        R(4, 3),
        exact=False,  # a weight that is alone is 1
    )


def test_a_row_without_anything_left():
    nothing = torch.tensor([[True, True], [True, False]])
    graph = depgraph.trace(
        Apply(lambda x: torch._safe_softmax(x.masked_fill(nothing, -INF), -1)),
        (R(2, 2),),
        positions={0: (0, 1), "output": (0, 1)},
    )
    assert (depgraph.path_lengths(graph) < 0).all()


def test_logarithms_of_masked_weights():
    check(
        lambda x: {
            "infinite": x.masked_fill(~MASK, -INF).log_softmax(-1).masked_fill(~MASK, 0.0),
            "low": (x + LOW).log_softmax(-1),
        },
        R(4, 3),
        exact=False,
    )


def test_a_low_number_that_is_not_low_enough_masks_nothing():
    check(lambda x: (x + LOW / 1e8).softmax(-1), R(4, 3))


def test_gated_experts():
    check(
        lambda x, g: {
            "softmax of the best": torch.softmax(g.topk(2, -1).values, -1),
            "kept": g.masked_fill(g < g.topk(2, -1).values[..., -1:], -INF).softmax(-1) @ x,
        },
        *(R(3, 2), R(2, 3)),
        draws=30,
    )
