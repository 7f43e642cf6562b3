"""What Python computes from values that left the graph, led back to the tensors they were taken from.

``x / float(x.abs().max())`` leaves a division by a number behind, ``torch.from_numpy(f(x.numpy()))`` a tensor from
nowhere. What such a number or tensor was computed from is found out by trying: the model is run again with one of the
values that left changed, and whatever then is another number or tensor in the line of operations came of it. A tensor
of which nothing is found that way (an order, a threshold) is taken to be made of all that left before.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Collection, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import fx
from torch.utils import _pytree as pytree

from depgraph.tracing.python.escapes import Escape
from depgraph.tracing.python.opaque import ITEM, PYTHON

if TYPE_CHECKING:
    from depgraph.tracing.recorder.record import Recording

aten = torch.ops.aten

Place = tuple[int, Any]  # a node by its number; which of its arguments, none where it is a tensor itself
Run = Callable[[Collection[int], float], "Recording"]

_SHIFTS = (2.0**-10, 0.5)  # the first takes the same branches as the example, the second gets past a limit
_TURNED = -1.0  # the order of what is in an array is another one
_GROUPS = 8  # of values that left; beyond, several are changed at once
_NUMBERS = ("number", "Optional[number]", "float", "Optional[float]", "Tensor")
#: Operators that take a place, or two ends of a stretch: which arguments those are.
_INDICES: dict[Any, tuple[int, ...]] = {
    aten.select.int: (2,),
    aten.slice.Tensor: (2, 3),
    aten.select_scatter.default: (3,),
    aten.slice_scatter.default: (3, 4),
}


def shifted(value: Any, by: float) -> Any:
    """Return another value of the same kind: a number, or a nest of numbers or an array, all of whose numbers differ.

    Examples
    --------
    >>> shifted([1.0, 2, True], 0.5)
    [2.0, 1, False]
    """
    if by == _TURNED and isinstance(value, (np.ndarray, list)):
        return np.ascontiguousarray(np.flip(value)) if isinstance(value, np.ndarray) else value[::-1]
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


def lead_back(recording: Recording, run: Run, known: Collection[int]) -> None:
    """Make the numbers and tensors in a line that Python computed read what they were computed from.

    Parameters
    ----------
    recording : Recording
        Its line is changed; each escape is marked as followed if all that was computed from it is known.
    run : callable
        Records the model again, the values that left with these numbers shifted by as much; without any, the inputs.
    known : collection of int
        The addresses of memories that were there before the model ran.
    """
    escapes = recording.escapes
    left = [k for k, escape in enumerate(escapes) if escape.movable]
    strange = recording.strangers(known)
    if not left and not strange:
        return
    nodes = list(recording.graph.nodes)
    order = {node: k for k, node in enumerate(nodes)}
    found: dict[Place, set[int]] = {}
    for group in np.array_split(left, min(len(left), _GROUPS)) if left else ():
        changed = group.tolist()
        turned = (_TURNED,) if any(escapes[k].kind == "array" for k in changed) else ()
        tries = [_differences(recording, run, changed, by) for by in (*_SHIFTS, *turned)]
        for place in (place for places, _ in tries for place in places):
            found.setdefault(place, set()).update(changed)
        if any(complete for _, complete in tries):
            for k in changed:
                escapes[k].followed = escapes[k].kind != "condition"
    unwatched: list[Place] = []
    complete = True
    if strange or any(escapes[k].kind == "array" for k in left):  # there may be ways that nobody watches
        unwatched, complete = _differences(recording, run, (), _SHIFTS[0])
    given = recording.inputs
    perhaps = recording.numbers(known)
    places = {*found, *unwatched, *((order[node], None) for node in (*strange, *perhaps))}
    replaced: dict[fx.Node, fx.Node] = {}
    for k, at in sorted(places, key=str):
        reads = [e for e in sorted(found.get((k, at), ())) if order[escapes[e].read] < k]
        if not reads and (k, at) not in unwatched:  # nothing shows: then all that left before, in full
            reads = [e for e in left if order[escapes[e].read] < k and escapes[e].kind != "condition"]
            if not reads:
                if nodes[k] in strange and not complete:
                    _say(recording, nodes[k], followed=False)
                continue  # drawn at random, perhaps: there is nothing that it could have been computed from
        sources = [escapes[e].read for e in reads] or given
        if nodes[k] in strange and not reads:
            _say(recording, nodes[k], followed=True)
        if not sources:
            continue
        if at is None:
            _lead_tensor(recording, nodes[k], sources)
            continue
        value: Any = nodes[k].kwargs[at] if isinstance(at, str) else nodes[k].args[at]
        if nodes[k].target in _INDICES:  # both ends of a slice at once
            if nodes[k] not in replaced:
                ends = {e for place, by in found.items() if place[0] == k for e in by}
                replaced[nodes[k]] = _lead_index(nodes[k], [escapes[e].read for e in sorted(ends)] or sources)
                for escape in escapes:
                    escape.read = replaced.get(escape.read, escape.read)
            continue
        exact = [e for e in reads if not _differ(escapes[e].value, value)] or reads
        same = len(exact) == 1 and not _differ(escapes[exact[0]].value, value)
        _lead_number(nodes[k], at, value, [escapes[e].read for e in exact] or given, same=same)


def _say(recording: Recording, node: fx.Node, *, followed: bool) -> None:
    """Note a tensor that came from nowhere among what is to be said."""
    shape = tuple(recording.constants[str(node.target)].shape)
    recording.add(Escape("stranger", "", shape, node.meta["line"], node, followed))


def _differences(recording: Recording, run: Run, changed: Collection[int], by: float) -> tuple[list[Place], bool]:
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
        other = run(changed, by)
        nodes, others = list(recording.graph.nodes), list(other.graph.nodes)
        order, other_order = ({node: k for k, node in enumerate(each)} for each in (nodes, others))
        for k, (node, twin) in enumerate(zip(nodes, others, strict=False)):
            if node.op == "output" == twin.op:
                return places, True
            if _form(node, order) != _form(twin, other_order):
                break
            if node.op == "get_attr":
                one, two = (r.constants.get(str(n.target)) for r, n in ((recording, node), (other, twin)))
                if one is not None and two is not None and not _equal(one, two):
                    places.append((k, None))
            for (at, one), (_, two) in zip(_numbers(node), _numbers(twin), strict=True):
                nodes_differ = isinstance(one, fx.Node) and order[one] != other_order.get(two)
                if nodes_differ or (not isinstance(one, fx.Node) and _differ(one, two)):
                    places.append((k, at))
    return places, False


def _equal(one: torch.Tensor, two: torch.Tensor) -> bool:
    return one.is_meta or torch.equal(one.nan_to_num(), two.nan_to_num())


def _differ(one: Any, two: Any) -> bool:
    if isinstance(one, fx.Node) or isinstance(two, fx.Node):
        return True
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
        counts = str(argument.type) in _NUMBERS or k in _INDICES.get(node.target, ())
        number = value.meta.get("val") if isinstance(value, fx.Node) else value
        if counts and isinstance(number, (bool, int, float, complex)):
            found.append((at, value))
    return found


def _lead_tensor(recording: Recording, node: fx.Node, sources: Sequence[fx.Node]) -> None:
    """Make a tensor that Python computed read others."""
    users = list(node.users)
    with node.graph.inserting_after(max([node, *sources], key=lambda n: _order(n.graph)[n])):
        computed = node.graph.call_function(PYTHON, (node, list(sources)))
    computed.meta = dict(node.meta)
    for user in users:
        user.replace_input_with(node, computed)


def _order(graph: fx.Graph) -> dict[fx.Node, int]:
    return {node: k for k, node in enumerate(graph.nodes)}


def _lead_index(node: fx.Node, sources: Sequence[fx.Node]) -> fx.Node:
    """Make what is read or written at a place that Python computed be at any place; return what takes its place."""
    graph, value = node.graph, node.meta["val"]
    given: Any = node.args
    first, *last = _INDICES[node.target]
    whole, axis, start = given[0], given[first - 1], given[first]
    writes = first == 3
    form = whole.meta["val"]
    size = form.shape[axis]
    step = given[first + 2] if len(given) > first + 2 else 1
    part = given[1].meta["val"] if writes else value
    count = part.shape[axis] if last else 1
    with graph.inserting_before(node):

        def add(target: Any, args: tuple[Any, ...], result: torch.Tensor) -> fx.Node:
            made = graph.call_function(target, args)
            made.meta = {**node.meta, "val": result}
            return made

        begin = (int(start or 0) + size) % max(size, 1)
        places = torch.empty(count, dtype=torch.int64, device="meta")
        index = add(aten.arange.start_step, (begin, begin + count * step, step), places)
        index = add(PYTHON, (index, list(sources)), places)
        shape = [*form.shape]
        shape[axis] = count
        rows = value.new_empty(shape)
        if writes:
            new = add(aten.reshape.default, (given[1], shape), rows)
            result = add(aten.index_copy.default, (whole, axis, index, new), value)
        else:
            picked = add(aten.index_select.default, (whole, axis, index), rows)
            result = add(aten.reshape.default, (picked, list(value.shape)), value)
    node.replace_all_uses_with(result)
    graph.erase_node(node)
    return result


def _lead_number(node: fx.Node, at: int | str, value: Any, sources: Sequence[fx.Node], *, same: bool) -> None:
    """Make an operation take a number from a tensor: from the one that it was read off if it is still the same.

    A number that is computed in the graph, but was chosen by what left it, is read besides.
    """
    graph, plain = node.graph, value.meta["val"] if isinstance(value, fx.Node) else value
    with graph.inserting_before(node):
        (tensor, *_) = sources
        if not same or type(torch.zeros((), dtype=tensor.meta["val"].dtype).item()) is not type(plain):
            filled = torch.tensor(plain, dtype=torch.float64 if isinstance(plain, float) else None)
            constant = graph.call_function(torch.ops.aten.scalar_tensor.default, (value,), {"dtype": filled.dtype})
            chosen = [constant] if isinstance(value, fx.Node) else []
            tensor = graph.call_function(PYTHON, (constant, [*sources, *chosen]))
            constant.meta = tensor.meta = {**node.meta, "val": filled}
        number = graph.call_function(ITEM, (tensor,))
    number.meta = {**node.meta, "val": plain}
    if isinstance(at, str):
        node.update_kwarg(at, number)
    else:
        node.update_arg(at, number)
