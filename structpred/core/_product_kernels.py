# mypy: ignore-errors
"""Sums over long vectors in an order that is fixed, as fast as memory is."""

import numpy as np

from structpred.runtime.jit import njit

#: sums side by side, a power of two: of fewer a compiler makes no whole vector instructions where it has to convert float32
WIDTH = 64


@njit(cache=True, nogil=True, borrows=True)
def folded(sums):
    """The upper half of WIDTH sums is added to the lower, and so on."""
    half = WIDTH // 2
    while half > 0:
        for k in range(half):
            sums[k] += sums[k + half]
        half //= 2
    return sums[0]


@njit(cache=True, nogil=True)
def dot(a, b):
    """Product k is added to sum k modulo WIDTH, in float64; in the end these are folded."""
    sums = np.zeros(WIDTH)
    whole = a.shape[0] - a.shape[0] % WIDTH
    for start in range(0, whole, WIDTH):
        x, y = a[start : start + WIDTH], b[start : start + WIDTH]
        for k in range(WIDTH):
            sums[k] += np.float64(x[k]) * np.float64(y[k])
    for k in range(whole, a.shape[0]):
        sums[k - whole] += np.float64(a[k]) * np.float64(b[k])
    return folded(sums)


@njit(cache=True, nogil=True)
def dot_of_differences(a, b, c, d):
    """<a - b, c - d>, added up as `dot` does."""
    sums = np.zeros(WIDTH)
    whole = a.shape[0] - a.shape[0] % WIDTH
    for start in range(0, whole, WIDTH):
        stop = start + WIDTH
        p, q, r, s = a[start:stop], b[start:stop], c[start:stop], d[start:stop]
        for k in range(WIDTH):
            sums[k] += (p[k] - q[k]) * (r[k] - s[k])
    for k in range(whole, a.shape[0]):
        sums[k - whole] += (a[k] - b[k]) * (c[k] - d[k])
    return folded(sums)


@njit(cache=True, nogil=True, borrows=True)
def add_multiple(out, coef, vector):
    """out += coef * vector, each product rounded before it is added."""
    for k in range(out.shape[0]):
        out[k] += coef * vector[k]
