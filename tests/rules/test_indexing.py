"""Known indices move data; unknown ones are read, with everything that they could pick."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import depgraph
from tests.jacobian import Apply, changes, check

R = torch.randn
# Few numbers that span their range: enough draws meet every choice.
MANY = 50


def test_known_indices():
    i, j, mask = torch.tensor([2, 0]), torch.tensor([[1], [0]]), torch.tensor([True, False, True])
    graph = check(
        lambda x: {
            "rows": x[i],
            "columns": x[:, i % 2],
            "both": x[i, j],
            "apart": x[i, :, j],
            "negative": x[-1, [0, -1]],
            "mask": x[mask],
            "two masks": x[:, torch.tensor([True, True])][mask],
            "index_select": x.index_select(0, i),
            "gather": x.gather(1, torch.zeros(1, 2, 2, dtype=torch.long)),
            "take": x.take(torch.tensor([3, 1])),
            "take_along": torch.take_along_dim(x, torch.tensor([[[1]], [[0]], [[1]]]), 1),
            "masked_select": x[..., 0].masked_select(mask[:, None]),
            "repeat_interleave": x.repeat_interleave(torch.tensor([2, 0, 1]), 0),
            "chunks": x[torch.arange(3).flip(0)].unflatten(0, (1, 3)),
        },
        R(3, 2, 2),
    )
    assert graph.dag.nodes == graph.dag.inputs


def test_unknown_indices():
    check(
        lambda x, i, j: {
            "rows": x[i],
            "columns": x[:, j],
            "both": x[i, j],
            "one known": x[i, torch.tensor([1, 0])],
            "index_select": x.index_select(0, i),
            "gather": x.gather(0, i[:, None].expand(2, 2)),
            "computed": x[(i + 1) % 3],
        },
        *(R(3, 2), torch.tensor([0, 2]), torch.tensor([0, 1])),
        draws=MANY,
    )


def test_indices_along_the_axes_apart():
    check(
        lambda x, i, j: {"apart": x[i, :, j], "middle": x[:, i], "behind": x[:, :, i], "one known": x[i, :, [0, 1]]},
        *(R(2, 2, 2), torch.tensor([0, 1]), torch.tensor([1, 0])),
        draws=MANY,
    )


def test_embedding():
    check(
        lambda w, i: {
            "embedding": F.embedding(i, w),
            "padded": F.embedding(i, w, padding_idx=0),
            "known": F.embedding(torch.tensor([2, 2, 0]), w),
        },
        *(R(3, 2), torch.tensor([[0, 2]])),
        oracle=changes,  # rows of padding are read, but have no gradient
        draws=MANY,
    )


def test_embedding_bags():
    check(
        lambda w, i: {"mean": F.embedding_bag(i, w), "sum": F.embedding_bag(i, w, mode="sum")},
        *(R(3, 2), torch.tensor([[0, 2], [1, 1]])),
        draws=MANY,
    )


def test_a_learned_table_is_constant():
    graph = depgraph.trace(nn.Embedding(5, 3), (torch.tensor([[1, 0, 4, 4]]),))
    assert graph.inputs["input"].positions == (1,)
    assert depgraph.path_lengths(graph).diagonal().tolist() == [1] * 4
    assert depgraph.parallelism(graph).work == 4


def test_choices_with_learned_scores():
    class Router(nn.Module):
        """Each position goes to the expert it scores highest."""

        def __init__(self):
            super().__init__()
            self.score = nn.Linear(2, 2)
            self.experts = nn.Parameter(R(2, 2, 2))

        def forward(self, x):
            return torch.einsum("bti,btio->bto", x, self.experts[self.score(x).argmax(-1)])

    n = 4
    graph = depgraph.trace(Router(), (R(1, n, 2),))
    assert (depgraph.path_lengths(graph) >= 0).tolist() == torch.eye(n).bool().tolist()
    assert depgraph.critical_path(graph).length == 4


def test_one_hot():
    check(lambda i: F.one_hot(i, 3), torch.tensor([0, 2]), draws=MANY)


@pytest.mark.parametrize("known", [False, True])
def test_masks_that_decide_a_shape(known):
    model = Apply(lambda x, m: x[m].sum(0) + torch.nonzero(m).sum())
    args = R(3, 2), torch.tensor([True, False, True])
    graph = depgraph.trace(model, args, positions={0: 0} if known else {0: 0, 1: 0})
    found = depgraph.path_lengths(graph)[:, 0]
    assert found.tolist() == ([1, -1, 1] if known else [1, 1, 1]) or (found[[0, 2]] > 0).all()
    assert (found[1] < 0) == known


def test_a_bag_of_known_indices_reads_the_rows_in_it():
    ids, offsets = torch.tensor([0, 2, 2, 1, 4]), torch.tensor([0, 2, 2])
    check(
        lambda t, w: {
            "sum": F.embedding_bag(ids, t, offsets, mode="sum"),
            "mean": F.embedding_bag(ids, t, offsets, mode="mean"),
            "padding": F.embedding_bag(ids, t, offsets, mode="sum", padding_idx=2),
            "to the last": F.embedding_bag(ids, t, torch.tensor([0, 2, 4]), mode="sum", include_last_offset=True),
            "weighted": F.embedding_bag(ids, t, offsets, mode="sum", per_sample_weights=w),
            "two axes": F.embedding_bag(ids[:4].reshape(2, 2), t, mode="sum"),
        },
        *(R(5, 2), R(5)),
    )
    check(lambda t: F.embedding_bag(ids, t, offsets, mode="max"), R(5, 2), draws=30)
