# mypy: ignore-errors
"""Compiled steps over one dual variable of a scalar loss, and passes that read each signed row of a LinearTask once."""

import numpy as np

from structpred.runtime.jit import njit

#: Newton steps at most; the bracket halves where one leaves it
MOST = 100


@njit(cache=True, nogil=True)
def logit(b):
    """log(b / (1 - b)), finite at both ends."""
    return np.log(max(b, 1e-300)) - np.log(max(1.0 - b, 1e-300))


@njit(cache=True, nogil=True)
def sigmoid(x):
    """1 / (1 + exp(-x)), from numbers that do not overflow."""
    if x >= 0.0:
        return 1.0 / (1.0 + np.exp(-x))
    small = np.exp(x)
    return small / (1.0 + small)


@njit(cache=True, nogil=True)
def entropic_step(old, z, q, target, curvature, low, high, entropy):
    """The step where there is an entropy: the root of  F(x) = c + s b(x) + entropy x,  b(x) = 1 / (1 + exp(-x)), by Newton.

    a = low + (high - low) b. F rises at least as fast as entropy x, and s b is in [0, s], so the root is bracketed.
    """
    span = high - low
    if span <= 0.0:
        return low
    c = z - target + curvature * low + q * (low - old)
    s = (curvature + q) * span
    least, most = (-c - s) / entropy, -c / entropy
    x = min(max(logit((old - low) / span), least), most)
    for _ in range(MOST):
        b = sigmoid(x)
        found = c + s * b + entropy * x
        if found > 0.0:
            most = x
        else:
            least = x
        new = x - found / (s * b * (1.0 - b) + entropy)
        if not least < new < most:  # an end again: steps from end to end would never stop
            new = 0.5 * (least + most)
        if abs(new - x) <= 1e-15 * (1.0 + abs(x)):
            x = new
            break
        x = new
    return low + span * sigmoid(x)


@njit(cache=True, nogil=True)
def dual_step(old, z, q, target, curvature, low, high, entropy):
    """The a of [low, high] with the largest  -phi*(-a) - z (a - old) - q/2 (a - old)^2; `old` where all are as good.

    phi*(-a) = -target a + curvature a^2 / 2 + entropy (high - low) h(b), h(b) = b log b + (1 - b) log(1 - b), b = (a - low) /
    (high - low).
    """
    if entropy > 0.0:
        return entropic_step(old, z, q, target, curvature, low, high, entropy)
    slope = target - z - curvature * old
    steep = curvature + q
    if steep > 0.0:
        return min(max(old + slope / steep, low), high)
    if slope > 0.0:
        return high
    return low if slope < 0.0 else min(max(old, low), high)


@njit(cache=True, nogil=True)
def dual_steps(old, z, q, target, curvature, low, high, entropy, out):
    """The step of each variable on its own."""
    for i in range(out.shape[0]):
        out[i] = dual_step(old[i], z[i], q[i], target[i], curvature[i], low[i], high[i], entropy[i])


@njit(cache=True, nogil=True)
def row_dot(indices, values, start, stop, w):
    """The inner product of a sparse row and dense weights."""
    total = 0.0
    for k in range(np.uint64(start), np.uint64(stop)):  # unsigned: no place is counted from the end
        total += values[k] * w[np.uint32(indices[k])]
    return total


@njit(cache=True, nogil=True)
def row_dots(indptr, indices, values, w, out):
    """out = A w."""
    for i in range(out.shape[0]):
        out[i] = row_dot(indices, values, indptr[i], indptr[i + 1], w)


@njit(cache=True, nogil=True)
def add_rows(indptr, indices, values, shares, out):
    """out += A' shares."""
    for i in range(shares.shape[0]):
        share = shares[i]
        if share != 0.0:
            for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                out[np.uint32(indices[k])] += share * values[k]


@njit(cache=True, nogil=True)
def hinge_terms(indptr, indices, values, w, rows, shares, target, difference, violations):
    """violations[k] = max(0, target - <row, w>) of each of the rows; difference += its share of the row where that is positive.

    Returns the sum of the shares of these rows.
    """
    total = 0.0
    for k in range(rows.shape[0]):
        start, stop = indptr[rows[k]], indptr[rows[k] + 1]
        violation = target - row_dot(indices, values, start, stop, w)
        violations[k] = max(violation, 0.0)
        if violation > 0.0:
            share = shares[k]
            total += share
            for j in range(np.uint64(start), np.uint64(stop)):
                difference[np.uint32(indices[j])] += share * values[j]
    return total
