"""Independent oracles of what an output reads: derivatives, and changes of one value at a time.

Both look at numbers, never at the graph. A derivative that is not zero, or a result that changes, proves a dependence;
over several draws of generic numbers, none of either means none, but for cancellations and kinks.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn
from torch.utils import _pytree as pytree

import depgraph

# Derivatives of generic numbers are far from this; rounding errors are far below.
NOTHING = 1e-10


class Apply(nn.Module):
    """A function of tensors as a model."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def wide(tensor):
    """Return an argument in double precision."""
    return tensor.double() if tensor.is_floating_point() else tensor


def redrawn(tensor, draw=None):
    """Return other values for an argument: by ``draw`` if it is floating, in the range that it spans otherwise."""
    if tensor.is_floating_point():
        return torch.randn_like(tensor) if draw is None else draw(tensor)
    if tensor.dtype == torch.bool:
        return torch.rand(tensor.shape) < 0.5
    return torch.randint(int(tensor.min()), int(tensor.max()) + 1, tensor.shape).to(tensor.dtype)


def outputs_of(model, args):
    """Return the output tensors by name: their keys in a dict, else their numbers in flattening order."""
    results = model(*args)
    if isinstance(results, dict):
        return results
    return {str(k): leaf for k, leaf in enumerate(pytree.tree_leaves(results)) if isinstance(leaf, torch.Tensor)}


def folded(pattern, shape_in, axes_in, axes_out):
    """Turn a (*shape_in, *shape_out) pattern into one of positions: any element of the one to any of the other."""
    n, m = len(shape_in), pattern.ndim - len(shape_in)
    axes_in = range(n) if axes_in is None else axes_in
    axes_out = range(m) if axes_out is None else axes_out
    kept = [*axes_in, *(n + a for a in axes_out)]
    gone = [a for a in range(n + m) if a not in kept]
    grid = pattern.transpose(*kept, *gone).any(axis=tuple(range(len(kept), n + m)))
    return grid.reshape(math.prod(shape_in[a] for a in axes_in), -1)


def jacobian(model, args, source=0, draws=6, draw=None):
    """Return where the derivatives of the outputs by an argument are not zero, in float64, over several draws.

    Parameters
    ----------
    model : callable
    args : sequence of tensors
        Drawn anew each time.
    source : int
        Which argument.

    Returns
    -------
    dict
        Name of each floating output, see `outputs_of`, to a bool array: (*shape of the argument, *shape of the output).
    """
    names: list = []
    patterns: dict = {}
    for _ in range(draws):
        here = [redrawn(wide(a), draw) for a in args]

        def smooth(value, here=here):
            found = outputs_of(model, [*here[:source], value, *here[source + 1 :]])
            names[:] = [name for name, tensor in found.items() if tensor.is_floating_point()]
            return tuple(found[name] for name in names)

        found = torch.autograd.functional.jacobian(smooth, here[source])
        for name, matrix in zip(names, found, strict=True):
            m = matrix.ndim - here[source].ndim
            matrix = matrix.permute((*range(m, matrix.ndim), *range(m))).abs() > NOTHING
            patterns[name] = patterns.get(name, False) | matrix.numpy()
    return patterns


def changes(model, args, source=0, draws=16, draw=None):
    """Return where the outputs change when one element of an argument is drawn anew; see `jacobian`.

    For what has no derivatives: indices, masks, comparisons, maxima.
    """
    args = [wide(a) for a in args]
    patterns: dict = {}
    for _ in range(draws):
        here = [redrawn(a, draw) for a in args]
        before = outputs_of(model, here)
        other = redrawn(args[source], draw).reshape(-1)
        rows: dict = {name: [] for name in before}
        for k in range(len(other)):
            flat = here[source].clone().reshape(-1)
            flat[k] = other[k]
            after = outputs_of(model, [*here[:source], flat.reshape(args[source].shape), *here[source + 1 :]])
            for name, old in before.items():
                rows[name].append((after[name] != old) & ~(after[name].isnan() & old.isnan()))
        for name, old in before.items():
            pattern = torch.stack(rows[name]).reshape(*args[source].shape, *old.shape).numpy()
            patterns[name] = patterns.get(name, False) | pattern
    return patterns


def reads(graph, source, target, expected, exact=True):
    """Assert that an output reads of an input what an oracle found, and no more where that is ``exact``."""
    found = depgraph.path_lengths(graph, source, target) >= 0
    assert found.shape == expected.shape
    missed, extra = np.argwhere(expected & ~found), np.argwhere(found & ~expected)
    assert not len(missed), f"{source} → {target}: missed {missed.tolist()}"
    assert not (exact and len(extra)), f"{source} → {target}: too much {extra.tolist()}"


def check(
    function, *args, exact=True, oracle=None, known=(), warns=False, axes=None, out_axes=None, draws=None, draw=None
):
    """Compare everything that the outputs of a function read with an oracle, and return the graph.

    Parameters
    ----------
    function : callable
        Returns tensors, or a dict of them; a module is traced as it is.
    exact : bool
        Whether there must be no dependences but those found.
    oracle : {jacobian, changes}, optional
        By default derivatives where there are any.
    known : tuple of int
        Arguments held at their values.
    warns : bool
        Whether the graph may come with warnings.
    axes, out_axes : dict, optional
        Position axes of an argument or an output, by number or name; all of them by default.
    draws : int, optional
    draw : callable, optional
        Draws floating arguments.
    """
    model = function if isinstance(function, nn.Module) else Apply(function)
    model.double()
    args = tuple(wide(a) for a in args)
    axes = {k: tuple(range(a.ndim)) for k, a in enumerate(args) if k not in known} | (axes or {})
    results = outputs_of(model, args)
    out_axes = {k: tuple(range(r.ndim)) for k, r in results.items()} | (out_axes or {})
    names = {k: f"output.{place}" for place, k in enumerate(results)}
    graph = depgraph.trace(model, args, positions=axes | {names[k]: a for k, a in out_axes.items()}, known=known)
    assert warns or not graph.warnings, graph.warnings

    def held(*given):
        return model(*(args[k] if k in known else a for k, a in enumerate(given)))

    more = {"draw": draw} if draws is None else {"draw": draw, "draws": draws}
    for source, axes_in in axes.items():
        smooth = args[source].is_floating_point() and all(r.is_floating_point() for r in results.values())
        for name, pattern in (oracle or (jacobian if smooth else changes))(held, args, source, **more).items():
            expected = folded(pattern, args[source].shape, axes_in, out_axes[name])
            try:
                reads(graph, source, names[name], expected, exact)
            except AssertionError as error:
                raise AssertionError(f"{name}: {error}") from None
    return graph
