# mypy: ignore-errors
"""Compiled steps of LabelRows: outer products of a sparse row and label counts; weights are a table (features, labels)."""

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def emit_outer(indices, values, start, stop, n_labels, parts, counts, idx, val):
    """The entries x_f * counts[k] at (f, parts[k]) of the flat table; sorted and unique where features and parts are."""
    n = 0
    for k in range(start, stop):
        for j in range(parts.shape[0]):
            idx[n] = indices[k] * n_labels + parts[j]
            val[n] = values[k] * counts[j]
            n += 1


@njit(cache=True, nogil=True)
def add_outer(indices, values, start, stop, parts, amounts, table):
    """table[f, parts] += x_f * amounts for the features of one row."""
    for k in range(start, stop):
        row = table[indices[k]]
        x = values[k]
        for j in range(parts.shape[0]):
            row[parts[j]] += x * amounts[j]
