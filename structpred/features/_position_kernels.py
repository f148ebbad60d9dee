# mypy: ignore-errors
"""Compiled scores and differences of chains whose positions are scored by functions of kernels (see task/function_space.py)."""

import numpy as np

from structpred.core._sparse_kernels import coalesce
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def position_row(w, ends, factors, sizes, t, first, last, row):
    """row = the scores of the labels at position t of the sequence first..last-1, by the weights alone."""
    n, n_labels, n_kernels = sizes
    row[:] = 0.0
    for k in range(n_kernels):
        at = ends[k] + n_labels * n + t
        for label in range(n_labels):
            row[label] += factors[k] * np.float64(w[at + label * n])
    at = ends[n_kernels]
    for edge in range(2):
        if (edge == 0 and t == first) or (edge == 1 and t == last - 1):
            for label in range(n_labels):
                row[label] += factors[n_kernels] * np.float64(w[at + edge * n_labels + label])


@njit(cache=True, nogil=True)
def score_positions(w, ends, factors, sizes, first, last, out):
    """Emission scores of positions first..last-1, position by position, then transition scores. sizes: (n, labels, kernels)."""
    _, n_labels, n_kernels = sizes
    for t in range(first, last):
        position_row(w, ends, factors, sizes, t, first, last, out[(t - first) * n_labels : (t - first + 1) * n_labels])
    at = ends[n_kernels + 1]
    for p in range(n_labels * n_labels):
        out[(last - first) * n_labels + p] = factors[n_kernels + 1] * w[at + p]


@njit(cache=True, nogil=True)
def emit_positions(parts, counts, ends, sizes, first, last, idx, val, idx2, val2):
    """The joint features of part counts, sorted and unique: the values of each kernel's function. Returns their number."""
    n, n_labels, n_kernels = sizes
    length = last - first
    m = 0
    for e in range(parts.shape[0]):
        t = parts[e] // n_labels
        label = parts[e] % n_labels
        if t >= length:
            idx[m] = ends[n_kernels + 1] + parts[e] - length * n_labels
            val[m] = counts[e]
            m += 1
            continue
        for k in range(n_kernels):
            idx[m] = ends[k] + (n_labels + label) * n + first + t
            val[m] = counts[e]
            m += 1
        if t == 0:
            idx[m] = ends[n_kernels] + label
            val[m] = counts[e]
            m += 1
        if t == length - 1:
            idx[m] = ends[n_kernels] + n_labels + label
            val[m] = counts[e]
            m += 1
    return coalesce(idx, val, m, idx2, val2)
