"""Operators that do the same to each row, whatever the other rows are: a closed list.

An operand on the axis of rows must be made of rows too, or absent, or of length 1. Whether it is of length 1 or of one
row nobody knows where the example has a single row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from depgraph.tracing.rows.arguments import RowCall, dims_of, first_shape, in_range
from depgraph.tracing.rows.gathering import GATHERING
from depgraph.tracing.rows.moving import MOVING, Made
from depgraph.tracing.rows.spaces import NotRowsError, shape, value

_SAME = frozenset(
    ("clone", "contiguous", "detach", "alias", "_to_copy", "to", "lift_fresh_copy", "dropout", "zeros_like",
     "ones_like", "full_like", "empty_like", "floor_divide", "type_as")
)  # fmt: skip
_ALONG = frozenset(
    ("softmax", "log_softmax", "_softmax", "_log_softmax", "sum", "mean", "amax", "amin", "argmax", "argmin", "topk",
     "sort", "argsort", "cumsum", "cumprod", "logsumexp", "var", "std", "max", "min", "prod", "any", "all",
     "linalg_vector_norm", "norm", "glu", "var_mean")
)  # fmt: skip
#: Elementwise as PyTorch has it, but not by broadcasting.
_OWN_WAY = frozenset(("prelu", "_prelu_kernel"))
#: Of whole numbers they fail where a divisor is 0, as it may be where no row is picked.
_DIVIDING = frozenset(("floor_divide", "remainder", "fmod", "div", "gcd", "lcm", "pow"))


def row_by_row(call: RowCall) -> tuple[Any, int]:
    """Write a call at every place, and return it with the axis of places.

    Raises
    ------
    NotRowsError
        Where it is not on the list, or does not go row by row.
    """
    target = call.node.target
    assert isinstance(target, torch._ops.OpOverload)
    if torch.Tag.nondeterministic_seeded in target.tags and call.name != "dropout":
        raise NotRowsError
    if call.name in _OWN_WAY:
        raise NotRowsError
    if call.name in _SAME or (torch.Tag.pointwise in target.tags and isinstance(call.node.meta["val"], torch.Tensor)):
        return _elementwise(call)
    way = _WAYS.get(call.name)
    if way is None:
        raise NotRowsError
    return way(call)


def _elementwise(call: RowCall) -> Made:
    node, size = call.node, call.space.size
    if call.name == "dropout" and call.argument("train") and call.argument("p"):
        raise NotRowsError
    read = [n for n in node.all_input_nodes if isinstance(n.meta.get("val"), torch.Tensor)]
    rows = {n: call.rows(n) for n in read if call.following.get(n)}
    (behind, *others) = {len(shape(n)) - wide.axis for n, wide in rows.items()}
    if others:
        raise NotRowsError
    for other in read:
        if other not in rows and len(shape(other)) >= behind and (shape(other)[-behind] != 1 or size == 1):
            raise NotRowsError
    if shape(node)[-behind] != size:
        raise NotRowsError
    if call.name in _DIVIDING and call.space.mask is not None and not value(node).is_floating_point():
        divisor = node.args[1] if len(node.args) > 1 else None
        if isinstance(divisor, fx.Node) and call.following.get(divisor):
            raise NotRowsError
    return call.same(), len(shape(node)) - behind


def _times(call: RowCall) -> Made:
    """Rows times a matrix that all of them share."""
    rows, other = call.first, call.node.args[1]
    if not isinstance(other, fx.Node) or rows.axis == len(first_shape(call)) - 1 or len(shape(other)) != 2:
        raise NotRowsError
    return call.same(), rows.axis


def _added_times(call: RowCall) -> Made:
    """Rows times a matrix that all of them share, and the same added to each."""
    added, left, right = call.node.args[:3]
    rows = call.rows(left)
    if rows.axis != 0 or any(n is not left and call.following.get(n) for n in call.node.all_input_nodes):
        raise NotRowsError
    if not isinstance(added, fx.Node) or not isinstance(right, fx.Node):
        raise NotRowsError
    if len(shape(added)) == 2 and (shape(added)[0] != 1 or call.space.size == 1):
        raise NotRowsError
    return call.same(), 0


def _batched(call: RowCall) -> Made:
    """A matrix of each row times another one of it."""
    left, right = (call.rows(argument) for argument in call.node.args[:2])
    if left.axis or right.axis or len(shape(left.node)) != 3 or len(shape(right.node)) != 3:
        raise NotRowsError
    return call.same(), 0


def _matmul(call: RowCall) -> Made:
    both = all(call.following.get(argument) for argument in call.node.args[:2])
    return _batched(call) if both else _times(call)


def _normalised(call: RowCall) -> Made:
    """A norm over the last axes, that of rows not among them."""
    rows = call.first
    if rows.axis >= len(first_shape(call)) - len(call.argument("normalized_shape")):
        raise NotRowsError
    return call.same(), rows.axis


def _group_norm(call: RowCall) -> Made:
    rows = call.first
    if rows.axis:
        raise NotRowsError
    return call.same(), 0


def _along(call: RowCall) -> Made:
    """What is done along other axes."""
    rows, ndim = call.first, len(first_shape(call))
    if rows.axis in (dims := dims_of(call, ndim)):
        raise NotRowsError
    result = call.node.meta["val"]
    left = (result if isinstance(result, torch.Tensor) else result[0]).ndim
    return call.same(), rows.axis - (0 if left == ndim else sum(d < rows.axis for d in dims))


def one_hot(call: RowCall) -> Made:
    """As many classes as are given; where no row is picked there may be none to name."""
    rows = call.first
    if call.argument("num_classes", -1) < 0:
        raise NotRowsError
    picks = in_range(call.following, rows, call.argument("num_classes"))
    return call.following.copy.again(call.node.target, picks, call.argument("num_classes")), rows.axis


_WAYS: dict[str, Callable[[RowCall], Made]] = {
    **MOVING, **GATHERING, **dict.fromkeys(_ALONG, _along),
    "linear": _times, "mm": _times, "matmul": _matmul, "addmm": _added_times, "bmm": _batched,
    "layer_norm": _normalised, "rms_norm": _normalised, "group_norm": _group_norm, "one_hot": one_hot,
}  # fmt: skip
