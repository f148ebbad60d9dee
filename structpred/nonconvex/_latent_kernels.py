# mypy: ignore-errors
"""Compiled dual block ascent of a multiclass support vector machine whose true class may be spread over several.

`ascend` maximises sum_i upper_i <mu_i, wrong_i> - 1/2 |w|^2 over distributions mu_i, in place, by exact steps of one mu_i, where
w_k = sum_i upper_i (p_ik - mu_ik) x_i: the scores are kept up to date, and p enters nowhere else. It makes one sweep over all
rows in the order given, then at most `sweeps` over those that were not optimal, until these took less than `least` of the gap.
"""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def project(point, out):
    """out = the projection of the point onto the simplex (Michelot 1986: entries below the threshold fall out for good)."""
    n, tau, count = len(point), -np.inf, len(point) + 1
    while True:
        total, left = 0.0, 0
        for j in range(n):
            if point[j] > tau:
                total += point[j]
                left += 1
        if left >= count:  # more: an entry at the threshold comes and goes by rounding
            break
        tau, count = (total - 1.0) / left, left
    for j in range(n):
        out[j] = max(point[j] - tau, 0.0)


@njit(cache=True, nogil=True)
def step(ahead, curvature, mu, point, change):
    """Set mu_i to the best for all else, ahead = wrong_i + scores_i; change = the old mu_i minus the new, upper_i taken out.

    Returns what it took of the gap, max_k ahead_k - <mu_i, ahead>; 0 where nothing changed.
    """
    top, mean = ahead[0], 0.0
    for k in range(len(ahead)):
        top = max(top, ahead[k])
        mean += mu[k] * ahead[k]
    if top <= mean or curvature == 0.0:
        return 0.0
    for k in range(len(ahead)):
        point[k] = mu[k] + (ahead[k] - top) / curvature
    project(point, change)
    for k in range(len(ahead)):
        old = mu[k]
        mu[k] = change[k]
        change[k] = old - mu[k]
    return top - mean


@njit(cache=True, nogil=True)
def ascend(rows, squares, upper, wrong, mu, held, order, least, sweeps, by_weights):
    """by_weights: rows are features (n, d) and held the weights (d, K), and a step takes O(d K). Else rows are a kernel matrix
    (n, n) and held the scores (K, n) of all rows: a step takes O(K), and O(n) for each state that changed.
    """
    K = mu.shape[1]
    ahead, point, change = np.empty(K), np.empty(K), np.empty(K)
    active, n_active = order.copy(), len(order)
    for sweep in range(sweeps + 1):
        taken, left = 0.0, 0
        for a in range(n_active):
            i = active[a]
            if upper[i] == 0.0:
                continue
            row = rows[i]
            for k in range(K):
                ahead[k] = wrong[i, k] if by_weights else wrong[i, k] + held[k, i]
            if by_weights:
                for f in range(len(row)):
                    for k in range(K):
                        ahead[k] += row[f] * held[f, k]
            own = upper[i] * step(ahead, upper[i] * squares[i], mu[i], point, change)
            if own > 0.0:
                taken += own
                for k in range(K):
                    change[k] *= upper[i]
                if by_weights:
                    for f in range(len(row)):
                        for k in range(K):
                            held[f, k] += row[f] * change[k]
                else:
                    for k in range(K):
                        if change[k] != 0.0:
                            mine = held[k]
                            for j in range(len(row)):
                                mine[j] += change[k] * row[j]
                if sweep == 0:
                    active[left] = i
                    left += 1
        if sweep == 0:
            n_active = left
        elif taken < least:
            return
