# mypy: ignore-errors
"""Compiled dual block ascent of a multiclass support vector machine whose true class may be spread over several.

Both maximise sum_i upper_i <mu_i, wrong_i> - 1/2 |w|^2 over distributions mu_i, in place, by exact steps of one mu_i, where
w_k = sum_i upper_i (p_ik - mu_ik) x_i: the scores are kept up to date, and p enters nowhere else. They make one sweep over all
rows in the order given, then at most `sweeps` over those that were not optimal, until these took less than `least` of the gap.
"""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def project(point, out):
    """out = the projection of the point onto the simplex (Michelot 1986: entries below the threshold fall out for good)."""
    n, tau, count = len(point), -np.inf, -1
    while True:
        total, left = 0.0, 0
        for j in range(n):
            if point[j] > tau:
                total += point[j]
                left += 1
        if left == count:
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
def ascend_rows(rows, squares, upper, wrong, mu, table, order, least, sweeps):
    """For feature rows (n, d). table (d, K): the weights. A step takes O(d K)."""
    d, K = table.shape
    ahead, point, change = np.empty(K), np.empty(K), np.empty(K)
    active, n_active = order.copy(), len(order)
    for sweep in range(sweeps + 1):
        taken, left = 0.0, 0
        for a in range(n_active):
            i = active[a]
            if upper[i] == 0.0:
                continue
            for k in range(K):
                ahead[k] = wrong[i, k]
            for f in range(d):
                for k in range(K):
                    ahead[k] += rows[i, f] * table[f, k]
            own = upper[i] * step(ahead, upper[i] * squares[i], mu[i], point, change)
            if own > 0.0:
                taken += own
                for k in range(K):
                    change[k] *= upper[i]
                for f in range(d):
                    for k in range(K):
                        table[f, k] += rows[i, f] * change[k]
                if sweep == 0:
                    active[left] = i
                    left += 1
        if sweep == 0:
            n_active = left
        elif taken < least:
            return


@njit(cache=True, nogil=True)
def ascend_gram(gram, squares, upper, wrong, mu, scores, order, least, sweeps):
    """For a kernel matrix (n, n). scores (K, n): those of all rows. A step takes O(K), and O(n) for each state that changed."""
    K, n = scores.shape
    ahead, point, change = np.empty(K), np.empty(K), np.empty(K)
    active, n_active = order.copy(), len(order)
    for sweep in range(sweeps + 1):
        taken, left = 0.0, 0
        for a in range(n_active):
            i = active[a]
            if upper[i] == 0.0:
                continue
            for k in range(K):
                ahead[k] = wrong[i, k] + scores[k, i]
            own = upper[i] * step(ahead, upper[i] * squares[i], mu[i], point, change)
            if own > 0.0:
                taken += own
                similar = gram[i]
                for k in range(K):
                    if change[k] != 0.0:
                        amount, mine = upper[i] * change[k], scores[k]
                        for j in range(n):
                            mine[j] += amount * similar[j]
                if sweep == 0:
                    active[left] = i
                    left += 1
        if sweep == 0:
            n_active = left
        elif taken < least:
            return
