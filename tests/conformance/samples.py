"""The operators of PyTorch's own operator database, with small arguments for each."""

from __future__ import annotations

import contextlib
import itertools
import random
import warnings
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

# Integer operators come with integer samples; everything else is measured in double precision.
DTYPES = (torch.float64, torch.complex128, torch.int64, torch.float32, torch.bool)
LARGEST = 20_000  # elements; beyond, measuring takes too long


class TENSOR:
    """Stands where a tensor belongs."""


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
    args, kwargs
        The arguments, `TENSOR` where a tensor belongs.
    """

    op: str
    number: int
    function: Callable[..., Any]
    tensors: list[torch.Tensor]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __call__(self, *tensors: torch.Tensor) -> Any:
        """Call the operator with other tensors in place of its own."""
        given = iter(tensors)
        args = filled(self.args, given)
        return self.function(*args, **filled(self.kwargs, given))

    def run(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        """Return the tensors among the results; the arguments stay what they are."""
        return results(self(*(t.clone() for t in tensors)))

    @property
    def kind(self) -> Any:
        """What tells samples apart besides sizes: which arguments are given, and how."""
        shapes = tuple((t.ndim, t.dtype, 0 in t.shape) for t in self.tensors)
        return repr((self.args, self.kwargs)), shapes

    @property
    def form(self) -> Any:
        """All but the values of the tensors."""
        return [(t.shape, t.dtype, t.layout) for t in self.tensors], repr((self.args, self.kwargs))


def filled(tree: Any, tensors: Iterator[torch.Tensor]) -> Any:
    """Put tensors where they belong."""
    if tree is TENSOR:
        return next(tensors)
    if isinstance(tree, (tuple, list)):
        items = [filled(item, tensors) for item in tree]
        return items if type(tree) is list else tuple(items) if type(tree) is tuple else type(tree)(items)
    if isinstance(tree, dict):
        return {key: filled(item, tensors) for key, item in tree.items()}
    return tree


def results(result: Any) -> list[torch.Tensor]:
    """Return the tensors among what an operator returned."""
    if isinstance(result, torch.Tensor):
        return [result]
    return [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]


@lru_cache(maxsize=1)
def database() -> dict[str, Any]:
    """Return the operators by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal import common_methods_invocations as invocations

    # Random operators are wrapped to fix the seed, which would hide what they do on other draws.
    invocations.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)
    return {op.name + (f"-{op.variant_test_name}" if op.variant_test_name else ""): op for op in invocations.op_db}


def samples(name: str, seed: int = 0) -> Generator[Sample]:
    """Yield all samples of an operator, their values drawn with the given seed."""
    op = database()[name]
    dtype = next((d for d in DTYPES if d in op.dtypes), None) or next(iter(sorted(op.dtypes, key=str)), torch.float64)
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - it is what the database draws from
    random.seed(seed)
    # Not `op.sample_inputs`: that wraps this generator so that it cannot be closed.
    drawn = iter(op.sample_inputs_func(op, "cpu", dtype, False))
    try:
        for number, given in enumerate(drawn):
            tree = ((given.input, *given.args), given.kwargs)
            tensors = [leaf.detach() for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]
            args, kwargs = pytree.tree_map_only(torch.Tensor, lambda _: TENSOR, tree)
            yield Sample(name, number, op.op, tensors, args, kwargs)
    finally:
        # Left to the garbage collector, it would switch gradients on or off in the middle of something else.
        if isinstance(drawn, Generator):
            drawn.close()


def redrawn(sample: Sample, seed: int) -> list[torch.Tensor] | None:
    """Return other values for a sample's tensors, as the database draws them with that seed."""
    with contextlib.closing(samples(sample.op, seed)) as drawn:
        again = next(itertools.islice(drawn, sample.number, None), None)
    return again.tensors if again is not None and again.form == sample.form else None


def chosen(name: str, most: int) -> list[Sample]:
    """Return up to that many samples with something to compare: small ones, arguments as different as possible.

    Where there is nothing to compare in any of them, one is returned all the same.
    """
    fit = [sample for sample in samples(name) if 0 < _size(sample) <= LARGEST]
    by_kind: dict[Any, list[Sample]] = {}
    for sample in sorted(fit, key=lambda s: (_size(s) < 2, _size(s), s.number)):
        by_kind.setdefault(sample.kind, []).append(sample)
    groups = sorted(by_kind.values(), key=lambda group: _size(group[0]) < 2)
    order: list[Sample] = []
    for depth in range(max(map(len, groups), default=0)):
        layer = [group[depth] for group in groups if len(group) > depth]
        first = [layer[k * len(layer) // most] for k in range(most)] if len(layer) > most else layer
        order += first + [sample for sample in layer if sample not in first]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(itertools.islice(filter(_comparable, order[: 20 * most]), most)) or order[:1]


def _comparable(sample: Sample) -> bool:
    if any(t.layout != torch.strided for t in sample.tensors):
        return False
    try:
        return any(out.numel() for out in sample.run(sample.tensors))
    except Exception:
        return False


def _size(sample: Sample) -> int:
    return sum(t.numel() for t in sample.tensors)
