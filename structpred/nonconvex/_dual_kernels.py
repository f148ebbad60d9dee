# mypy: ignore-errors
"""Compiled solvers of a support vector machine whose points may carry both labels, each with a weight.

`smo`: sequential minimal optimisation, with the kernel matrix. `ascend`: dual coordinate ascent, where features are few.
"""

import numpy as np

from structpred.runtime.jit import njit

#: the least curvature along a pair: that of two copies of one point is zero
TINY = 1e-12


@njit(cache=True, nogil=True)
def dual_value(upper, lower, beta, f):
    """sum_i min(2 upper_i - beta_i, 2 lower_i + beta_i) - 1/2 beta' f, where f = K beta."""
    value = 0.0
    for k in range(len(f)):
        value += min(2.0 * upper[k] - beta[k], 2.0 * lower[k] + beta[k]) - 0.5 * beta[k] * f[k]
    return value


@njit(cache=True, nogil=True)
def raisable(upper, lower, beta, f):
    """The point whose beta gains most by rising, and its slope."""
    top, i = -np.inf, -1
    for k in range(len(f)):
        if beta[k] < upper[k]:
            slope = (1.0 if beta[k] < upper[k] - lower[k] else -1.0) - f[k]
            if slope > top:
                top, i = slope, k
    return top, i


@njit(cache=True, nogil=True)
def partner(gram, diagonal, upper, lower, beta, f, top, i):
    """The point to lower with point i, by the gain of an unbounded step; and the least slope of those that can fall."""
    low, best, j = np.inf, 0.0, -1
    row = gram[i]
    for k in range(len(f)):
        if beta[k] > -lower[k]:
            slope = (1.0 if beta[k] <= upper[k] - lower[k] else -1.0) - f[k]
            low = min(low, slope)
            ahead = top - slope
            if ahead > 0.0:
                gain = ahead * ahead / max(diagonal[i] + diagonal[k] - 2.0 * row[k], TINY)
                if gain > best:
                    best, j = gain, k
    return low, j


@njit(cache=True, nogil=True)
def smo(gram, diagonal, upper, lower, beta, f, tol, stop_at, max_steps):
    """Maximise `dual_value` over -lower <= beta <= upper, sum(beta) = 0, in place; beta must be feasible and f = K beta.

    It ends when no pair of slopes differs by more than tol, or when the value, a lower bound at any time, reaches stop_at.
    Returns (steps, value, the largest slope upwards, the least slope downwards): the offset lies between the last two.
    """
    value, steps, top, low = dual_value(upper, lower, beta, f), 0, -np.inf, np.inf
    while True:
        top, i = raisable(upper, lower, beta, f)
        if i < 0:
            break
        low, j = partner(gram, diagonal, upper, lower, beta, f, top, i)
        if j < 0 or top - low <= tol or value >= stop_at or steps == max_steps:
            break
        kink_i, kink_j = upper[i] - lower[i], upper[j] - lower[j]
        slope_j = (1.0 if beta[j] <= kink_j else -1.0) - f[j]
        end_i = kink_i if beta[i] < kink_i else upper[i]
        end_j = kink_j if beta[j] > kink_j else -lower[j]
        curvature = max(diagonal[i] + diagonal[j] - 2.0 * gram[i, j], TINY)
        step = (top - slope_j) / curvature
        ahead_i, ahead_j = end_i - beta[i], beta[j] - end_j
        step = min(step, ahead_i, ahead_j)
        value += step * (top - slope_j - 0.5 * step * curvature)
        beta[i] = end_i if step == ahead_i else beta[i] + step
        beta[j] = end_j if step == ahead_j else beta[j] - step
        row_i, row_j = gram[i], gram[j]
        for k in range(len(f)):
            f[k] += step * (row_i[k] - row_j[k])
        steps += 1
    return steps, value, top, low


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
