"""Linear algebra on triangles: what stands beyond the diagonal is not read.

Reads: Cholesky    L[i, j] ← A[a, b] for b ≤ a, b ≤ j, and either a ≤ j or a = i
       inverse     of what was factorised: X[i, j] ← L[a, b] for min(i, j) ≤ b ≤ a
       QR          Q[:, j] ← columns up to j; R[i, j] ← columns up to i, and column j
       LU          L[i, j] and U[i, j] ← columns up to i, and column j; pivot j ← columns up to j
       solution    x[i, k] ← B[a, k] and A[a, b] for b ≤ a ≤ i
       LU unpack   nothing: L and U are moved out of what they are packed in; P ← all pivots

All for lower triangles; upper ones are lower ones of the transposed matrix, seen from the end.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from depgraph.rules.call import Call, Read
from depgraph.rules.contraction import arrange
from depgraph.rules.registry import name_of, rule
from depgraph.rules.values import GENERIC, KNOWN, Value, forget

# Which entries a single entry reads is kept track of up to these sizes; beyond, each reads the whole triangle.
CHOLESKY, SOLUTION = 48, 256


def index(size: int, axis: int, axes: int) -> Tensor:
    """Count along one of several axes."""
    return torch.arange(size).reshape([size if a == axis else 1 for a in range(axes)])


@rule("cholesky", "linalg_cholesky_ex")
def cholesky(call: Call, matrix: Value, upper: bool = False, **_: Any) -> Any:
    """Factorise; the second output tells whether it worked."""
    codes = matrix.codes.transpose(-1, -2) if upper else matrix.codes
    size = codes.shape[-1]
    i, j, a, b = (index(size if size <= CHOLESKY or k > 1 else 1, k, 4) for k in range(4))
    dead = b > a if size > CHOLESKY else (b > a) | (b > j) | ((a > j) & (a != i)) | (i < j)
    factor = forget(call.nodes(codes.shape, Read(codes[..., None, None, :, :], 2, dead))).tril()
    factor = factor.transpose(-1, -2) if upper else factor
    if isinstance(call.meta, Tensor):
        return Value(factor, None, call.dtype)
    info = forget(call.nodes(codes.shape[:-2], Read(codes, 2, b[0, 0] > a[0, 0])))
    return Value(factor, None, call.dtype), Value(info, None, call.meta[1].dtype)


@rule("cholesky_inverse")
def cholesky_inverse(call: Call, factor: Value, upper: bool = False) -> Value:
    """Invert what was factorised."""
    codes = factor.codes.transpose(-1, -2) if upper else factor.codes
    size = codes.shape[-1]
    i, j, a, b = (index(size if size <= CHOLESKY or k > 1 else 1, k, 4) for k in range(4))
    dead = (b > a) | (b < torch.minimum(i, j))
    return Value(forget(call.nodes(codes.shape, Read(codes[..., None, None, :, :], 2, dead))), None, call.dtype)


@rule("linalg_qr", "geqrf", "linalg_lu", "linalg_lu_factor_ex")
def column_by_column(call: Call, matrix: Value, *_: Any, pivot: bool = True, **__: Any) -> Any:
    """Factorise from the left to the right."""
    rows, columns = matrix.shape[-2:]
    name = name_of(call.op)
    # The last step of as many as there are rows has nothing left to choose; complex numbers still get a phase.
    last = rows - 2 if "lu" in name or not matrix.dtype.is_complex else rows
    codes = matrix.codes.transpose(-1, -2)[..., None, None, :, :]
    parts = []
    for number, m in enumerate(call.meta):
        if not m.numel():
            parts.append(Value(torch.tensor(GENERIC).expand(m.shape), None, m.dtype))
            continue
        if m.ndim == matrix.ndim - 2:  # whether it worked
            parts.append(Value(forget(call.nodes(m.shape, Read(matrix.codes, 2))), None, m.dtype))
            continue
        line = m.ndim < matrix.ndim  # pivots and their like
        left = line or (number == 0 and "lu_factor" not in name and name != "geqrf")  # Q, and P
        i, j = torch.arange(1 if line else m.shape[-2])[:, None], torch.arange(m.shape[-1])
        # Which row stands where in L is settled by all the pivots up to there.
        bound = (j if left else i if "lu" in name and pivot else torch.minimum(i, j)).expand(len(i), len(j))
        b = torch.arange(columns)[:, None]
        dead = b > bound.clamp(max=last)[..., None, None]
        if not left:
            dead = dead & (b != j[:, None, None])
        if line:
            dead = dead | (j[:, None, None] > last)
        made = forget(call.nodes((*matrix.shape[:-2], *bound.shape), Read(codes, 2, dead)))
        part = Value(made.reshape(m.shape), None, m.dtype)
        if (name, number) == ("linalg_lu", 1):
            part = part.over(part.codes.tril(-1), torch.eye(*m.shape[-2:], dtype=m.dtype).expand(m.shape))
        elif (name, number) in (("linalg_lu", 2), ("linalg_qr", 1)):
            part = part.over(part.codes.triu())
        parts.append(part)
    return tuple(parts)


@rule("linalg_solve_triangular", contraction=True)
def solve_triangular(
    call: Call, matrix: Value, side: Value, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Value:
    """Solve ``A x = B`` or ``x A = B``."""
    if left:
        return Value(solved(call, matrix.codes, side.codes, upper, unitriangular), None, call.dtype)
    flipped = solved(call, matrix.codes.transpose(-1, -2), side.codes.transpose(-1, -2), not upper, unitriangular)
    return Value(flipped.transpose(-1, -2), None, call.dtype)


@rule("triangular_solve", contraction=True)
def triangular_solve(
    call: Call, side: Value, matrix: Value, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """Solve ``A x = B``; the second output is the matrix itself."""
    codes = matrix.codes.transpose(-1, -2) if transpose else matrix.codes
    solution = solved(call, codes, side.codes, upper != transpose, unitriangular)
    return Value(solution, None, call.dtype), arrange(matrix, lambda t: t.expand(call.meta[1].shape))


def solved(call: Call, matrix: Tensor, side: Tensor, upper: bool, unitriangular: bool) -> Tensor:
    """Return the codes of what solves ``A x = B``."""
    if upper:
        return solved(call, matrix.flip(-1, -2), side.flip(-2), False, unitriangular).flip(-2)
    size = matrix.shape[-1]
    i, _, a, b = (index(size if size <= SOLUTION or k > 1 else 1, k, 4) for k in range(4))
    beyond = b >= a if unitriangular else b > a
    later = a > i if size <= SOLUTION else torch.zeros((), dtype=torch.bool)
    reads = [Read(matrix[..., None, None, :, :], 2, beyond | later)]
    reads.append(Read(side.transpose(-1, -2).unsqueeze(-3), 1, later[..., 0] if later.ndim else None))
    batch = torch.broadcast_shapes(matrix.shape[:-2], side.shape[:-2])
    return forget(call.nodes((*batch, *side.shape[-2:]), *reads))


@rule("lu_unpack")
def lu_unpack(call: Call, packed: Value, pivots: Value, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """Move the two factors out of where they are packed; the permutation reads the pivots."""
    rows, columns = packed.shape[-2:]
    size = min(rows, columns)
    order, lower, upper = (Value(torch.tensor(KNOWN).expand(m.shape), None, m.dtype) for m in call.meta)
    if unpack_pivots:
        order = order.over(forget(call.nodes(order.shape, Read(pivots.codes[..., None, None, :], 1))))
    if unpack_data:
        one = torch.eye(rows, size, dtype=packed.dtype)
        below = packed.through(lambda t: t[..., :size].tril(-1))
        low, high = (end if end is None else end + one for end in (below.values(), below.high))
        lower = Value(below.codes, low, packed.dtype, high, below.nan)
        upper = packed.through(lambda t: t[..., :size, :].triu())
    return order, lower, upper
