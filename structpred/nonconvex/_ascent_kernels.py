# mypy: ignore-errors
"""Compiled dual coordinate ascent for points that may carry both labels, each with a weight, where features are few."""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def ascend(features, squares, upper, lower, beta, w, order, sweeps):
    """Sweeps over the points in `order`: beta_i goes to the maximum of the dual along it; w = sum_i beta_i z_i is kept.

    The dual is sum_i min(2 upper_i - beta_i, 2 lower_i + beta_i) - 1/2 |w|^2, with -lower <= beta <= upper: along beta_i a
    concave function with one bend, at upper_i - lower_i. After the first sweep, `sweeps` more follow over the points that moved
    in the one before. w has the precision of the features.
    """
    active, n_active = order.copy(), len(order)
    for _ in range(sweeps + 1):
        moved = 0
        for a in range(n_active):
            i = active[a]
            row = features[i]
            h = np.dot(row, w)
            kink, size = upper[i] - lower[i], max(squares[i], 1e-12)
            new = min(max(beta[i] + (1.0 - h) / size, -lower[i]), kink)
            if new == kink:
                new = min(max(beta[i] - (1.0 + h) / size, kink), upper[i])
            step = features.dtype.type(new - beta[i])
            if step != 0.0:
                beta[i] = new
                for k in range(len(w)):
                    w[k] += step * row[k]
                active[moved] = i
                moved += 1
        n_active = moved


@njit(cache=True, nogil=True)
def weights(features, beta):
    """w = sum_i beta_i z_i in double precision."""
    w = np.zeros(features.shape[1])
    for i in range(len(beta)):
        if beta[i] != 0.0:
            for k in range(len(w)):
                w[k] += beta[i] * features[i, k]
    return w


@njit(cache=True, nogil=True)
def values(features, w):
    """<z_i, w> in double precision, without a copy of the features."""
    h = np.empty(features.shape[0])
    for i in range(len(h)):
        total = 0.0
        for k in range(len(w)):
            total += features[i, k] * w[k]
        h[i] = total
    return h
