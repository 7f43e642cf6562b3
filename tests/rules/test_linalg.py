"""Linear algebra reads whole matrices, and of a right-hand side a column."""

import torch

from tests.jacobian import check

R = torch.randn


def definite(x):
    return x @ x.mT + torch.eye(x.shape[-1], dtype=x.dtype)


def test_factorisations():
    check(
        lambda x: {
            "determinant": torch.linalg.det(x),
            "log determinant": torch.linalg.slogdet(x).logabsdet,
            "inverse": torch.linalg.inv(x),
            "exponential": torch.linalg.matrix_exp(x),
            "power": torch.linalg.matrix_power(x, 2),
            "eigenvalues": torch.linalg.eigvalsh(definite(x)),
            "singular values": torch.linalg.svdvals(x),
        },
        R(2, 2, 2),
    )


def test_triangular_factors():
    # Parts of them are zero, or read a part of the matrix only.
    check(
        lambda x: {"cholesky": torch.linalg.cholesky(definite(x)), "qr": torch.linalg.qr(x).R},
        R(2, 2, 2),
        exact=False,
    )


def test_solutions_column_by_column():
    check(
        lambda a, b, v: {
            "solve": torch.linalg.solve(a, b),
            "vector": torch.linalg.solve(a, v),
            "from the right": torch.linalg.solve(a, b.mT, left=False),
            "triangular": torch.linalg.solve_triangular(a.tril() + 2 * torch.eye(2), b, upper=False),
        },
        *(R(2, 2), R(2, 3), R(2)),
        exact=False,  # a triangular matrix leaves some terms out
    )
    check(lambda a, b: {"solve": torch.linalg.solve(a, b)}, R(2, 2, 2), R(2, 2, 3))
