"""The ways in which values leave tensors for Python."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import torch

Kind = Literal["condition", "number", "array", "size"]

_T = torch.Tensor
WAYS_OUT: dict[Any, Kind] = {
    _T.__bool__: "condition",
    _T.__contains__: "condition",
    _T.is_nonzero: "condition",
    _T.equal: "condition",
    _T.allclose: "condition",
    torch.is_nonzero: "condition",
    torch.equal: "condition",
    torch.allclose: "condition",
    _T.item: "number",
    _T.__int__: "number",
    _T.__index__: "number",
    _T.__float__: "number",
    _T.__complex__: "number",
    _T.tolist: "array",
    _T.numpy: "array",
    _T.__array__: "array",
    _T.__dlpack__: "array",
}
SHOWN = {_T.__repr__, _T.__format__}
SCALARS = {
    torch.ops.aten.item.default,
    torch.ops.aten._local_scalar_dense.default,
    torch.ops.aten.is_nonzero.default,
    torch.ops.aten.equal.default,
}
_SIZED = {
    torch.ops.aten.where.default,
    torch.ops.aten.unique_dim_consecutive.default,
    torch.ops.aten._pack_padded_sequence.default,
}


@lru_cache(maxsize=None)
def _is_sized(op: Any) -> bool:
    return torch.Tag.dynamic_output_shape in op.tags or op in _SIZED


def has_sizes_from_values(op: Any, args: Any) -> bool:
    """Return whether how much an operator returns depends on the values it is given."""
    if op is torch.ops.aten.index.Tensor:
        return any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in args[1])
    return _is_sized(op)
