"""Linear algebra on whole matrices: factorisations, inverses, solutions of equations.

Reads: factorisation   out[…, any] ← every matrix at […]
       solution        x[…, :, j] ← all of the matrix and column j of the right-hand side (row i from the left)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from depgraph.rules.call import Call, Read
from depgraph.rules.registry import name_of, rule
from depgraph.rules.values import GENERIC, Value, forget, uniform

# Arguments that hold something else than one matrix in each place of a batch: the number of axes of what they hold.
AXES = {"tau": 1, "pivots": 1, "LU_pivots": 1, "atol": 0, "rtol": 0, "rcond": 0, "ormqr.input2": 1}


@rule("linalg_inv_ex", "linalg_pinv", "linalg_matrix_exp")
@rule(
    "_linalg_det", "_linalg_slogdet", "_linalg_eigh", "linalg_eig", "_linalg_eigvals", "linalg_eigvals", "_linalg_svd"
)
@rule("linalg_householder_product", "ormqr")
@rule("linalg_ldl_factor_ex", "linalg_lstsq")
def matrices(call: Call, *args: Any, **kwargs: Any) -> Any:
    """Read whole matrices."""
    return pytree.tree_map_only(Tensor, whole(call, given(call, args, kwargs), triangle(call, args, kwargs)), call.meta)


@rule("_linalg_solve_ex", "cholesky_solve", "linalg_lu_solve", "linalg_ldl_solve")
def solution(call: Call, *args: Any, left: bool = True, **kwargs: Any) -> Any:
    """Solve equations for each column of the right-hand side; what else comes out is made of the matrix alone."""
    matrix = given(call, args, kwargs)
    half = triangle(call, args, kwargs)
    side = matrix.pop("B" if "B" in matrix else "self")
    shape, codes = call.shape, side.codes
    if vector := "A" in matrix and is_vector(side, matrix["A"], name_of(call.op)):
        shape, codes = torch.Size((*shape, 1)), codes.unsqueeze(-1)
    columns = codes.transpose(-1, -2).unsqueeze(-3) if left else codes.unsqueeze(-2)
    reads = [Read(columns, 1)]
    for read in places(call, matrix, half):
        front = read.codes.ndim - read.inner
        reads.append(Read(read.codes[(slice(None),) * front + (None, None)], read.inner, read.dead))
    result = forget(call.nodes(shape, *reads))
    solved = Value(result.squeeze(-1) if vector else result, None, call.dtype)
    if isinstance(call.meta, Tensor):
        return solved
    return (solved, *pytree.tree_map_only(Tensor, whole(call, matrix), list(call.meta[1:])))


def given(call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Value]:
    """Return the tensors among the arguments by their names in the schema."""
    names = [parameter.name for parameter in call.op._schema.arguments]
    return {k: v for k, v in (dict(zip(names, args, strict=False)) | kwargs).items() if isinstance(v, Value)}


def is_vector(side: Value, matrix: Value, name: str) -> bool:
    """Tell whether a right-hand side is one vector in each place of the batch: only one operator takes these."""
    return name == "linalg_solve_ex" and (side.ndim == 1 or side.shape == matrix.shape[:-1])


def triangle(call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return which triangle of its matrix the operator looks at: ``"L"``, ``"U"`` or, for both, ``""``."""
    names = [parameter.name for parameter in call.op._schema.arguments]
    options = dict(zip(names, args, strict=False)) | kwargs
    match name_of(call.op):
        case "linalg_eigh":
            return str(options.get("UPLO", "L"))
        case "cholesky_solve":
            return "U" if options.get("upper", False) else "L"
        case "linalg_ldl_factor_ex" | "linalg_ldl_solve":
            return "L"
        case "linalg_pinv":
            return "L" if options.get("hermitian", False) else ""
    return ""


def places(call: Call, tensors: dict[str, Value], half: str = "") -> list[Read]:
    """Read, in each place of the batch, all that stands there, or a triangle of it."""
    reads = []
    for name, value in tensors.items():
        axes = min(AXES.get(name, AXES.get(f"{name_of(call.op)}.{name}", 2)), value.ndim)
        row, column = torch.arange(value.shape[-2] if axes > 1 else 1)[:, None], torch.arange(value.shape[-1:].numel())
        beyond = {"L": column > row, "U": column < row}.get(half) if axes > 1 else None
        reads.append(Read(value.codes, axes, beyond))
    return reads


def whole(call: Call, tensors: dict[str, Value], half: str = "") -> Any:
    """Make a node in each place of the batch and return how an output is made of it."""
    reads = places(call, tensors, half)
    batch = torch.broadcast_shapes(*(read.codes.shape[: read.codes.ndim - read.inner] for read in reads))
    codes = forget(call.nodes(batch, *reads))

    def spread(m: Tensor) -> Value:
        if not m.numel():
            return Value(uniform(GENERIC, m.shape), None, m.dtype)
        return Value(codes.reshape((*batch, *(1,) * (m.ndim - len(batch)))).expand(m.shape), None, m.dtype)

    return spread
