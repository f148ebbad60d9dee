# mypy: ignore-errors
"""Compiled passes over the signed rows of a LinearTask: each row is read once and is still in the cache when it is used again."""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def row_dot(indices, values, start, stop, w):
    """The inner product of a sparse row and dense weights."""
    total = 0.0
    for k in range(np.uint64(start), np.uint64(stop)):  # unsigned: no place is counted from the end
        total += values[k] * w[np.uint32(indices[k])]
    return total


@njit(cache=True, nogil=True)
def row_dots(indptr, indices, values, w, out):
    """out = A w."""
    for i in range(out.shape[0]):
        out[i] = row_dot(indices, values, indptr[i], indptr[i + 1], w)


@njit(cache=True, nogil=True)
def row_squares(indptr, values, out):
    """out_i = |row i|^2."""
    for i in range(out.shape[0]):
        total = 0.0
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            total += values[k] * values[k]
        out[i] = total


@njit(cache=True, nogil=True)
def add_rows(indptr, indices, values, shares, out):
    """out += A' shares."""
    for i in range(shares.shape[0]):
        share = shares[i]
        if share != 0.0:
            for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                out[np.uint32(indices[k])] += share * values[k]


@njit(cache=True, nogil=True)
def hinge_terms(indptr, indices, values, w, rows, shares, target, difference, violations):
    """violations[k] = max(0, target - <row, w>) of each of the rows; difference += its share of the row where that is positive.

    Returns the sum of the shares of these rows.
    """
    total = 0.0
    for k in range(rows.shape[0]):
        start, stop = indptr[rows[k]], indptr[rows[k] + 1]
        violation = target - row_dot(indices, values, start, stop, w)
        violations[k] = max(violation, 0.0)
        if violation > 0.0:
            share = shares[k]
            total += share
            for j in range(np.uint64(start), np.uint64(stop)):
                difference[np.uint32(indices[j])] += share * values[j]
    return total
