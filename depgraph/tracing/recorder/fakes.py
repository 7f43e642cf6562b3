"""Running operators without data: on fake tensors, with small values computed for real where they are known.

A model on the meta device has no data, and one that does not fit into memory is not to have any. What its masks,
lengths and positions hold is known all the same: they are small, and made of constants, buffers and example inputs. An
operator all of whose arguments have values runs on those too; what decides something is asked of the values.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from depgraph.tracing.private import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    natively,
    unrecorded,
)
from depgraph.tracing.recorder.functional import written
from depgraph.tracing.recorder.geometry import Geometry, has_strides, memory_of
from depgraph.tracing.recorder.memory import Memory

#: Elements of the largest tensor whose values are computed.
LARGEST = 1 << 20

_VALUES = "_depgraph_values"


class NoValuesError(Exception):
    """Something depends on values, and there are none."""


class Fakes:
    """Fake tensors that stand for a model's own, and the values that some of them have.

    Parameters
    ----------
    known : callable
        Returns the memory of a tensor, None where it has not been seen.
    alias : callable
        Told that the memory of a fake tensor is that one.
    """

    def __init__(self, known: Callable[[Tensor], Memory | None], alias: Callable[[Tensor, Memory], None]) -> None:
        self._known, self._alias = known, alias
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        self._bases: dict[int, tuple[Any, Tensor]] = {}
        self._tensors: dict[int, tuple[Tensor, Tensor]] = {}
        self._spoilt: dict[int, Any] = {}

    def stand_in(self, tensor: Tensor) -> Tensor:
        """Return the fake tensor for one; those that share memory stand for ones that do."""
        if isinstance(tensor, FakeTensor):
            return tensor
        form = Geometry.of(tensor)
        if id(tensor) in self._tensors and Geometry.of(self._tensors[id(tensor)][1]) == form:
            return self._tensors[id(tensor)][1]
        memory = self._known(tensor)
        with unrecorded():
            if not has_strides(tensor):
                fake: Tensor = self.mode.from_tensor(tensor)
                base = fake
            else:
                key, storage = memory_of(tensor)
                if key not in self._bases:
                    count = storage.nbytes() // tensor.element_size()
                    with self.mode:
                        self._bases[key] = storage, torch.empty(count, dtype=tensor.dtype, device=_place(tensor.device))
                base = self._bases[key][1]
                with self.mode:
                    plain = base.view(tensor.dtype).as_strided(form.size, form.stride, form.offset)
                    fake = plain.conj() if form.conjugated else plain
        if memory is not None:
            self._alias(base, memory)
        self._tensors[id(tensor)] = tensor, fake
        return fake

    def values(self, tensor: Tensor) -> Tensor | None:
        """Return a tensor with the values of one, None where they are not known."""
        found = getattr(tensor, _VALUES, None) if isinstance(tensor, FakeTensor) else tensor
        if found is None or found.is_meta or found.numel() > LARGEST or memory_of(found)[0] in self._spoilt:
            return None
        return found

    def perform(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an operator on fake tensors, and on values where all its arguments have some."""
        tensors = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        args, kwargs = pytree.tree_map_only(torch.device, _place, (args, kwargs))
        values = [self.values(tensor) for tensor in tensors]
        changed = written(op, args, kwargs) if op._schema.is_mutable else []
        known = all(value is not None for value in values) and torch.Tag.nondeterministic_seeded not in op.tags
        faked = pytree.tree_map_only(Tensor, self.stand_in, (args, kwargs))
        try:
            with unrecorded(), natively(), self.mode:
                result = op(*faked[0], **faked[1])
        except (DataDependentOutputException, DynamicOutputShapeException) as error:
            if not known:
                raise NoValuesError from error
            result = None
        real: Any = None
        if known and (result is None or _is_small(result)):
            held = dict(zip(map(id, tensors), values, strict=True))
            real_args, real_kwargs = pytree.tree_map_only(Tensor, lambda t: held[id(t)], (args, kwargs))
            with suppress(NotImplementedError), unrecorded(), natively():  # it may not run on this device
                real = op(*real_args, **real_kwargs)
        if real is not None:
            if result is None:
                with unrecorded():
                    result = pytree.tree_map_only(Tensor, self.mode.from_tensor, real)
            for fake, value in zip(pytree.tree_leaves(result), pytree.tree_leaves(real), strict=True):
                if isinstance(fake, FakeTensor):
                    setattr(fake, _VALUES, value)
        else:
            for one in changed:
                if (value := self.values(one.tensor)) is not None:
                    self._spoilt[memory_of(value)[0]] = value
        # What is written to is returned as the object that was given.
        given = {id(fake): tensor for tensor, fake in zip(tensors, map(self.stand_in, tensors), strict=True)}
        return pytree.tree_map_only(Tensor, lambda t: given.get(id(t), t), result)

    def given(self, tensor: Tensor) -> Tensor:
        """Return what a model is given for an example input: a fake tensor that has its values."""
        fake = self.stand_in(tensor)
        if not tensor.is_meta and tensor.numel() <= LARGEST:
            setattr(fake, _VALUES, tensor)
        return fake.requires_grad_(tensor.requires_grad) if tensor.requires_grad else fake


def _place(device: torch.device) -> torch.device:
    return torch.device("cpu") if device.type == "meta" else device


def _is_small(result: Any) -> bool:
    return all(leaf.numel() <= LARGEST for leaf in pytree.tree_leaves(result) if isinstance(leaf, Tensor))
