"""Models whose dependences are known, and some that are hard to measure."""

import itertools

import torch
from torch import nn
from torch.nn import functional as F


class Apply(nn.Module):
    """A function of one tensor as a model."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Attention(nn.Module):
    """Self-attention over axis 1, causal or not."""

    def __init__(self, causal):
        super().__init__()
        self.causal = causal
        self.project = nn.Linear(4, 12)

    def forward(self, x):
        q, k, v = self.project(x).chunk(3, -1)
        return F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)


class Gated(nn.Module):
    """A connection that is closed until it has been trained."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return x + self.gate * x.flip(1)


class Branching(nn.Module):
    """Goes one of two ways, by what it is given."""

    def forward(self, x):
        return x.cumsum(1) if x.sum() > 0 else x.flip(1)


class Counting(nn.Module):
    """Changes a buffer each time it runs, and returns it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("runs", torch.zeros(1, 1, 1))

    def forward(self, x):
        self.runs += 1
        return x * self.runs


class Unsteady(nn.Module):
    """Returns something else each time, at one of its positions."""

    def __init__(self):
        super().__init__()
        self.runs = itertools.count()  # nothing can set it back

    def forward(self, x):
        return torch.cat([x, torch.full_like(x[:, :1], float(next(self.runs)))], 1)


class Single(nn.Module):
    """Insists on single precision."""

    def forward(self, x):
        if x.dtype != torch.float32:
            raise TypeError("float32, please")
        return x.cumsum(1)


class EndsAtItsOwnLargest(nn.Module):
    """Takes a number for infinite that float64 has room for, and returns NaN in it."""

    def forward(self, x):
        beyond = x.new_tensor(1e300)
        return x.cumsum(1) + (0.0 if beyond.isinf() else beyond * 1e300 * 0.0)


class _MadeUp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient.flip(1)


class MadeUp(nn.Module):
    """Has a derivative that is not that of what it does."""

    def forward(self, x):
        return _MadeUp.apply(x)


class Queries(nn.Module):
    """Learned queries that attend to what they are given."""

    def __init__(self):
        super().__init__()
        self.queries = nn.Parameter(torch.randn(3, 4))

    def forward(self, x):
        return (self.queries @ x.mT).softmax(-1) @ x
