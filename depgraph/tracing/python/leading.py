"""Changes to a graph by which what Python computed reads what it was computed from."""

from __future__ import annotations

import operator
from collections.abc import Collection, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from depgraph.tracing.python.opaque import ITEM, PYTHON
from depgraph.tracing.python.trials import INDICES, arguments_of

aten = torch.ops.aten


def lead_tensor(node: fx.Node, sources: Sequence[fx.Node], users: Collection[fx.Node] | None = None) -> fx.Node:
    """Make a tensor that Python computed or chose read others, for some of its users; return what takes its place."""
    users = list(node.users) if users is None else users
    graph = node.graph
    order = {one: k for k, one in enumerate(graph.nodes)}
    with graph.inserting_after(max([node, *sources], key=order.__getitem__)):
        computed = graph.call_function(PYTHON, (node, list(dict.fromkeys(sources))))
    computed.meta = dict(node.meta)
    for user in users:
        user.replace_input_with(node, computed)
    return computed


def lead_parts(node: fx.Node, parts: Sequence[tuple[fx.Node, Sequence[fx.Node]]]) -> None:
    """Make elements of a tensor that Python computed, which masks tell, read each what it was made of."""
    users, held = list(node.users), node
    for mask, sources in parts:
        part = lead_tensor(node, sources, users=())
        order = {one: k for k, one in enumerate(node.graph.nodes)}
        with node.graph.inserting_after(max([held, part], key=order.__getitem__)):
            chosen = node.graph.call_function(aten.where.self, (mask, part, held))
        chosen.meta = dict(node.meta)
        held = chosen
    for user in users:
        user.replace_input_with(node, held)


def lead_result(node: fx.Node, sources: Sequence[fx.Node]) -> None:
    """Make what an operation returns that Python has chosen, or the arguments of, read all that it may be made of."""
    sources = [each for each in sources if isinstance(each.meta.get("val"), Tensor)]
    if isinstance(node.meta["val"], (tuple, list)):
        for part in list(node.users):
            if part.target is operator.getitem:
                lead_result(part, [*sources, *node.all_input_nodes])
    elif isinstance(node.meta["val"], Tensor):
        read = [*sources, *node.all_input_nodes, node]
        lead_tensor(node, [each for each in read if isinstance(each.meta.get("val"), Tensor)])
    elif isinstance(node.meta["val"], (bool, int, float)):
        with node.graph.inserting_after(node):
            held = node.graph.call_function(aten.scalar_tensor.default, (node,), {"dtype": _dtype(node.meta["val"])})
        held.meta = {**node.meta, "val": torch.empty((), dtype=_dtype(node.meta["val"]), device="meta")}
        users = [user for user in node.users if user is not held]
        computed = lead_tensor(held, [*sources, held], users=())
        with node.graph.inserting_after(computed):
            number = node.graph.call_function(ITEM, (computed,))
        number.meta = dict(node.meta)
        for user in users:
            user.replace_input_with(node, number)


def _dtype(number: float) -> torch.dtype:
    return torch.tensor(number, dtype=torch.float64 if isinstance(number, float) else None).dtype


def lead_index(node: fx.Node, sources: Sequence[fx.Node]) -> fx.Node:
    """Make what is read or written at a place that Python computed be at any place; return what takes its place."""
    graph, value = node.graph, node.meta["val"]
    given = arguments_of(node)
    first, *last = INDICES[node.target]
    whole, axis, start = given[0], given[first - 1], given[first]
    writes = first == 3
    form = whole.meta["val"]
    size = form.shape[axis]
    step = given.get(first + 2, 1)
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


def lead_number(node: fx.Node, at: int | str, value: Any, sources: Sequence[fx.Node], *, same: bool) -> None:
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
        left_out = [value for place, value in arguments_of(node).items() if place in range(len(node.args), at)]
        node.args = (*node.args[:at], *left_out, number, *node.args[at + 1 :])
