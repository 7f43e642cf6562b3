"""What a model is given to be called with, in every form, and what is no form of it."""

import pytest
import torch
from torch import nn

import depgraph
from depgraph.errors import TracingError
from depgraph.tracing.given import given

X = torch.randn(1, 3, 2)
ARGS = "args are the positional arguments of forward, a tuple such as (x,); got "
KWARGS = "kwargs are the keyword arguments of forward, a dict such as {'mask': mask}; got "


def test_forms():
    assert given((X,), None) == ((X,), {})
    assert given(X, {"y": 1}) == ((X,), {"y": 1})
    assert given([X, 2], {}) == ((X, 2), {})
    assert given((part for part in [X]), None) == ((X,), {})


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        (5, None, ARGS + "5."),
        (None, None, ARGS + "None."),
        ("abc", None, ARGS + "'abc'."),
        (X.numpy(), None, ARGS + "an object of type ndarray."),
        ({"input": X}, None, ARGS + "an object of type dict. Keyword arguments come after them, as kwargs."),
        (X, [1], KWARGS + "an object of type list."),
        (X, "ab", KWARGS + "'ab'."),
        ((), X, KWARGS + "an object of type Tensor."),
        (X, {1: 2}, "kwargs are keyword arguments by their names; got the name 1."),
    ],
)
def test_everything_else_is_refused(args, kwargs, message):
    model = nn.Linear(2, 2)
    graph = depgraph.trace(model, (X,))
    for call in (lambda: depgraph.trace(model, args, kwargs), lambda: depgraph.verify(graph, model, args, kwargs)):
        with pytest.raises(TracingError) as caught:
            call()
        assert str(caught.value) == message
