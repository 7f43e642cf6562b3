"""What Python computes from values that left the graph, led back to the tensors they were taken from.

``x / float(x.abs().max())`` leaves a division by a number behind, ``torch.from_numpy(f(x.numpy()))`` a tensor from
nowhere. What such a number or tensor was computed from is found out by trying: the model is run again with one of the
values that left changed, and whatever then is another number or tensor in the line of operations came of it.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Collection
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import fx
from torch.utils import _pytree as pytree

from depgraph.tracing.escapes import Escape, return_too, strangers
from depgraph.tracing.opaque import ITEM
from depgraph.tracing.origin import line_of_node

if TYPE_CHECKING:
    from depgraph.tracing.specialised import Recording

Place = tuple[int, Any]  # a node by its number; which of its arguments, none where it is a tensor itself
Run = Callable[[Collection[int], float], "Recording"]

_SHIFTS = (2.0**-10, 0.5)  # the first takes the same branches as the example, the second gets past a limit
_GROUPS = 8  # of values that left; beyond, several are changed at once
_NUMBERS = ("number", "Optional[number]", "float", "Optional[float]", "Tensor")


# Tagged as random, lest PyTorch runs it where all that it reads is constant.
@torch.library.custom_op("depgraph::python", mutates_args=(), tags=(torch.Tag.nondeterministic_seeded,))
def python(value: torch.Tensor, read: list[torch.Tensor]) -> torch.Tensor:
    """Return a tensor that Python computed from what it read of others."""
    return value.clone()


@python.register_fake
def _(value: torch.Tensor, read: list[torch.Tensor]) -> torch.Tensor:
    return torch.empty_like(value)


PYTHON = torch.ops.depgraph.python.default


def shifted(value: Any, by: float) -> Any:
    """Return another value of the same kind: a number, or a nest of numbers or an array, all of whose numbers differ.

    Examples
    --------
    >>> shifted([1.0, 2, True], 0.5)
    [2.0, 1, False]
    """
    if isinstance(value, np.ndarray):
        if value.dtype == bool:
            return ~value
        if value.dtype.kind in "iu":
            return value + value.dtype.type(1 if by < 0.1 else -1)
        moved = value + np.maximum(np.abs(value), by) * by * (1 + (by > 0.1))
        return np.where(np.isfinite(value), moved, 1).astype(value.dtype)
    if isinstance(value, (list, tuple)):
        return type(value)(shifted(item, by) for item in value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + (1 if by < 0.1 else -1)
    if isinstance(value, (float, complex)):
        size = abs(value)
        return value + max(size, by) * by * (1 + (by > 0.1)) if math.isfinite(size) else 1.0
    return value


def lead_back(recording: Recording, run: Run) -> None:
    """Make the numbers and tensors in a line that Python computed read what they were computed from.

    Parameters
    ----------
    recording : Recording
        Its line is changed; each escape is marked as followed if all that was computed from it is known, and the
        tensors that came from nowhere are added to them.
    run : callable
        Records the model again, the values that left with these numbers shifted by as much; without any, the inputs.
    """
    line, escapes = recording.line, recording.escapes
    left = [k for k, escape in enumerate(escapes[: recording.watched]) if escape.kind in ("number", "array")]
    strange = strangers(line, recording.known)
    if not left and not strange:
        return
    nodes = list(line.graph.nodes)
    order = {node: k for k, node in enumerate(nodes)}
    copies = recording.copies()
    found: dict[Place, set[int]] = {}
    for group in np.array_split(left, min(len(left), _GROUPS)) if left else ():
        changed = group.tolist()
        tries = [_differences(line, run, changed, by) for by in _SHIFTS]
        for place in (place for places, _ in tries for place in places):
            found.setdefault(place, set()).update(changed)
        if any(complete for _, complete in tries):
            for k in changed:
                escapes[k] = replace(escapes[k], followed=True)
    unwatched, complete = _differences(line, run, (), _SHIFTS[0])
    given = nodes[len(recording.state) : len(recording.state) + recording.inputs]
    for k, at in sorted({*found, *unwatched}, key=str):
        reads = [e for e in sorted(found.get((k, at), ())) if order[copies[e]] < k]
        if not reads and not given:
            continue  # drawn at random, perhaps: there is nothing that it could have been computed from
        if at is None:
            _lead_tensor(line, nodes[k], [copies[e] for e in reads] or given)
        else:
            value: Any = nodes[k].kwargs[at] if isinstance(at, str) else nodes[k].args[at]
            reads = [e for e in reads if not _differ(escapes[e].value, value)] or reads
            same = len(reads) == 1 and not _differ(escapes[reads[0]].value, value)
            _lead_number(nodes[k], at, value, [copies[e] for e in reads] or given, same=same)
    for node in strange:
        place = (order[node], None)
        if (place in unwatched and place not in found) or not complete:
            form = tuple(getattr(line, str(node.target)).shape)
            escapes.append(Escape("stranger", "", form, line_of_node(node), place in unwatched))
            return_too(line.graph, [node])


def _differences(line: fx.GraphModule, run: Run, changed: Collection[int], by: float) -> tuple[list[Place], bool]:
    """Run again with something changed.

    Returns
    -------
    list of Place
        Where the line then has another number or another tensor.
    bool
        Whether it is the same line otherwise.
    """
    places: list[Place] = []
    with suppress(Exception), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        other = run(changed, by).line
        nodes, others = list(line.graph.nodes), list(other.graph.nodes)
        order, other_order = ({node: k for k, node in enumerate(each)} for each in (nodes, others))
        for k, (node, twin) in enumerate(zip(nodes, others, strict=False)):
            if node.op == "output" == twin.op:
                return places, True
            if _form(node, order) != _form(twin, other_order):
                break
            if node.op == "get_attr":
                one, two = getattr(line, str(node.target), None), getattr(other, str(twin.target), None)
                if isinstance(one, torch.Tensor) and isinstance(two, torch.Tensor) and not _equal(one, two):
                    places.append((k, None))
            for (at, one), (_, two) in zip(_numbers(node), _numbers(twin), strict=True):
                if _differ(one, two):
                    places.append((k, at))
    return places, False


def _equal(one: torch.Tensor, two: torch.Tensor) -> bool:
    return one.is_meta or torch.equal(one.nan_to_num(), two.nan_to_num())


def _differ(one: Any, two: Any) -> bool:
    return type(one) is not type(two) or (one != two and not (one != one and two != two))


def _form(node: fx.Node, order: dict[fx.Node, int]) -> Any:
    """Return all that has to be the same for two nodes to be the same operation."""
    numbers = {at for at, _ in _numbers(node)}
    args = [None if k in numbers else a for k, a in enumerate(node.args)]
    kwargs = {k: None if k in numbers else a for k, a in node.kwargs.items()}
    read = pytree.tree_map(
        lambda leaf: ("node", order[leaf]) if isinstance(leaf, fx.Node) else repr(leaf), (args, kwargs)
    )
    forms = [(v.shape, v.dtype) for v in pytree.tree_leaves(node.meta.get("val")) if isinstance(v, torch.Tensor)]
    return node.op, str(node.target), read, forms, numbers


def _numbers(node: fx.Node) -> list[tuple[Any, Any]]:
    """Return place and value of the arguments of an operation that may be any number."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return []
    found: list[tuple[Any, Any]] = []
    for k, argument in enumerate(node.target._schema.arguments):
        at: Any = argument.name if argument.name in node.kwargs else k
        value = node.kwargs.get(argument.name, node.args[k] if k < len(node.args) else None)
        if str(argument.type) in _NUMBERS and isinstance(value, (bool, int, float, complex)):
            found.append((at, value))
    return found


def _lead_tensor(line: fx.GraphModule, node: fx.Node, sources: list[fx.Node]) -> None:
    """Make a tensor that Python computed read others."""
    users = list(node.users)
    with line.graph.inserting_after(node):
        computed = line.graph.call_function(PYTHON, (node, sources))
    computed.meta = {**node.meta, "val": getattr(line, str(node.target))}
    for user in users:
        user.replace_input_with(node, computed)


def _lead_number(node: fx.Node, at: int | str, value: Any, sources: list[fx.Node], *, same: bool) -> None:
    """Make an operation take a number from a tensor: from the one that it was read off if it is still the same."""
    graph = node.graph
    with graph.inserting_before(node):
        (tensor, *_) = sources
        if not same or type(torch.zeros((), dtype=tensor.meta["val"].dtype).item()) is not type(value):
            filled = torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)
            constant = graph.call_function(torch.ops.aten.scalar_tensor.default, (value,), {"dtype": filled.dtype})
            tensor = graph.call_function(PYTHON, (constant, sources))
            constant.meta = tensor.meta = {**node.meta, "val": filled}
        number = graph.call_function(ITEM, (tensor,))
    number.meta = {**node.meta, "val": value}
    if isinstance(at, str):
        node.update_kwarg(at, number)
    else:
        node.update_arg(at, number)
