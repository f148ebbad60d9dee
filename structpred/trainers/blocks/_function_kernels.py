# mypy: ignore-errors
"""Steps of weights in kernel form: a coefficient changes, and a row of a Gram matrix is added to the values of a function.

place: (where the values of the kernel begin, how far in front of them the coefficients are, n positions). v and u are those of
`GroupedWeights`; the indices of a step are those of values.
"""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def add_dense(v, u, mass, place, gram, idx, val, coef):
    """theta += coef * (idx, val). Returns (by how much |v|^2 grows, |(idx, val)|^2)."""
    first, back, n = place
    grown = 0.0
    own = 0.0
    step = np.empty(1, v.dtype)
    for e in range(idx.shape[0]):
        label = (idx[e] - first) // n
        t = (idx[e] - first) % n
        similar = gram[t]
        own += square_of(idx, val, e, first, n, similar)
        step[0] = coef * val[e]
        c = step[0]
        row = v[first + label * n : first + (label + 1) * n]
        grown += 2.0 * c * np.float64(row[t]) + np.float64(c) * c * similar[t]
        v[idx[e] - back] += c
        for s in range(n):
            row[s] += c * similar[s]
        if u.shape[0] > 0:
            u[idx[e] - back] += mass * c
            for s in range(n):
                u[first + label * n + s] += mass * (c * similar[s])
    return grown, own


@njit(cache=True, nogil=True)
def square_of(idx, val, e, first, n, similar):
    """What pair e adds to the squared norm of a step, beside the pairs before it."""
    label = (idx[e] - first) // n
    total = val[e] * val[e] * similar[(idx[e] - first) % n]
    for b in range(e):
        if (idx[b] - first) // n == label:
            total += 2.0 * val[e] * val[b] * similar[(idx[b] - first) % n]
    return total


@njit(cache=True, nogil=True)
def add_sparse(v, u, mass, place, gram, idx, val, coef):
    """As `add_dense`, for a CSR matrix (indptr, indices, data) with sorted indices."""
    first, back, n = place
    indptr, indices, data = gram
    grown = 0.0
    own = 0.0
    step = np.empty(1, v.dtype)
    full = np.zeros(n, data.dtype)
    for e in range(idx.shape[0]):
        t = (idx[e] - first) % n
        at = first + (idx[e] - first) // n * n
        here = slice(indptr[t], indptr[t + 1])
        near = indices[here]
        similar = data[here]
        for p in range(near.shape[0]):
            full[near[p]] = similar[p]
        own += square_of(idx, val, e, first, n, full)
        step[0] = coef * val[e]
        c = step[0]
        grown += 2.0 * c * np.float64(v[at + t]) + np.float64(c) * c * full[t]
        v[idx[e] - back] += c
        for p in range(near.shape[0]):
            v[at + near[p]] += c * similar[p]
            full[near[p]] = 0.0
        if u.shape[0] > 0:
            u[idx[e] - back] += mass * c
            for p in range(near.shape[0]):
                u[at + near[p]] += mass * (c * similar[p])
    return grown, own
