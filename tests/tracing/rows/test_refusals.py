"""Where it is not sure that work is done row by row, the graph stays as it was recorded."""

import pytest
import torch

from tests.tracing.rows.idioms import TOKENS, WIDTH, Model, example, rewritten
from tests.tracing.rows.test_adversaries import CASES, added

# In these, something else can be told apart, and what is told is sound.
REWRITTEN = {
    "neighbours", "index_beyond", "rank_of_the_mask", "count_of_the_mask",
    "sorted_with_ranks", "sorted_and_added_up", "sorted_twice", "sorted_and_left", "slices_of_an_order",
    "loop_over_each_other",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore:.*NumPy.*:DeprecationWarning")
@pytest.mark.parametrize("name", sorted(CASES.keys() - REWRITTEN))
def test_the_graph_stays(name):
    torch.manual_seed(11)
    model = Model(CASES[name]).eval()
    program, followed = rewritten(model, example(model))
    assert (followed.sinks, followed.graph) == (0, program.graph)
    assert followed.results == program.results


@pytest.mark.parametrize("name", ["neighbours", "index_beyond", "rank_of_the_mask", "count_of_the_mask"])
def test_what_looks_alike_and_is_row_by_row(name):
    torch.manual_seed(11)
    model = Model(CASES[name]).eval()
    assert rewritten(model, example(model))[1].sinks


def test_a_single_row_may_be_an_axis_of_length_one():
    torch.manual_seed(0)

    def one(m, x):
        i = torch.where(m.score(x) == m.score(x).max())[0]
        return added(x, i, x[i] + m.table[:1])

    program, followed = rewritten(Model(one).eval(), torch.randn(TOKENS, WIDTH))
    assert followed.graph is program.graph


@pytest.mark.parametrize("asked", [lambda h: h.shape, lambda h: len(h), lambda h: h.size(0), lambda h: list(h)])
def test_python_was_told_how_many_rows_there_are(asked):
    torch.manual_seed(0)

    def told(m, x):
        i = torch.where(m.score(x) > 0)[0]
        asked(x[i])
        return added(x, i, m.one(x[i]))

    model = Model(told).eval()
    program, followed = rewritten(model, example(model))
    assert followed.graph is program.graph


@pytest.mark.parametrize(
    "asked", [lambda h: h.size(-1), lambda h: h.chunk(2, dim=1), lambda h: h.dim(), lambda h: h.dtype]
)
def test_python_was_told_something_else(asked):
    torch.manual_seed(0)

    def told(m, x):
        i = torch.where(m.score(x) > 0)[0]
        asked(x[i])
        return added(x, i, m.one(x[i]))

    model = Model(told).eval()
    assert rewritten(model, example(model))[1].sinks == 1


def test_sizes_asked_of_what_is_as_large_as_ever():
    torch.manual_seed(0)

    def told(m, x):
        i = torch.where(m.score(x) > 0)[0]
        y = added(x, i, m.one(x[i]))
        return y.reshape(y.shape[0], -1) / len(y)

    model = Model(told).eval()
    assert rewritten(model, example(model))[1].sinks == 1


def test_random_rows_stay():
    torch.manual_seed(0)

    def dropped(m, x):
        i = torch.where(m.score(x) > 0)[0]
        return added(x, i, torch.nn.functional.dropout(x[i], training=True))

    model = Model(dropped).eval()
    program, followed = rewritten(model, example(model))
    assert followed.graph is program.graph
