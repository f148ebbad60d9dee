# mypy: ignore-errors
"""Compiled dual coordinate ascent of a support vector machine whose points may carry both labels, over rows of features."""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def ascend_twins(rows, squares, upper, lower, beta, w, order, sweeps):
    """Raise sum_i min(2 upper_i - beta_i, 2 lower_i + beta_i) - 1/2 |w|^2, in place, w = sum_i beta_i x_i, by exact steps.

    -lower <= beta <= upper. The gain of point i has the slope 1 up to upper_i - lower_i, -1 from there on. One sweep over all
    points in this order, then `sweeps` over those that moved.
    """
    n_active = len(order)
    active = order.copy()
    for _ in range(sweeps + 1):
        left = 0
        for a in range(n_active):
            i = active[a]
            if squares[i] == 0.0:
                continue
            row, kink = rows[i], upper[i] - lower[i]
            h = np.dot(row, w)
            first, last = beta[i] + (1.0 - h) / squares[i], beta[i] - (1.0 + h) / squares[i]
            new = first if first < kink else (last if last > kink else kink)
            new = min(max(new, -lower[i]), upper[i])
            change = np.float32(new - beta[i])
            if change != 0.0:
                beta[i] = new
                for f in range(len(w)):
                    w[f] += change * row[f]
                active[left] = i
                left += 1
        n_active = left
