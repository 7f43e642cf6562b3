"""Models that hold arrays and tensors over the same memory."""

import numpy as np
import pytest
import torch
from torch import nn

import depgraph


class Held(nn.Module):
    def __init__(self, run):
        super().__init__()
        self.array = np.zeros(4)
        self.tensor = torch.from_numpy(self.array)
        self.weight = nn.Parameter(torch.ones(4, dtype=torch.float64))
        self.view = self.weight.detach().numpy()
        self.run = run

    def forward(self, x):
        return self.run(self, x)


def write_array(model, x):
    model.array[:] = x.numpy()
    return model.tensor * 2


def write_element(model, x):
    model.array[1] = x[0].item()
    return model.tensor * 2


def write_tensor(model, x):
    model.tensor.copy_(x)
    return x * float(model.array.sum())


def write_weight(model, x):
    model.view[:] = x.numpy()
    return (model.weight * 2).detach()


def leave_alone(model, x):
    return x * 2


@pytest.mark.parametrize("run", [write_array, write_element, write_tensor, write_weight, leave_alone])
def test_no_dependence_is_missed_and_nothing_is_changed(run):
    model, x = Held(run), torch.tensor([0.3, -0.2, 0.7, -0.9], dtype=torch.float64)
    graph = depgraph.trace(model, (x,), positions={"x": 0, "output": 0})
    assert not model.array.any()
    assert (model.view == 1).all()
    answer = depgraph.dependence_matrix(graph).toarray()
    with torch.no_grad():
        base = Held(run)(x.clone())
        for i in range(4):
            other = x.clone()
            other[i] += 1.3
            assert answer[i][(Held(run)(other) != base).numpy()].all()
