"""Random programs: short chains of tensor operations, drawn step by step so that each fits what the one before made.

What a program computes depends on no cancellation: wherever two terms could annul each other, they are weighted with
generic numbers first. Its derivatives are then zero exactly where nothing is read, but for the steps with kinks.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from hypothesis import strategies as st
from torch import nn

LARGEST = 72  # elements; all derivatives are taken


class Step(NamedTuple):
    """One operation with its parameters, which fit the shapes that reach it."""

    op: str
    parameters: tuple


class Program(nn.Module):
    """Steps in a row; each sees what the last one made and, if it wants, what any before it made."""

    def __init__(self, shape, steps):
        super().__init__()
        self.shape, self.steps = tuple(shape), tuple(steps)
        self.weights = nn.ParameterList()
        self._making = True
        with torch.no_grad():
            self(torch.zeros(self.shape))
        self._making = False

    def __repr__(self):
        return f"Program({self.shape}, {[tuple(step) for step in self.steps]})"

    def forward(self, x):
        past, number = [x], 0

        def weight(*shape):
            nonlocal number
            if self._making:
                # Away from 0, lest a product of several be taken for 0.
                values = torch.empty(shape).uniform_(0.5, 1.5) * (torch.randint(2, shape) * 2 - 1)
                self.weights.append(nn.Parameter(values, requires_grad=False))
            number += 1
            return self.weights[number - 1]

        for op, parameters in self.steps:
            past.append(OPS[op](past, weight, *parameters))
        return past[-1]


def bounded(x, weight):
    """Return generic functions of the elements, none of them large or equal."""
    return torch.sin(x * weight(*x.shape))


def mask_of(bits, shape):
    return torch.tensor(bits).reshape(shape)


def write_slice(past, weight, axis, to, start, length):
    z = past[-1].clone()
    z.narrow(axis, to, length).copy_(past[-1].narrow(axis, start, length) * weight())
    return z


def write_flat(past, weight, start, step):
    z = past[-1].contiguous().clone()
    z.view(-1)[start::step] *= weight()
    z.view(-1)[start] = z.reshape(-1)[-1]
    return z


def write_transposed(past, weight, one, other, to, start):
    z = past[-1].clone()
    z.transpose(one, other)[to] = z.transpose(one, other)[start].clone() * weight()
    return z


def accumulate(past, weight, axis, to, start):
    z = past[-1].clone()
    z.select(axis, to).add_(past[-1].select(axis, start) * weight())
    return z


def normalised(past, weight):
    x = bounded(past[-1], weight)
    return F.layer_norm(x, x.shape[-1:], weight(x.shape[-1]), weight(x.shape[-1]))


def softmax(past, weight, axis, bits):
    x = bounded(past[-1], weight)
    if bits is not None:
        x = x.masked_fill(mask_of(bits, x.shape), float("-inf"))
    return torch._safe_softmax(x, axis) * weight(*x.shape)


def by_hand(past, weight, axis, bits):
    x = past[-1] * weight(*past[-1].shape) + mask_of(bits, past[-1].shape) * -1e9
    x = (x - x.amax(axis, keepdim=True)).exp()
    return x / x.sum(axis, keepdim=True) * weight(*x.shape)


def attention(past, weight, causal):
    x = bounded(past[-1], weight)
    q, k, v = x * weight(x.shape[-1]), x * weight(x.shape[-1]), x * weight(x.shape[-1])
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


def convolution(past, weight, kernel, dilation, padding, groups):
    x = past[-1]
    w = weight(x.shape[1], x.shape[1] // groups, kernel)
    return F.conv1d(x, w, weight(x.shape[1]), dilation=dilation, padding=padding, groups=groups)


def recurrence(past, weight):
    x = past[-1]
    d = x.shape[-1]
    w = [weight(d, d) / d, weight(d, d) / d, weight(d), weight(d)]
    return torch.rnn_tanh(x, torch.zeros(1, x.shape[1], d, dtype=x.dtype), w, True, 1, 0.0, False, False, False)[0]


OPS = {
    # Movement.
    "reshape": lambda p, w, shape: p[-1].reshape(shape),
    "permute": lambda p, w, order: p[-1].permute(order),
    "slice": lambda p, w, axis, start, stop, step: p[-1][(slice(None),) * axis + (slice(start, stop, step),)],
    "flip": lambda p, w, axis: p[-1].flip(axis),
    "roll": lambda p, w, axis, by: p[-1].roll(by, axis),
    "unsqueeze and expand": lambda p, w, axis, size: (
        p[-1].unsqueeze(axis).expand(*p[-1].shape[:axis], size, *p[-1].shape[axis:])
    ),
    "cat": lambda p, w, axis: torch.cat([p[-1], (p[-1] * w()).flip(axis)], axis),
    "stack": lambda p, w, axis: torch.stack([p[-1].roll(1, 0), p[-1]], axis),
    "pad": lambda p, w, left, right: F.pad(p[-1], (left, right)),
    "unfold": lambda p, w, axis, size: p[-1].unfold(axis, size, 1),
    "index": lambda p, w, axis, index: p[-1][(slice(None),) * axis + (torch.tensor(index),)],
    "gather": lambda p, w, axis, index: p[-1].gather(axis, mask_of(index, p[-1].shape)),
    "diagonal": lambda p, w, one, other: p[-1].diagonal(0, one, other),
    # In-place writes through views.
    "write slice": write_slice,
    "write flat": write_flat,
    "write transposed": write_transposed,
    "accumulate": accumulate,
    # Elementwise.
    "weigh": lambda p, w: p[-1] * w(*p[-1].shape),
    "sin": lambda p, w: bounded(p[-1], w),
    "broadcast": lambda p, w, axis, k: p[-1] * w() + p[-1].select(axis, k).unsqueeze(axis) * w().exp(),
    "residual": lambda p, w, k: p[-1] * w(*p[-1].shape) + p[k] * w(*p[k].shape),
    "product": lambda p, w, k: bounded(p[-1], w) * bounded(p[k], w),
    "mask": lambda p, w, bits: p[-1] * mask_of(bits, p[-1].shape),
    "where": lambda p, w, bits, k: torch.where(mask_of(bits, p[-1].shape), p[-1], p[k]),
    # Along axes.
    "sum": lambda p, w, axis: (p[-1] * w(*p[-1].shape)).sum(axis),
    "cumsum": lambda p, w, axis: (p[-1] * w(*p[-1].shape)).cumsum(axis),
    "centre": lambda p, w, axis: bounded(p[-1], w) * w() + bounded(p[-1], w).mean(axis, keepdim=True),
    "softmax": softmax,
    "norm": normalised,
    # Contractions.
    "linear": lambda p, w, size: F.linear(p[-1], w(size, p[-1].shape[-1]), w(size)),
    "gram": lambda p, w: bounded(p[-1], w) @ bounded(p[-1], w).transpose(-2, -1),
    "triangle": lambda p, w: torch.ones(p[-1].shape[-2], p[-1].shape[-2], dtype=p[-1].dtype).tril() @ bounded(p[-1], w),
    "attention": attention,
    "convolution": convolution,
    "recurrence": recurrence,
    # Known numbers beside unknown ones.
    "pad and logarithm": lambda p, w: F.pad(bounded(p[-1], w).exp(), (1, 0), value=1.0).log() - 0.5,
    "pad and reciprocal": lambda p, w: F.pad(bounded(p[-1], w).exp(), (0, 1), value=4.0).reciprocal().neg(),
    "constants": lambda p, w, axis: torch.cat([p[-1], torch.full_like(p[-1], 0.5)], axis),
    "offset": lambda p, w, bits: p[-1] - mask_of(bits, p[-1].shape) * 3.0,
    # With kinks.
    "relu": lambda p, w: bounded(p[-1], w).relu(),
    "sort": lambda p, w, axis: bounded(p[-1], w).sort(axis).values,
    "amax": lambda p, w, axis: bounded(p[-1], w).amax(axis),
    "max pool": lambda p, w: F.max_pool1d(bounded(p[-1], w), 2, 1),
    "clamp": lambda p, w: bounded(p[-1], w).clamp(-0.5, 0.5),
    "low": lambda p, w, bits: p[-1] + mask_of(bits, p[-1].shape) * -1e9,
    "high": lambda p, w, axis: p[-1] + (1e9 + p[-1]).mean(axis, keepdim=True),
    "softmax by hand": by_hand,
    "choice": lambda p, w, axis: torch.take_along_dim(p[-1], bounded(p[-1], w).argmax(axis, keepdim=True), axis),
}

# Kinks, and numbers so large that derivatives are lost beside them.
KINKS = frozenset(("relu", "sort", "amax", "max pool", "clamp", "choice", "low", "high", "softmax by hand"))


def factors(number):
    found, divisor = [], 2
    while number > 1:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return found


@st.composite
def shapes_of(draw, number):
    """Draw a shape with that many elements: its prime factors in any order, some of them multiplied."""
    shape = [1] if draw(st.integers(0, 4)) == 0 else []
    for factor in draw(st.permutations(factors(number))):
        if shape and draw(st.booleans()):
            shape[-1] *= factor
        else:
            shape.append(factor)
    return tuple(shape)


def choices(shape, fits):
    """Return, for each operation that suits a shape, the strategy of its parameters.

    Parameters
    ----------
    shape : tuple of int
    fits : list of int
        Numbers of the results before that have the same shape.
    """
    n, size = len(shape), torch.Size(shape).numel()
    axis = st.integers(0, n - 1)
    bits = st.lists(st.booleans(), min_size=size, max_size=size).map(tuple)
    small = size * 2 <= LARGEST

    def at(axis, *more):
        return st.tuples(st.just(axis), *more)

    def place(axis):
        return st.integers(0, shape[axis] - 1)

    def first(one, other):
        """Draw an index along the first axis once two axes have been swapped."""
        return place(other if one == 0 else one if other == 0 else 0)

    found = {
        "reshape": st.tuples(shapes_of(size)),
        "weigh": st.just(()),
        "sin": st.just(()),
        "write flat": st.tuples(st.integers(0, size - 1), st.integers(1, 3)),
    }
    if n == 0:
        return found
    found |= {
        "permute": st.tuples(st.permutations(range(n)).map(tuple)),
        "slice": axis.flatmap(
            lambda a: at(a, st.integers(0, max(0, shape[a] - 2)), st.just(shape[a]), st.integers(1, 2))
        ),
        "flip": st.tuples(axis),
        "roll": st.tuples(axis, st.integers(1, 2)),
        "index": axis.flatmap(lambda a: at(a, st.lists(place(a), min_size=1, max_size=shape[a]).map(tuple))),
        "gather": axis.flatmap(lambda a: at(a, st.lists(place(a), min_size=size, max_size=size).map(tuple))),
        "write slice": axis.flatmap(lambda a: at(a, place(a), place(a), st.just(1))),
        "accumulate": axis.flatmap(lambda a: at(a, place(a), place(a))),
        "broadcast": axis.flatmap(lambda a: at(a, place(a))),
        "mask": st.tuples(bits),
        "sum": st.tuples(axis),
        "cumsum": st.tuples(axis),
        "centre": st.tuples(axis),
        "softmax": st.tuples(axis, st.one_of(st.none(), bits)),
        "linear": st.tuples(st.integers(1, 3)),
        "offset": st.tuples(bits),
        "relu": st.just(()),
        "low": st.tuples(bits),
        "high": st.tuples(axis),
        "softmax by hand": st.tuples(axis, bits),
        "clamp": st.just(()),
        "sort": st.tuples(axis),
        "amax": st.tuples(axis),
        "choice": st.tuples(axis),
    }
    if fits:
        earlier = st.sampled_from(fits)
        found |= {
            "residual": st.tuples(earlier),
            "product": st.tuples(earlier),
            "where": st.tuples(bits, earlier),
        }
    if small:
        found |= {
            "unsqueeze and expand": st.tuples(st.integers(0, n), st.just(2)),
            "cat": st.tuples(axis),
            "constants": st.tuples(axis),
            "pad and logarithm": st.just(()),
            "pad and reciprocal": st.just(()),
            "stack": st.tuples(st.integers(0, n)),
            "pad": st.tuples(st.integers(0, 1), st.integers(0, 1)),
        }
    if small and max(shape) > 1:
        found["unfold"] = st.tuples(st.just(shape.index(max(shape))), st.just(2))
    if shape[-1] > 2:
        # Two elements normalised are 1 and -1 whatever they are.
        found["norm"] = st.just(())
    if n > 1:
        pair = st.permutations(range(n)).map(lambda order: tuple(order[:2]))
        found["diagonal"] = pair
        found["write transposed"] = pair.flatmap(lambda ab: st.tuples(*map(st.just, ab), first(*ab), first(*ab)))
        found["triangle"] = st.just(())
        found["attention"] = st.tuples(st.booleans())
        if size // shape[-1] * shape[-2] <= LARGEST:
            found["gram"] = st.just(())
    if n == 3:
        found["convolution"] = st.sampled_from([(1, 1, 0, 1), (2, 1, 1, 1), (2, 2, 1, 1), (2, 1, 1, shape[1])])
        found["recurrence"] = st.just(())
        if shape[-1] > 1:
            found["max pool"] = st.just(())
    return found


# Merging and splitting tracked axes goes wrong most easily: these come several times as often as the others.
OFTEN = ("reshape", "permute")
WEIGHT = 4


@st.composite
def programs(draw, kinks=False, longest=7):
    """Draw a program, and which axes of its input are told apart."""
    shape = tuple(draw(st.lists(st.sampled_from([2, 3, 4, 1]), min_size=2, max_size=3)))
    steps, past = [], [torch.zeros(shape)]
    for _ in range(draw(st.integers(2, longest))):
        now = past[-1].shape
        fits = [k for k, tensor in enumerate(past) if tensor.shape == now]
        options = {op: s for op, s in choices(tuple(now), fits).items() if kinks or op not in KINKS}
        names = [op for op in options for _ in range(WEIGHT if op in OFTEN else 1)]
        op = draw(st.sampled_from(names))
        steps.append(Step(op, draw(options[op])))
        with torch.no_grad():
            past.append(OPS[op](past, lambda *shape: torch.ones(shape), *steps[-1].parameters))
    if kinks and not KINKS.intersection(step.op for step in steps):
        steps.append(Step("relu", ()))
    axes = draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True).map(tuple))
    return Program(shape, steps), axes
