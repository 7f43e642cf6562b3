"""Higher-order operators, recorded with the functions they are given.

What such a function closes over becomes an argument of it, so that no tensor of the model is a constant of a body.
Operators that are no loops and no conditions (regions with settings of their own, scans by halves) are what they run.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.utils import _pytree as pytree

from depgraph.errors import TracingError
from depgraph.tracing.private import dense_kernel, natively, unrecorded
from depgraph.tracing.python.numbers import settled
from depgraph.tracing.recorder.exits import Exits
from depgraph.tracing.recorder.recorder import Recorder


@dataclass(eq=False)
class _Body:
    """A function, recorded.

    Attributes
    ----------
    recorder : Recorder
    arguments : list of torch.fx.Node
        Its placeholders for tensors that it is given.
    lifted : dict
        Nodes outside to placeholders, for what it closes over.
    """

    recorder: Recorder
    arguments: list[fx.Node]
    lifted: dict[fx.Node, fx.Node]

    def module(self, lifted: Sequence[fx.Node]) -> fx.GraphModule:
        """Return the body as a function of its arguments and of these nodes outside."""
        graph, last = self.recorder.graph, self.arguments[-1] if self.arguments else None
        for outer in lifted:
            if outer not in self.lifted:
                self.lifted[outer] = self.recorder.placeholder(f"unused_{len(self.lifted)}", outer.meta["val"])
            if last is None:
                next(iter(graph.nodes)).prepend(self.lifted[outer])
            else:
                last.append(self.lifted[outer])
            last = self.lifted[outer]
        root = nn.Module()
        for target, body in self.recorder.bodies.items():
            root.add_module(target, body)
        return fx.GraphModule(root, graph)


def recorded(modes: Exits, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a higher-order operator and write it down; its arguments may be nests of tensors."""
    handler = _HANDLERS.get(op.name())
    if handler is not None:
        return handler(modes, op, *args, **kwargs)
    kernel = dense_kernel(op)
    if kernel is None:
        nodes = [modes.recorder.read(tensor) for tensor in _tensors((args, kwargs))]
        return _noted(modes, op, (nodes,), _performed(op, *args, **kwargs))
    with modes.calling():
        return kernel(*args, **kwargs)


def _cond(modes: Exits, op: Any, predicate: Any, true: Any, false: Any, operands: Any = ()) -> Any:
    tensors = _tensors(operands)
    bodies = [_body(modes, function, (operands,), spread=True) for function in (true, false)]
    lifted = _lifted(bodies)
    result = _performed(op, predicate, true, false, operands)
    nodes = [*(modes.recorder.read(t) for t in tensors), *lifted]
    first = modes.recorder.read(predicate) if isinstance(predicate, Tensor) else predicate
    graphs = [modes.recorder.body(body.module(lifted)) for body in bodies]
    return _noted(modes, op, (first, *graphs, nodes), result)


def _while_loop(modes: Exits, op: Any, condition: Any, function: Any, carried: Any, more: Any = ()) -> Any:
    bodies = [_body(modes, each, (carried, more), spread=True) for each in (condition, function)]
    lifted = _lifted(bodies)
    result = _performed(op, condition, function, tuple(carried), tuple(more))
    nodes = [[modes.recorder.read(t) for t in _tensors(part)] for part in (carried, more)]
    graphs = [modes.recorder.body(body.module(lifted)) for body in bodies]
    return _noted(modes, op, (*graphs, nodes[0], [*nodes[1], *lifted]), result)


def _scan(modes: Exits, op: Any, function: Any, carried: Any, sequences: Any, more: Any = ()) -> Any:
    with unrecorded():
        first = [sequence[0] for sequence in sequences]
    body = _body(modes, function, (carried, first, more), spread=True)
    result = _performed(op, function, carried, sequences, more)
    read = modes.recorder.read
    nodes = [[read(t) for t in part] for part in (carried, sequences, more)]
    graph = modes.recorder.body(body.module(list(body.lifted)))
    return _noted(modes, op, (graph, nodes[0], nodes[1], [*nodes[2], *body.lifted]), result)


def _map(modes: Exits, op: Any, function: Any, sequences: Any, more: Any = ()) -> Any:
    with unrecorded():
        first = [sequence[0] for sequence in sequences]
    body = _body(modes, function, (first, more), spread=True)
    result = _performed(op, function, sequences, more)
    nodes = [[modes.recorder.read(t) for t in _tensors(part)] for part in (sequences, more)]
    graph = modes.recorder.body(body.module(list(body.lifted)))
    return _noted(modes, op, (graph, nodes[0], [*nodes[1], *body.lifted]), result)


def _flex_attention(
    modes: Exits, op: Any, query: Tensor, key: Tensor, value: Tensor, score: Any, block_mask: Any, scale: float,
    options: Any, score_more: Any = (), mask_more: Any = (),
) -> Any:  # fmt: skip
    with unrecorded():
        number = query.new_zeros(())
        places = [torch.zeros((), dtype=torch.int, device=query.device) for _ in range(4)]
    scale, options = settled((scale, options))
    bodies = [
        _body(modes, score, (number, *places, *score_more)),
        _body(modes, block_mask[-1], (*places, *mask_more)),
    ]
    result = _performed(op, query, key, value, score, block_mask, scale, options, score_more, mask_more)
    read = modes.recorder.read
    graphs = [modes.recorder.body(body.module(list(body.lifted))) for body in bodies]
    mask = (*(read(t) if isinstance(t, Tensor) else t for t in block_mask[:-1]), graphs[1])
    more = [
        (*(read(t) for t in given if isinstance(t, Tensor)), *body.lifted)
        for given, body in zip((score_more, mask_more), bodies, strict=True)
    ]
    return _noted(modes, op, (read(query), read(key), read(value), graphs[0], mask, scale, options, *more), result)


_HANDLERS: dict[str, Callable[..., Any]] = {
    "cond": _cond,
    "while_loop": _while_loop,
    "scan": _scan,
    "map_impl": _map,
    "flex_attention": _flex_attention,
}


def _body(modes: Exits, function: Any, given: tuple[Any, ...], *, spread: bool = False) -> _Body:
    """Record a function of some arguments, or of what is in some containers, on copies of them."""
    outer = modes.recorder
    inner = Recorder(outer.before_write, outer)
    with unrecorded():
        given = pytree.tree_map_only(Tensor, lambda t: t.detach().clone(), given)
    tensors = _tensors(given)
    arguments = []
    for k, tensor in enumerate(tensors):
        arguments.append(inner.placeholder(f"argument_{k}", tensor))
        inner.memories.given(tensor, arguments[-1])
    modes.recorder = inner
    try:
        with modes.calling():
            result = function(*(item for part in given for item in part)) if spread else function(*given)
    finally:
        modes.recorder = outer
    if inner.memories.changed():
        raise TracingError(
            "A function given to a higher-order operator writes to what it is given or closes over, which cannot be "
            "followed: return the new value instead."
        )
    outer.escapes += [escape for escape in inner.escapes if escape.read.graph is outer.graph]
    values = [inner.read(leaf) if isinstance(leaf, Tensor) else leaf for leaf in pytree.tree_leaves(result)]
    inner.graph.output(tuple(values) if spread else values[0])
    return _Body(inner, arguments, dict(zip(inner.lifted, inner.lifted_here, strict=True)))


def _lifted(bodies: Sequence[_Body]) -> list[fx.Node]:
    return list(dict.fromkeys(outer for body in bodies for outer in body.lifted))


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, Tensor)]


def _performed(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Run the operator for what it returns; what is an argument itself is copied."""
    taken = {id(leaf) for leaf in pytree.tree_leaves((args, kwargs))}
    with natively(), unrecorded():
        kernel = dense_kernel(op) or op
        result = kernel(*args, **kwargs)
        return pytree.tree_map_only(Tensor, lambda t: t.clone() if id(t) in taken or t._is_view() else t, result)


def _noted(modes: Exits, op: Any, args: tuple[Any, ...], result: Any) -> Any:
    recorder = modes.recorder
    tensors = _tensors(result)
    node = recorder.call(op, args, {}, tuple(map(recorder.form, tensors)))
    for k, tensor in enumerate(tensors):
        recorder.memories.made(tensor, recorder.call(operator.getitem, (node, k), {}, recorder.form(tensor)))
    return result
