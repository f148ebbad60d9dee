# mypy: ignore-errors
"""Systems (I + sum_i s_i x_i x_i') z = r of one label, over features, or over the rows where s_i > 0."""

import numpy as np

from structpred.core._triangle_kernels import cholesky, solve
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def factor(x, gram, shares, rows):
    """The triangle of the system over features; given the Gram matrix of all rows, of 1 / s + x x' over these rows."""
    n = rows.shape[0] if gram.shape[0] > 0 else x.shape[1]
    system = np.eye(n)
    for i in rows[: 0 if gram.shape[0] > 0 else rows.shape[0]]:
        for p in range(np.uint64(n)):
            amount = shares[i] * x[i, p]
            for q in range(p, np.uint64(n)):
                system[p, q] += amount * x[np.uint64(i), q]
    for p in range(n if gram.shape[0] > 0 else 0):
        system[p] = gram[rows[p]][rows]
        system[p, p] += 1.0 / shares[rows[p]]
    cholesky(system, np.full(n, 1e-300))
    return system


@njit(cache=True, nogil=True)
def solve_label(x, gram, rows, system, z):
    """z was r, and becomes the solution."""
    if gram.shape[0] == 0:
        return solve(system, z.shape[0], z)
    sums = np.zeros(rows.shape[0])
    for p in range(rows.shape[0]):
        for f in range(x.shape[1]):
            sums[p] += x[rows[p], f] * z[f]
    solve(system, rows.shape[0], sums)
    for p in range(rows.shape[0]):
        for f in range(np.uint64(x.shape[1])):
            z[f] -= sums[p] * x[np.uint64(rows[p]), f]
