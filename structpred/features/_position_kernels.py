# mypy: ignore-errors
"""Compiled scores and differences of chains whose positions are scored by functions of kernels (see task/function_space.py)."""

from structpred.core._sparse_kernels import coalesce
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def score_positions(w, ends, factors, sizes, first, last, out):
    """Emission scores of positions first..last-1, position by position, then transition scores. sizes: (n, labels, kernels)."""
    n, n_labels, n_kernels = sizes
    length = last - first
    out[:] = 0.0
    for k in range(n_kernels):
        for label in range(n_labels):
            at = ends[k] + (n_labels + label) * n
            for t in range(length):
                out[t * n_labels + label] += factors[k] * w[at + first + t]
    at = ends[n_kernels]
    for label in range(n_labels):
        out[label] += factors[n_kernels] * w[at + label]
        out[(length - 1) * n_labels + label] += factors[n_kernels] * w[at + n_labels + label]
    at = ends[n_kernels + 1]
    for p in range(n_labels * n_labels):
        out[length * n_labels + p] = factors[n_kernels + 1] * w[at + p]


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
