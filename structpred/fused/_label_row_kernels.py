# mypy: ignore-errors
"""What the sweeps over label sets share: scores of one row of features, and moves along it. Tables are (features, labels)."""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def slopes_of(indptr, indices, values, table, truth, costs, i, out):
    """out[l] = what it gains to switch label l on: its scores on less off, 2 x V, and what it costs."""
    n_labels = out.shape[0]
    for j in range(np.uint64(n_labels)):
        out[j] = -costs[i, j] if truth[i, j] else costs[i, j]
    for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
        f, x = np.uint64(indices[k]), 2.0 * values[k]
        for j in range(np.uint64(n_labels)):
            out[j] += x * table[f, j]


@njit(cache=True, nogil=True)
def move_labels(indptr, indices, values, i, upper, point, old, picks, amounts, table):
    """table -= upper x (point - old)' for the labels that moved; returns how many did."""
    found = 0
    for j in range(point.shape[0]):
        if point[j] != old[j]:
            picks[found], amounts[found] = j, upper * (point[j] - old[j])
            found += 1
    for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
        f, x = np.uint64(indices[k]), values[k]
        for j in range(np.uint64(found)):
            table[f, np.uint64(picks[j])] -= x * amounts[j]
    return found
