"""Values that leave PyTorch and come back, against what the running programs do, element by element."""

import inspect
import warnings

import numpy as np
import pytest
import torch
from torch import nn

import depgraph
from tests.tracing.python.programs import MORE, SEEN

N = 4


def drawn(seed):
    return torch.randn(N, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def changes(value):
    return value + 0.01, value + 1.3, -value - 0.2, value * 3 + 2.5


def measured(run, count):
    """Return for each argument which of its elements changes which element of the result."""
    found = None
    for seed in range(8):
        args = [drawn(seed * count + k) for k in range(count)]
        base = run(*args)
        if found is None:
            found = np.zeros((count, N, base.numel()), bool)
        for k in range(count):
            for i in range(N):
                for value in changes(args[k][i]):
                    other = [a.clone() for a in args]
                    other[k][i] = value
                    result = run(*other)
                    if result.shape == base.shape:
                        same = (result == base) | (result.isnan() & base.isnan())
                        found[k, i] |= ~same.reshape(-1).numpy()
    return found


@pytest.mark.parametrize("name", [*SEEN, *MORE])
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated", "ignore:Converting a tensor with requires_grad")
def test_no_dependence_is_missed(name):
    body = (SEEN | MORE)[name]

    class Model(nn.Module):
        def forward(self, *given):
            return body(*given)

    def run(*args):
        with torch.no_grad():
            return body(*(a.clone() for a in args)).clone()

    count = len(inspect.signature(body).parameters)
    args = [drawn(k) for k in range(count)]
    axes = dict.fromkeys(range(count), 0) | {"output": tuple(range(run(*args).dim()))}
    graph = depgraph.trace(Model(), tuple(args), positions=axes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        truth = measured(run, count)
    answer = np.array([depgraph.dependence_matrix(graph, source=k, target="output").toarray() for k in range(count)])
    assert not (truth & ~answer).any()
    if name in SEEN:
        assert (truth == answer).all()
