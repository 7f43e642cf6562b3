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
from torch.fx.node import map_aggregate
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
                with self.mode:
                    seen = key in self._bases
                    if not seen:
                        self._bases[key] = storage, _laid_out_alike(tensor, form, storage)
                    base = fake = self._bases[key][1]
                    if seen or Geometry.of(base) != form:
                        line = base.as_strided((base.numel(),), (1,)).view(tensor.dtype)
                        plain = line.as_strided(form.size, form.stride, form.offset)
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
        held: dict[int, tuple[Tensor, Tensor, Tensor | None]] = {}  # a tensor, what stands for it, and its values

        def faked(leaf: Any) -> Any:
            if isinstance(leaf, torch.device):
                return _place(leaf)
            if not isinstance(leaf, Tensor):
                return leaf
            if id(leaf) not in held:
                held[id(leaf)] = leaf, self.stand_in(leaf), self.values(leaf)
            return held[id(leaf)][1]

        faked_args, faked_kwargs = map_aggregate((args, kwargs), faked)
        changed = written(op, args, kwargs) if op._schema.is_mutable else []
        known = torch.Tag.nondeterministic_seeded not in op.tags and all(v is not None for _, _, v in held.values())
        try:
            with unrecorded(), natively(), self.mode:
                result = op(*faked_args, **faked_kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException) as error:
            if not known:
                raise NoValuesError from error
            result = None
        real: Any = None
        if known and (result is None or _is_small(result)):
            real_args, real_kwargs = map_aggregate((args, kwargs), lambda leaf: _with_values(leaf, held))
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
        given = {id(fake): tensor for tensor, fake, _ in held.values()}
        if isinstance(result, Tensor):
            return given.get(id(result), result)
        return pytree.tree_map_only(Tensor, lambda t: given.get(id(t), t), result)

    def given(self, tensor: Tensor) -> Tensor:
        """Return what a model is given for an example input: a fake tensor that has its values."""
        fake = self.stand_in(tensor)
        if not tensor.is_meta and tensor.numel() <= LARGEST:
            setattr(fake, _VALUES, tensor)
        return fake.requires_grad_(tensor.requires_grad) if tensor.requires_grad else fake


def _laid_out_alike(tensor: Tensor, form: Geometry, storage: Any) -> Tensor:
    """Return a tensor that has all of a memory: laid out like the one seen first, if that has all of it."""
    count = storage.nbytes() // tensor.element_size()
    whole = form.plain and not form.offset and form.elements == count and form.order() is not None
    size, stride = (form.size, form.stride) if whole else ((count,), (1,))
    return torch.empty_strided(size, stride, dtype=tensor.dtype, device=_place(tensor.device))


def _with_values(leaf: Any, held: dict[int, tuple[Tensor, Tensor, Tensor | None]]) -> Any:
    return held[id(leaf)][2] if isinstance(leaf, Tensor) else _place(leaf) if isinstance(leaf, torch.device) else leaf


def _place(device: torch.device) -> torch.device:
    return torch.device("cpu") if device.type == "meta" else device


def _is_small(result: Any) -> bool:
    return all(leaf.numel() <= LARGEST for leaf in pytree.tree_leaves(result) if isinstance(leaf, Tensor))
