"""The ways out of tensors: how their values get to where PyTorch no longer sees what is made of them.

One table for whoever watches a model run. At the level of functions in Python there are conditions, numbers and
arrays; at the level of operators there are scalars, and results as large as values say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch

Kind = Literal["condition", "number", "symbol", "array", "size", "text"]

_T = torch.Tensor

#: Functions and methods that hand out values, and what they hand out.
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
    _T._nnz: "number",
    _T.tolist: "array",
    _T.numpy: "array",
    _T.__array__: "array",
    _T.__dlpack__: "array",
}

#: Functions that write values out for people to read. What is made of the text is not followed.
SHOWN: frozenset[Any] = frozenset({_T.__repr__, _T.__format__})

#: Functions that hand out memory itself: whoever holds it may write to it unseen.
MEMORY: frozenset[Any] = frozenset(
    {_T.numpy, _T.__array__, _T.__dlpack__, _T.data_ptr, _T.storage, _T.untyped_storage, _T.__cuda_array_interface__}
)

#: Functions that go through the indices of an axis, the first one where none is named.
WALKS: frozenset[Any] = frozenset({_T.__iter__, _T.unbind, torch.unbind})

#: Functions that tell Python how large tensors are: where among their arguments the axis is that they speak of, None
#: for those that speak of all.
TELLING: dict[Any, int | None] = {
    **dict.fromkeys((*WAYS_OUT, *MEMORY, *SHOWN)),
    **dict.fromkeys(
        (_T.shape.__get__, _T.numel, _T.nelement, _T.stride, _T.nbytes.__get__, torch.numel,  # type: ignore[attr-defined]
         _T.__reversed__, torch.broadcast_tensors, torch.tensor_split, _T.tensor_split, torch.hsplit, torch.vsplit,
         torch.dsplit, _T.hsplit, _T.vsplit, _T.dsplit)
    ),
    _T.size: 1, _T.__len__: 1, _T.__iter__: 1, _T.unbind: 1, torch.unbind: 1, _T.split: 2, torch.split: 2,
    _T.chunk: 2, torch.chunk: 2, _T.split_with_sizes: 2, torch.split_with_sizes: 2,
}  # fmt: skip

#: Functions that bring a tensor into a shape that they are given.
SHAPING: frozenset[Any] = frozenset({_T.view, _T.reshape, torch.reshape, _T.unflatten, torch.unflatten})

_aten = torch.ops.aten

#: Operators that return a number or a truth value that Python holds.
SCALARS: frozenset[Any] = frozenset(
    {_aten.item.default, _aten._local_scalar_dense.default, _aten.is_nonzero.default, _aten.equal.default}
)

#: Operators whose results are as large as values say, though PyTorch does not tag them so.
_UNTAGGED = frozenset(
    {
        _aten.where.default, _aten.unique_dim_consecutive.default, _aten._pack_padded_sequence.default,
        _aten.nonzero_numpy.default, _aten.repeat_interleave.self_Tensor, _aten.to_sparse.default,
        _aten.to_sparse.sparse_dim, _aten._to_sparse.default, _aten._to_sparse.sparse_dim, _aten.coalesce.default,
        _aten._coalesce.default, _aten.to_sparse_csr.default, _aten._to_sparse_csr.default,
    }
)  # fmt: skip
#: Operators that read one of their arguments where nothing sees it, to decide what they return: which one.
READ_UNSEEN: dict[Any, int] = {_aten.tensor_split.tensor_indices_or_sections: 1, _aten.narrow.Tensor: 2}
_MASKS = (torch.bool, torch.uint8)


def has_sizes_from_values(op: Any, args: Sequence[Any], dtype: Callable[[Any], Any] | None = None) -> bool:
    """Return whether the sizes of what an operator returns depend on values.

    Parameters
    ----------
    op : torch._ops.OpOverload
        Anything else has none.
    args : sequence
        Its positional arguments: tensors, or whatever stands for them.
    dtype : callable, optional
        Returns the dtype of the tensor that an argument stands for, None for one that stands for none. Without it
        the arguments are tensors.

    Examples
    --------
    >>> x = torch.ones(3)
    >>> has_sizes_from_values(torch.ops.aten.index.Tensor, (x, [x > 0]))
    True
    >>> has_sizes_from_values(torch.ops.aten.index.Tensor, (x, [torch.tensor([0, 2])]))
    False
    """
    if not isinstance(op, torch._ops.OpOverload):
        return False
    if op is _aten.index.Tensor:
        return any((dtype(index) if dtype else getattr(index, "dtype", None)) in _MASKS for index in args[1])
    return torch.Tag.dynamic_output_shape in op.tags or op in _UNTAGGED
