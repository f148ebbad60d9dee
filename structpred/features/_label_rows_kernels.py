# mypy: ignore-errors
"""Compiled steps of LabelRows: outer products of a sparse row and label counts; weights are a table (features, labels)."""

import numpy as np

from structpred.features._feature_kernels import score_rows
from structpred.runtime.jit import njit

__all__ = ["add_outer", "ascending", "emit_each", "emit_outer", "score_rows"]


@njit(cache=True, nogil=True)
def emit_outer(indices, values, start, stop, n_labels, parts, counts, idx, val):
    """The entries x_f * counts[k] at (f, parts[k]) of the flat table that are not 0, and their number.

    They are sorted and unique where features and parts are.
    """
    n = 0
    for k in range(start, stop):
        for j in range(parts.shape[0]):
            amount = values[k] * counts[j]
            if amount != 0.0:
                idx[n] = indices[k] * n_labels + parts[j]
                val[n] = amount
                n += 1
    return n


@njit(cache=True, nogil=True)
def emit_each(indices, values, indptr, first, n_labels, parts, counts, ends, out):
    """`emit_outer` for the rows from `first` on, flat: (entries, amounts); out[k] is where those of row first + k begin."""
    size = 0
    for k in range(ends.shape[0] - 1):
        size += (indptr[first + k + 1] - indptr[first + k]) * (ends[k + 1] - ends[k])
    idx = np.empty(size, np.int64)
    val = np.empty(size)
    n = 0
    out[0] = 0
    for k in range(ends.shape[0] - 1):
        a, b = ends[k], ends[k + 1]
        start, stop = indptr[first + k], indptr[first + k + 1]
        n += emit_outer(indices, values, start, stop, n_labels, parts[a:b], counts[a:b], idx[n:], val[n:])
        out[k + 1] = n
    return idx[:n], val[:n]


@njit(cache=True, nogil=True)
def ascending(parts):
    """Whether each part is greater than the one before."""
    k = 1
    while k < parts.shape[0] and parts[k] > parts[k - 1]:
        k += 1
    return k >= parts.shape[0]


@njit(cache=True, nogil=True)
def add_outer(indices, values, start, stop, counts, coef, table):
    """table[f] += coef * (x_f * counts) for the features of one row."""
    for k in range(start, stop):
        row = table[indices[k]]
        x = values[k]
        for j in range(counts.shape[0]):
            row[j] += coef * (x * counts[j])
