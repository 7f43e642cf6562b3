"""The rewritten graph computes what the model computes, on other inputs than the example."""

import hypothesis
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tracing.rows.idioms import FORMS, TOKENS, WIDTH, WORK, compute, example, model, rewritten


def others(seed):
    """Inputs of all kinds: as many rows as tokens, none, and anything in between."""
    torch.manual_seed(seed + 100)
    for _ in range(4):
        yield torch.randn(TOKENS, WIDTH)
    yield torch.randn(1, WIDTH).expand(TOKENS, WIDTH).clone()
    yield -torch.randn(1, WIDTH).expand(TOKENS, WIDTH).clone()


def check(form, work, seed):
    torch.manual_seed(seed)
    tested = model(form, work)
    x = example(tested)
    program, followed = rewritten(tested, x)
    with torch.no_grad():
        for other in (x, *others(seed)):
            torch.testing.assert_close(compute(program, followed, other), tested(other), rtol=1e-4, atol=1e-5)
    return followed


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(3))
def test_each_form(form, seed):
    assert check(form, ["linear", "relu"], seed).sinks


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("form", ["added", "mask", "sorted"])
def test_each_kind_of_work(form, work):
    assert check(form, [work], 0).sinks


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(FORMS)), st.lists(st.sampled_from(sorted(WORK)), max_size=4), st.integers(0, 1000))
@hypothesis.example("two", [], 100)  # an expert has no rows: both coordinates are empty
@hypothesis.example("loop", ["heads"], 0)  # and so is all that is moved
def test_anything_put_together(form, work, seed):
    check(form, work, seed)


def test_nothing_is_rewritten_where_no_rows_are_picked():
    from torch import nn

    program, followed = rewritten(nn.Linear(WIDTH, WIDTH), torch.randn(TOKENS, WIDTH))
    assert followed.graph is program.graph


def test_the_recorded_graph_stays_as_it_was():
    torch.manual_seed(0)
    program, followed = rewritten(model("added", ["linear"]), torch.randn(TOKENS, WIDTH))
    assert followed.graph is not program.graph
    assert "aten.where.default" in {str(node.target) for node in program.graph.nodes}
    assert "aten.where.default" not in {str(node.target) for node in followed.graph.nodes}
