# mypy: ignore-errors
"""Compiled sequential minimal optimisation of a support vector machine whose points may carry both labels, each with a weight."""

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
