# mypy: ignore-errors
"""Cholesky's method: the same bits on any number of threads."""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def cholesky(system, least):
    """The upper triangle of the system becomes U, U'U the system; pivots are at least these."""
    n = system.shape[0]
    for k in range(n):
        row = system[k, k:n]
        pivot = np.sqrt(max(row[0], least[k]))
        for m in range(row.shape[0]):
            row[m] /= pivot
        for j in range(1, row.shape[0]):
            share, source, target = row[j], row[j:], system[k + j, k + j : n]
            if share != 0.0:
                for m in range(source.shape[0]):
                    target[m] -= share * source[m]


@njit(cache=True, nogil=True)
def solve(system, n, x):
    """x = (U'U)^-1 x, for the first n entries."""
    for k in range(n):
        x[k] /= system[k, k]
        share, row, rest = x[k], system[k, k + 1 : n], x[k + 1 : n]
        for m in range(row.shape[0]):
            rest[m] -= share * row[m]
    for k in range(n - 1, -1, -1):
        row, rest = system[k, k + 1 : n], x[k + 1 : n]
        even, odd, last = 0.0, 0.0, row.shape[0] // 2
        for m in range(last):  # two sums, so that none waits for the other
            even += row[2 * m] * rest[2 * m]
            odd += row[2 * m + 1] * rest[2 * m + 1]
        if row.shape[0] > 2 * last:
            even += row[2 * last] * rest[2 * last]
        x[k] = (x[k] - even - odd) / system[k, k]
