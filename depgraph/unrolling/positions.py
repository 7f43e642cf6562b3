"""Which axes are told apart: as the user names them, else chosen by the first operation that consumes the input."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import fx

from depgraph.errors import PositionError
from depgraph.tracing.program import Leaf, Program


@dataclass
class Plan:
    """Decisions about inputs and outputs, by canonical name.

    Attributes
    ----------
    tracked : dict
        Input to its position axes.
    parameters : dict
        Parameter or buffer that is treated as an input, to its position axes.
    outputs : dict
        Output to its position axes; those not in it are inferred.
    known : dict
        Input held at its example value, to the reason, "" where the user asked for it.
    notes : list of str
        What was chosen without being asked for.
    """

    tracked: dict[str, tuple[int, ...]] = field(default_factory=dict)
    parameters: dict[str, tuple[int, ...]] = field(default_factory=dict)
    outputs: dict[str, tuple[int, ...]] = field(default_factory=dict)
    known: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def check(positions: Any, known: Any) -> None:
    """Raise where what the user names positions and known inputs with has another form than it should.

    Raises
    ------
    PositionError
        Saying what is expected.
    """
    if positions is not None and not isinstance(positions, Mapping):
        raise PositionError(
            "positions is a dict from names to axes, such as {'x': 1} or {'image': (2, 3)}; got "
            f"{_shown(positions)}."
        )
    names = [known] if isinstance(known, (str, int)) or known is None else known
    if isinstance(names, torch.Tensor) or not isinstance(names, Iterable):
        raise PositionError(f"known is a list of inputs by their names, such as ['mask']; got {_shown(known)}.")
    for key in [*(positions or {}), *([] if known is None else names)]:
        if isinstance(key, bool) or not isinstance(key, Hashable):
            raise PositionError(f"Inputs and outputs go by names, or numbers from 0 on; got {_shown(key)}.")


def _shown(value: Any) -> str:
    return f"a tensor of shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else repr(value)


def plan(program: Program, positions: Mapping[Any, Any] | None, known: Iterable[Any] | None) -> Plan:
    """Resolve the names and axes that the user gave, and choose the rest.

    Raises
    ------
    PositionError
        Where a name or an axis does not exist; the message lists those that do.
    """
    result = Plan()
    inputs, outputs = keys(program.inputs), keys(program.outputs)
    weights = {source.name: source.value for source in program.sources.values() if source.kind != "input"}
    for key, axes in (positions or {}).items():
        if key in inputs:
            chosen, name, shape = result.tracked, inputs[key].name, inputs[key].value.shape
        elif key in outputs:
            chosen, name, shape = result.outputs, outputs[key].name, outputs[key].value.shape
        elif key in weights or key in program.tied:
            name = program.tied.get(key, key)
            chosen, shape = result.parameters, weights[name].shape
        else:
            raise PositionError(
                f"positions names {key!r}, which is neither an input, an output nor a parameter. Inputs: "
                f"{_listed(program.inputs)}; outputs: {_listed(program.outputs)}; parameters and buffers by their "
                f"dotted names{_such_as(weights)}."
            )
        if name in chosen:
            raise PositionError(f"positions names {name} twice, the second time as {key!r}: name it once.")
        chosen[name] = axes_of(name, shape, axes)
    for key in [known] if isinstance(known, (str, int)) else known or ():
        if key not in inputs:
            raise PositionError(
                f"known names {key!r}, which is not an input. The inputs are: {_listed(program.inputs)}."
            )
        name = inputs[key].name
        if result.tracked.get(name):
            raise PositionError(f"{name} cannot be both tracked and known: leave it out of positions or out of known.")
        if inputs[key].value.device.type == "meta":
            raise PositionError(f"{name} is on the meta device and has no value to be held at.")
        result.known[name] = ""
    if not result.tracked and not result.parameters:
        for leaf in program.inputs:
            axes = () if leaf.name in result.known or not leaf.value.numel() else infer(program, leaf)
            if axes:
                result.tracked[leaf.name] = axes
                result.notes.append(
                    f"{leaf.name}: tracked along axis {axes[0]} (inferred)"
                    if len(axes) == 1
                    else f"{leaf.name}: tracked along axes {', '.join(map(str, axes))} (inferred)"
                )
    if not positions and program.inputs and not any(leaf.value.numel() for leaf in program.inputs):
        sizes = ", ".join(f"{leaf.name} of shape {tuple(leaf.value.shape)}" for leaf in program.inputs)
        raise PositionError(f"The example inputs hold no elements ({sizes}): give them at least one position.")
    for leaf in program.inputs:
        is_flag = leaf.value.dtype == torch.bool and leaf.value.device.type != "meta"
        if is_flag and leaf.name not in result.tracked and leaf.name not in result.known:
            result.known[leaf.name] = f"{leaf.name}: boolean and not tracked, so held at its example value"
    result.notes.extend(reason for reason in result.known.values() if reason)
    return result


def keys(leaves: Sequence[Leaf]) -> dict[Hashable, Leaf]:
    """Return every key that leaves answer to; a canonical name goes before another's alias."""
    found: dict[Hashable, Leaf] = {}
    for leaf in leaves:
        for alias in leaf.aliases:
            found.setdefault(alias, leaf)
    return found | {leaf.name: leaf for leaf in leaves}


def axes_of(name: str, shape: Sequence[int], axes: Any) -> tuple[int, ...]:
    """Return axes as distinct non-negative numbers.

    Raises
    ------
    PositionError
        Where an axis does not exist or is named twice.
    """
    single = isinstance(axes, (str, bytes, Mapping)) or not isinstance(axes, Iterable) or getattr(axes, "ndim", 1) == 0
    given = (axes,) if single else tuple(axes)
    for axis in given:
        whole = isinstance(axis, (int, np.integer)) and not isinstance(axis, bool)
        if not whole or not -len(shape) <= axis < len(shape):
            valid = f"axes 0 to {len(shape) - 1}" if len(shape) else "no axes"
            raise PositionError(f"{name} of shape {tuple(shape)} has {valid}; there is no axis {axis!r}.")
    result = tuple(int(axis) % len(shape) for axis in given)
    if len(set(result)) < len(result):
        raise PositionError(f"positions names an axis of {name} twice: {given}.")
    return result


def infer(program: Program, leaf: Leaf) -> tuple[int, ...]:
    """Choose the axes to track of an input: time for sequences, height and width for images."""
    value = leaf.value
    if value.dtype == torch.bool:
        return ()
    found = first_consumer(program, leaf)
    axes, origin = (None, []) if found is None else (_axes_by(*found), found[2])
    if axes is not None:
        return tuple(sorted(origin[axis] for axis in axes if origin[axis] >= 0))
    if value.is_floating_point() or value.is_complex():
        return (1,) if value.ndim >= 3 else ()
    return (1,) if value.ndim >= 2 else ()


def _axes_by(consumer: fx.Node, read: fx.Node, origin: Sequence[int]) -> Sequence[int] | None:
    """Return the axes that an operation tells positions apart by, of what it reads; None where it says nothing."""
    schema = getattr(consumer.target, "_schema", None)
    name = "" if schema is None else schema.name.partition("::")[2].lstrip("_")
    ndim, is_data = len(origin), bool(consumer.args) and consumer.args[0] is read
    digits = [int(c) for c in name if c.isdigit()]
    if ("conv" in name or "pool" in name) and is_data and digits and digits[0] < ndim:
        return range(ndim - digits[0], ndim)
    if name == "convolution" and is_data and ndim > 2:
        return range(2, ndim)
    if name.startswith("embedding") and not is_data:
        return range(1, ndim) or range(ndim)
    if name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        if not is_data:  # a state stands at no time
            return ()
        return (1,) if ndim == 3 and consumer.args[-1] is True else (0,)
    return None


# Operations that keep every axis where it is: what reads their result is what reads the input.
_KEEPS_AXES = frozenset(
    ("constant_pad_nd", "pad", "clone", "contiguous", "detach", "alias", "_to_copy", "to", "dropout")
)


def first_consumer(program: Program, leaf: Leaf) -> tuple[fx.Node, fx.Node, list[int]] | None:
    """Return the first operation that reads an input, be it padded, copied, cast or transposed before.

    Returns
    -------
    consumer : torch.fx.Node
    read : torch.fx.Node
        What it reads: the input, or a moved copy of it.
    origin : list of int
        For each axis of that, which axis of the input it is; -1 for one that was put in.
    """
    carriers: dict[fx.Node, list[int]] = {}
    for node in program.graph.nodes:
        source = program.sources.get(node.name) if node.op == "placeholder" else None
        if source is not None and source.kind == "input" and source.name == leaf.name:
            carriers[node] = list(range(leaf.value.ndim))
            continue
        read = next((n for n in node.all_input_nodes if n in carriers), None) if node.op == "call_function" else None
        if read is not None:
            moved = _moved(node, carriers[read])
            if moved is None:
                return node, read, carriers[read]
            carriers[node] = moved
    return None


def _moved(node: fx.Node, axes: list[int]) -> list[int] | None:
    """Return where an operation that only moves axes puts them; None for any other operation."""
    schema = getattr(node.target, "_schema", None)
    name = "" if schema is None else schema.name.partition("::")[2]
    moved = list(axes)
    if name in _KEEPS_AXES:
        return moved
    if name == "unsqueeze":
        moved.insert(_number(node.args[1]) % (len(axes) + 1), -1)
        return moved
    if name == "transpose":
        one, other = (_number(axis) for axis in node.args[1:3])
        moved[one], moved[other] = moved[other], moved[one]
        return moved
    if name == "permute" and isinstance(node.args[1], (list, tuple)):
        return [axes[_number(axis)] for axis in node.args[1]]
    return None


def _number(argument: Any) -> int:
    return int(argument)


def _listed(leaves: Sequence[Leaf]) -> str:
    return ", ".join(leaf.name for leaf in leaves) or "none"


def _such_as(names: Mapping[str, Any]) -> str:
    some = [name for name in names if name][:3]
    return f" (such as {', '.join(some)})" if some else " (there are none)"
