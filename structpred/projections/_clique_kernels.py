# mypy: ignore-errors
"""Compiled steps of the projection onto clique marginals: tables for given multipliers, and damped Newton steps between these.

What goes together comes as one tuple: cliques (weights, offsets, indptr, columns, signs), the metric of each entry, where tables
begin, and the equations B by rows.
"""

import numpy as np

from structpred.core._product_kernels import dot
from structpred.runtime.jit import njit

#: steps of conjugate gradients for one direction; lengths of it that are tried, and the largest
INNER, TRIALS, LONGEST = 500, 40, 8.0
#: the least damping of Newton steps: equations are redundant where few entries are positive
DAMPED = 1e-4


@njit(cache=True, nogil=True)
def mismatch(x, cliques, out):
    """out = B x."""
    _, _, indptr, columns, signs = cliques
    for r in range(out.shape[0]):
        total = 0.0
        for k in range(indptr[r], indptr[r + 1]):
            total += signs[k] * x[columns[k]]
        out[r] = total


@njit(cache=True, nogil=True)
def spread(v, cliques, out):
    """out = B' v."""
    _, _, indptr, columns, signs = cliques
    out[:] = 0.0
    for r in range(v.shape[0]):
        for k in range(indptr[r], indptr[r + 1]):
            out[columns[k]] += signs[k] * v[r]


@njit(cache=True, nogil=True)
def tables_of(nu, point, cliques, x, slope):
    """x = each table's nearest point of its simplex to point - B' nu / weights, slope = B x.

    Returns the dual's value but for a constant.
    """
    weights, offsets = cliques[:2]
    spread(nu, cliques, x)
    value = 0.0
    for c in range(offsets.shape[0] - 1):
        first, last = offsets[c], offsets[c + 1]
        top = -np.inf
        for j in range(first, last):
            x[j] = point[j] - x[j] / weights[j]
            top = max(top, x[j])
        tau, before = -1.0, last - first + 1  # relative to the largest; from the left of the root Newton's steps stay there
        while True:
            total, n = -1.0, 0
            for j in range(first, last):
                ahead = (x[j] - top) - tau
                if ahead > 0.0:
                    total += ahead
                    n += 1
            if n >= before:
                break
            tau += total / n
            before = n
        for j in range(first, last):
            x[j] = max((x[j] - top) - tau, 0.0)
            value += weights[j] * x[j] * (0.5 * x[j] - point[j])
    mismatch(x, cliques, slope)
    return value + dot(nu, slope)


@njit(cache=True, nogil=True)
def positive(x, cliques):
    """The tables without entries that are zero."""
    weights, offsets, indptr, columns, signs = cliques
    kept = x > 0.0
    before, ends, n = np.append(0, np.cumsum(kept)), np.zeros_like(indptr), 0
    own_columns, own_signs = np.empty_like(columns), np.empty_like(signs)
    for r in range(indptr.shape[0] - 1):
        for k in range(indptr[r], indptr[r + 1]):
            if kept[columns[k]]:
                own_columns[n], own_signs[n] = before[columns[k]], signs[k]
                n += 1
        ends[r + 1] = n
    return weights[kept], before[offsets], ends, own_columns[:n], own_signs[:n]


@njit(cache=True, nogil=True)
def curved(v, damping, cliques, change, out):
    """out = damping v - Hessian v = B P B' v / weights, over positive entries; P projects on changes of tables with sum zero."""
    weights, offsets = cliques[:2]
    spread(v, cliques, change)
    for c in range(offsets.shape[0] - 1):
        mean = 0.0
        for j in range(offsets[c], offsets[c + 1]):
            mean += change[j]
        mean /= offsets[c + 1] - offsets[c]
        for j in range(offsets[c], offsets[c + 1]):
            change[j] = (change[j] - mean) / weights[j]
    mismatch(change, cliques, out)
    for r in range(v.shape[0]):
        out[r] += damping * v[r]


@njit(cache=True, nogil=True)
def direction(slope, damping, accuracy, cliques):
    """To `accuracy` the solution of the damped Newton equations over positive entries, by scaled conjugate gradients."""
    weights, _, indptr, columns, _ = cliques
    m = slope.shape[0]
    diagonal, found, rest = np.full(m, damping), np.zeros(m), slope.copy()
    for r in range(m):
        for k in range(indptr[r], indptr[r + 1]):
            diagonal[r] += 1.0 / weights[columns[k]]
    along, change, product = slope / diagonal, np.empty(weights.shape[0]), np.empty(m)
    size, goal = dot(rest, along), accuracy * accuracy * dot(slope, slope)
    for _ in range(INNER):
        curved(along, damping, cliques, change, product)
        length, before = size / dot(along, product), size
        size = 0.0
        for r in range(m):
            found[r] += length * along[r]
            rest[r] -= length * product[r]
            size += rest[r] * rest[r] / diagonal[r]
        if not dot(rest, rest) > goal:
            break
        for r in range(m):
            along[r] = rest[r] / diagonal[r] + size / before * along[r]
    return found


@njit(cache=True, nogil=True)
def newton_step(nu, x, slope, value, far, point, cliques):
    """One step up, in place, to where the slope along it is a fraction of that at its start; returns the dual's value there.

    nu: the multipliers; x, slope, value: as `tables_of` gives for them. far: how many times as far as usual the point is away.
    """
    worst = np.abs(slope).max()
    step = direction(slope, max(DAMPED, 0.1 * worst) / far, min(0.03, max(worst, 1e-4)), positive(x, cliques))
    rise, higher = dot(slope, step), value
    ahead, next_slope = np.empty(x.shape[0]), np.empty(slope.shape[0])
    length, low, high, low_rise, high_rise = 1.0, 0.0, np.inf, rise, -np.inf
    for _ in range(TRIALS):
        higher = tables_of(nu + length * step, point, cliques, ahead, next_slope)
        along = dot(next_slope, step)
        if rise < 1e-9 * (1.0 + abs(value)) and np.abs(next_slope).max() < worst:
            break  # values are the same to rounding
        if along < -0.3 * rise or higher < value + 1e-4 * length * rise:
            high, high_rise = length, min(along, -0.3 * rise)
        elif along > 0.3 * rise and (high < np.inf or length < LONGEST):
            low, low_rise = length, along
        else:
            break
        share = low_rise / (low_rise - high_rise)
        length = low + (high - low) * min(0.9, max(0.1, share)) if high < np.inf else 2.0 * length
    nu += length * step
    x[:] = ahead
    slope[:] = next_slope
    return higher
