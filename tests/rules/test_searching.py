"""Searches read the line that is searched."""

import torch
import torch.nn.functional as F

import depgraph
from tests.jacobian import Apply, changes, check

R = torch.randn


def test_places_in_sorted_lines():
    check(
        lambda x, line: {
            "one line": torch.searchsorted(line.sort().values, x),
            "a line a row": torch.searchsorted(x.sort(-1).values, x.flip(0)),
            "buckets": torch.bucketize(x, line.cumsum(0)),
            "known line": torch.bucketize(x, torch.tensor([-0.5, 0.5]).double()),
        },
        *(R(2, 3), R(3)),
        oracle=changes,
        draws=80,
        exact=False,
    )


def test_membership():
    check(lambda i, j: torch.isin(i, j), torch.arange(3), torch.arange(2), draws=60)


def test_distances_of_pairs():
    check(lambda x: F.pdist(x), R(4, 2))


def test_draws_read_their_weights():
    graph = depgraph.trace(
        Apply(lambda w: torch.multinomial(w.softmax(-1), 2)), (R(2, 3),), positions={0: (0, 1), "output": 0}
    )
    reached = depgraph.path_lengths(graph).reshape(2, 3, 2) > 0
    assert reached[0, :, 0].all()
    assert reached[1, :, 1].all()
    assert reached.sum() == 6
