"""Picking by known and by unknown indices.

Reads: known index      nothing: it moves data
       unknown index    out[i] ← index[i] and everything that the index could pick
       embedding        out[i] ← index[i]; and row index[i] of the table, should the table carry nodes
       embedding bag    out[b] ← every index of the bag, and the rows that they pick, or could pick

An index into an axis of length 1 can only be 0 and is not read.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from depgraph.rules.arguments import swap
from depgraph.rules.call import Call, Read
from depgraph.rules.movement import move
from depgraph.rules.reduction import everything
from depgraph.rules.registry import rule
from depgraph.rules.values import Value, compress, forget, known


def moved(call: Call, value: Value, *args: Any, **kwargs: Any) -> Value:
    """Pick by known indices: the operator itself, on the codes."""
    args, kwargs = swap(args, lambda v: v.values()), swap(kwargs, lambda v: v.values())

    def pick(tensor: Tensor) -> Tensor:
        picked: Tensor = call.op(tensor, *args, **kwargs)
        return picked

    return value.through(pick, lambda codes: compress(pick(codes)))


def only(picks: Value, size: int) -> Value:
    """Return an index into an axis of that length, which is 0 for sure where the length is 1."""
    if size != 1 or picks.dtype in (torch.bool, torch.uint8):
        return picks
    return known(torch.zeros((), dtype=picks.dtype).expand(picks.shape))


@rule("index", "_unsafe_index")
def index(call: Call, value: Value, indices: list[Value | None]) -> Value:
    """Advanced indexing."""
    if not any(i is not None and i.dtype == torch.bool for i in indices):
        indices = [None if i is None else only(i, n) for i, n in zip(indices, value.shape, strict=False)]
    given = [i for i in indices if i is not None]
    if all(i.is_known for i in given):
        return moved(call, value, indices)
    if any(i.dtype == torch.bool for i in given):
        for i in given:
            call.need_known(i, "a boolean index decides the shape of the result")
    codes, inner, index_reads = candidates(value.codes, indices, call.shape)
    return call.result(call.nodes(call.shape, Read(codes, inner), *index_reads))


def candidates(codes: Tensor, indices: list[Any], shape: torch.Size) -> tuple[Tensor, int, list[Read]]:
    """Return what partly unknown indices could pick, (*out, *choices), how many axes choices have, the indices read."""
    used = [axis for axis, i in enumerate(indices) if i is not None]
    broad = torch.broadcast_shapes(*(indices[a].shape for a in used))
    unknown = [axis for axis in used if not indices[axis].is_known]
    inner = len(unknown)
    picks: list[Any] = [slice(None)] * codes.ndim
    for axis in used:
        if axis in unknown:
            grid = torch.arange(codes.shape[axis])
            place = [1] * inner
            place[unknown.index(axis)] = -1
            picks[axis] = grid.reshape([1] * len(broad) + place)
        else:
            picks[axis] = indices[axis].values().expand(broad)[(...,) + (None,) * inner]
    # Axes indexed side by side are replaced where they stand, else the new ones come first.
    front = used[0] if used == list(range(used[0], used[-1] + 1)) else 0
    found = codes[tuple(picks)]
    block = len(broad) + inner
    found = expand_at(found, front, broad)
    order = [a for a in range(found.ndim) if not front + len(broad) <= a < front + block]
    found = found.permute(*order, *range(front + len(broad), front + block))
    behind = len(shape) - front - len(broad)
    reads = [Read(indices[a].codes.expand(broad)[(...,) + (None,) * behind]) for a in used]
    return found, inner, reads


def expand_at(tensor: Tensor, first: int, sizes: torch.Size) -> Tensor:
    """Expand the axes from ``first`` on to the given sizes."""
    shape = list(tensor.shape)
    shape[first : first + len(sizes)] = sizes
    return tensor.expand(shape)


@rule("index_select")
def index_select(call: Call, value: Value, dim: int, picks: Value) -> Value:
    """Pick slices along an axis."""
    picks = only(picks, value.shape[dim] if value.ndim else 1)
    if picks.is_known:
        return moved(call, value, dim, picks)
    axis = dim % value.ndim
    choices = value.codes.movedim(axis, -1).unsqueeze(axis)
    picked = picks.codes.reshape(-1, *(1,) * (value.ndim - axis - 1))
    return call.result(call.nodes(call.shape, Read(choices, 1), Read(picked)))


@rule("embedding")
def embedding(call: Call, table: Value, picks: Value, *_: Any) -> Value:
    """Pick rows of a table."""
    picks = only(picks, table.shape[0])
    if picks.is_known:
        return table.through(lambda t: t[picks.values()], lambda t: compress(t[picks.values()]))
    rows = table.codes.transpose(0, 1).reshape(*(1,) * picks.ndim, table.shape[1], table.shape[0])
    codes = call.nodes(call.shape, Read(picks.codes.unsqueeze(-1)), Read(rows, 1))
    return Value(codes, None, call.dtype)


@rule("gather")
def gather(call: Call, value: Value, dim: int, picks: Value, **_: Any) -> Value:
    """Pick elements along an axis."""
    picks = only(picks, value.shape[dim] if value.ndim else 1)
    if picks.is_known:
        return moved(call, value, dim, picks)
    if picks.ndim == 0:
        return call.result(call.nodes(call.shape, Read(value.codes, value.ndim), Read(picks.codes)))
    axis = dim % value.ndim
    codes = value.codes
    for other in range(value.ndim):
        if other != axis:
            codes = codes.narrow(other, 0, picks.shape[other])
    return call.result(call.nodes(call.shape, Read(codes.movedim(axis, -1).unsqueeze(axis), 1), Read(picks.codes)))


@rule("one_hot")
def one_hot(call: Call, picks: Value, classes: int = -1) -> Value:
    """Mark the place that each index names."""
    if classes == -1:  # as many as the largest index says
        result: Value = everything(call, picks)
        return result
    return call.result(call.nodes(call.shape, Read(picks.codes.unsqueeze(-1))))


@rule("take")
def take(call: Call, value: Value, picks: Value) -> Value:
    """Pick elements of the flattened tensor."""
    picks = only(picks, value.codes.numel())
    if picks.is_known:
        return moved(call, value, picks)
    return call.result(call.nodes(call.shape, Read(value.codes, value.ndim), Read(picks.codes)))


@rule("embedding_renorm")
def embedding_renorm(call: Call, table: Value, picks: Value, *_: Any) -> Value:
    """Scale down the rows that are picked."""
    reads = [Read(table.codes.unsqueeze(-2), 1)]
    if not picks.is_known:
        codes = call.nodes(call.shape, *reads, Read(picks.codes, picks.ndim))
        return Value(forget(codes), None, call.dtype)
    hit = torch.zeros(table.shape[0], 1, dtype=torch.bool)
    hit[picks.values().reshape(-1)] = True
    codes = torch.where(hit, forget(call.nodes(call.shape, *reads)), forget(table.codes))
    return Value(compress(codes), None, call.dtype)


@rule("_embedding_bag", "_embedding_bag_forward_only", "embedding_bag", "embedding_bag.padding_idx")
def embedding_bag(
    call: Call, table: Value, picks: Value, offsets: Value, scale: bool = False, mode: int = 0, sparse: bool = False,
    weights: Value | None = None, last: bool = False, padding: int | None = None, **kwargs: Any,
) -> Any:  # fmt: skip
    """Add up the rows picked by each bag of indices, the bags being consecutive stretches of them."""
    weights = kwargs.get("per_sample_weights", weights)
    padding = kwargs.get("padding_idx", padding)
    count, bags = picks.shape[0], call.shape[0]
    outside = None
    reads = []
    if offsets.is_known:
        # The last bag goes on to the end, whatever is said to be the last offset.
        bounds = torch.cat([offsets.values()[:bags].long(), torch.tensor([count])])
        place = torch.arange(count)
        outside = ((place < bounds[:-1, None]) | (place >= bounds[1:, None])).unsqueeze(1)
    else:
        reads.append(Read(offsets.codes, 1))
    reads.append(Read(table.codes.transpose(0, 1), 1, unpicked(table.shape[0], picks, outside, padding)))
    reads += [Read(t.codes, 1, outside) for t in (picks, weights) if t is not None]
    codes = forget(call.nodes(call.shape, *reads))
    further = call.nodes((), *(Read(t.codes, 1) for t in (picks, offsets)))
    rest = (Value(forget(further).expand(m.shape), None, m.dtype) for m in call.meta[1:])
    return (Value(codes, None, call.dtype), *rest)


def unpicked(rows: int, picks: Value, outside: Tensor | None, padding: int | None) -> Tensor | None:
    """Return, for each bag (axis 0), which rows (the last axis) are not in it; None where that is not known."""
    if not picks.is_known:
        return None if outside is None else outside.all(-1, keepdim=True)
    named = picks.values()[:, None] == torch.arange(rows)
    if padding is not None and padding >= 0:
        named[:, padding] = False
    inside = torch.ones(1, 1, len(named), dtype=torch.bool) if outside is None else ~outside
    return (inside.double() @ named.double()) == 0


@rule(
    "masked_select",
    "nonzero",
    "nonzero_static",
    "where.default",
    "_unique2",
    "unique_dim",
    "unique_consecutive",
    "bincount",
)
@rule("repeat_interleave.Tensor", "repeat_interleave.self_Tensor", "histc", "argwhere")
def data_shaped(call: Call, *args: Any, **kwargs: Any) -> Any:
    """The shape of the result depends on data: by known data it moves, else every element may read everything."""
    tensors = [a for a in (*args, *kwargs.values()) if isinstance(a, Value)]
    if call.op._schema.name in ("aten::masked_select", "aten::repeat_interleave") and tensors[-1].is_known:
        return move_by(call, *args, **kwargs)
    return everything(call, *args, **kwargs)


def move_by(call: Call, value: Value, *args: Any, **kwargs: Any) -> Value:
    """Move by known data."""
    if not args:
        result: Value = move(call, value, **kwargs)
        return result
    return moved(call, value, *args, **kwargs)
