"""Tensors inside containers: found with their paths, and put back.

Lists, tuples, named tuples, mappings, dataclasses and plain objects that hold tensors in their attributes (caches,
model outputs, batches) are all walked in the same way, so that no tensor is taken for a constant because of the
container it came in.
"""

from __future__ import annotations

import copy
import enum
import types
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import torch

Path = tuple[Any, ...]

_OPAQUE = (
    str,
    bytes,
    int,
    float,
    complex,
    range,
    enum.Enum,
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    torch.nn.Module,
    torch.Generator,
    torch.dtype,
    torch.device,
    torch.Size,
)


_REGISTERED = ("_parameters", "_buffers", "_modules")


class Found(NamedTuple):
    """A tensor, and the keys, indices and attribute names that lead to it."""

    path: Path
    tensor: torch.Tensor


def tensors_in(value: Any, *, private: bool = True) -> list[Found]:
    """Return every tensor in a nest of containers, in the order in which the containers list their contents.

    Parameters
    ----------
    value : object
    private : bool
        Whether to look into attributes of objects whose names begin with an underscore.
    """
    return _find(value, private, {})


def _find(value: Any, private: bool, seen: dict[int, tuple[Any, list[Found]]]) -> list[Found]:
    """Walk an object once, however many others refer to it; one that refers back to itself adds nothing."""
    if isinstance(value, torch.Tensor):
        return [Found((), value)]
    if _is_opaque(value):
        return []
    if id(value) not in seen:
        seen[id(value)] = value, []
        found = [
            Found((key, *path), tensor)
            for key, child in _children(value, private)
            for path, tensor in _find(child, private, seen)
        ]
        seen[id(value)] = value, found
    return seen[id(value)][1]


def held_by(model: torch.nn.Module) -> Iterator[tuple[str, str, torch.Tensor]]:
    """Yield every tensor that a model holds, with its dotted name and what it is: parameter, buffer or attribute.

    Attributes whose own methods raise when they are walked are passed over.
    """
    for path, module in model.named_modules():
        registered = {"parameter": module._parameters, "buffer": module._buffers}
        loose = {name: value for name, value in vars(module).items() if name not in _REGISTERED}
        kinds: list[tuple[str, Mapping[str, Any]]] = [*registered.items(), ("attribute", loose)]
        for kind, held in kinds:
            for name, value in held.items():
                found: list[Found] = []
                with suppress(Exception):
                    found = tensors_in(value)
                for inner, tensor in found:
                    yield kind, ".".join(map(str, (*([path] if path else []), name, *inner))), tensor


def replaced(value: Any, tensors: Sequence[torch.Tensor], *, fresh: bool = False) -> Any:
    """Return the same nest with its tensors, in the order of `tensors_in`, replaced by others. The original is kept.

    Parameters
    ----------
    value : object
    tensors : sequence of torch.Tensor
    fresh : bool
        Whether containers without tensors are copied too, because they may be written to.
    """
    found = tensors_in(value)
    return _replace(value, [(path, new) for (path, _), new in zip(found, tensors, strict=True)], fresh, {})


def _replace(value: Any, new: list[tuple[Path, torch.Tensor]], fresh: bool, above: dict[int, Any]) -> Any:
    if not new:
        return above[id(value)] if id(value) in above else _copied(value) if fresh else value
    if not new[0][0]:
        return new[0][1]
    below: dict[Any, list[tuple[Path, torch.Tensor]]] = {}
    for path, tensor in new:
        below.setdefault(path[0], []).append((path[1:], tensor))
    if isinstance(value, tuple):
        children = (_replace(child, below.get(key, []), fresh, above) for key, child in _children(value))
        return tuple.__new__(type(value), children)
    result = copy.copy(value)
    above = {**above, id(value): result}
    for key, child in _children(value):
        replacement = _replace(child, below.get(key, []), fresh, above)
        if replacement is child:
            continue
        if isinstance(value, (Mapping, Sequence)):
            result[key] = replacement
        else:
            object.__setattr__(result, key, replacement)  # frozen dataclasses refuse setattr
    return result


def _copied(value: Any) -> Any:
    """Return a copy of a container without tensors; what is none, or refuses, as it is."""
    if _is_opaque(value) or not (isinstance(value, (list, dict, set, deque)) or _children(value)):
        return value
    try:
        return copy.deepcopy(value)
    except Exception:  # locks, handles and the like
        return value


def _is_opaque(value: Any) -> bool:
    return value is None or isinstance(value, _OPAQUE)


def _children(value: Any, private: bool = True) -> list[tuple[Any, Any]]:
    """Return what a container holds, by key; nothing for what is no container."""
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return list(zip(value._fields, value, strict=True))
    if isinstance(value, (Sequence, deque)):
        return list(enumerate(value))
    return [(name, child) for name, child in _attributes(value).items() if private or not name.startswith("_")]


def _attributes(value: Any) -> dict[str, Any]:
    found = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                found[name] = getattr(value, name)
    return found
