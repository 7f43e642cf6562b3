"""The operators of PyTorch's own operator database, with small arguments for each."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch.utils import _pytree as pytree

# Integer operators come with integer samples; everything else is measured in double precision.
_DTYPES = (torch.float64, torch.complex128, torch.int64, torch.float32, torch.bool)
_LARGEST = 20_000  # elements; beyond, measuring takes too long
_MATRIX = 4_000_000  # pairs of an input's and an output's element


@dataclass(frozen=True, eq=False)
class Sample:
    """One call of an operator: every tensor among its arguments counts as data.

    Attributes
    ----------
    op : str
        Its name in the database.
    number : int
        Which of the database's samples it is.
    function : callable
    tensors : list of tensors
        All tensors among the arguments, in order.
    spec, leaves
        The arguments flattened, None where a tensor belongs.
    """

    op: str
    number: int
    function: Callable[..., Any]
    tensors: list[torch.Tensor]
    spec: pytree.TreeSpec
    leaves: list[Any]

    def __call__(self, *tensors: torch.Tensor) -> Any:
        """Call the operator with other tensors in place of its own."""
        given = iter(tensors)
        leaves = [next(given) if leaf is _TENSOR else leaf for leaf in self.leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return self.function(*args, **kwargs)

    def run(self, tensors: list[torch.Tensor], seed: int = 0) -> list[torch.Tensor]:
        """Return the tensors among the results; the arguments stay what they are."""
        torch.default_generator.manual_seed(seed)  # torch.manual_seed looks for accelerators, slowly
        torch.use_deterministic_algorithms(True, warn_only=True)  # this fills memory that nobody writes to
        try:
            with torch.no_grad():
                return results(self(*(t.clone() for t in tensors)))
        finally:
            torch.use_deterministic_algorithms(False)

    @property
    def kind(self) -> Any:
        """What tells samples apart besides sizes: which arguments are given, and how."""
        shapes = tuple((t.ndim, t.dtype, 0 in t.shape) for t in self.tensors)
        return (repr([x for x in self.leaves if x is not _TENSOR]), str(self.spec), shapes)

    @property
    def form(self) -> Any:
        """All but the values of the tensors."""
        return (
            [(t.shape, t.dtype, t.layout) for t in self.tensors],
            repr([x if not isinstance(x, torch.Generator) else 0 for x in self.leaves]),
            self.spec,
        )


class _TENSOR:
    """Stands where a tensor belongs."""


def results(result: Any) -> list[torch.Tensor]:
    """Return the tensors among what an operator returned."""
    return [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]


@lru_cache(maxsize=1)
def database() -> dict[str, Any]:
    """Return the operators by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal import common_methods_invocations as invocations

    # Random operators are wrapped to fix the seed, which would hide what they do on other draws.
    invocations.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)
    found: dict[str, Any] = {}
    for op in invocations.op_db:
        name = op.name + (f"-{op.variant_test_name}" if op.variant_test_name else "")
        found[name] = op
    return found


def samples(name: str, seed: int = 0) -> list[Sample]:
    """Return all samples of an operator, their values drawn with the given seed."""
    op = database()[name]
    dtype = next((d for d in _DTYPES if d in op.dtypes), None) or next(iter(sorted(op.dtypes, key=str)), torch.float64)
    torch.manual_seed(seed)
    found = []
    for number, given in enumerate(op.sample_inputs("cpu", dtype, requires_grad=False)):
        leaves, spec = pytree.tree_flatten(((given.input, *given.args), given.kwargs))
        tensors = [leaf.detach() for leaf in leaves if isinstance(leaf, torch.Tensor)]
        leaves = [_TENSOR if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        found.append(Sample(name, number, op.op, tensors, spec, leaves))
    return found


def redrawn(sample: Sample, seeds: Iterator[int]) -> Iterator[list[torch.Tensor]]:
    """Yield other values for a sample's tensors, as the database draws them, one list a seed."""
    for seed in seeds:
        again = samples(sample.op, seed)
        if sample.number < len(again) and again[sample.number].form == sample.form:
            yield again[sample.number].tensors


def chosen(name: str, most: int) -> list[Sample]:
    """Return up to that many samples: the smallest ones, arguments as different as possible."""
    fit = [s for s in samples(name) if 0 < _size(s) <= _LARGEST]
    by_kind: dict[Any, list[Sample]] = {}
    for sample in sorted(fit, key=lambda s: (_size(s) < 2, _size(s), s.number)):
        by_kind.setdefault(sample.kind, []).append(sample)
    rounds: list[Sample] = []
    groups = sorted(by_kind.values(), key=lambda g: _size(g[0]) < 2)
    depth = 0
    while len(rounds) < most and any(len(g) > depth for g in groups):
        layer = [g[depth] for g in groups if len(g) > depth]
        want = most - len(rounds)
        step = max(1.0, len(layer) / want)
        rounds += [layer[math.floor(k * step)] for k in range(min(want, len(layer)))]
        depth += 1
    return rounds


def _size(sample: Sample) -> int:
    return sum(t.numel() for t in sample.tensors)
