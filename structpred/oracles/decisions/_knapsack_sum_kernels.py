# mypy: ignore-errors
"""Compiled sums over the sets of items of a knapsack, which are the paths of a diagram."""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def set_sums(scores, offsets, rows, starts, skip, take, log_zs, mu):
    """log Z and the probability of each item, of these rows.

    Backward: log of the sum over all ways from a node to the end. Forward: a node's probability goes on by their shares.
    """
    n, size = starts.shape[0] - 2, starts[-1]
    ways, share = np.empty(size), np.empty(size)
    for r in rows:
        first = offsets[r]
        ways[size - 1] = 0.0
        for j in range(n - 1, -1, -1):
            x = scores[first + j]
            for v in range(starts[j], starts[j + 1]):
                without = ways[skip[v]]
                ways[v] = without
                if take[v] >= 0:
                    with_it = x + ways[take[v]]
                    high, low = max(with_it, without), min(with_it, without)
                    ways[v] = high + np.log1p(np.exp(low - high))
        log_zs[r] = ways[0]
        share[:] = 0.0
        share[0] = 1.0
        for j in range(n):
            x, total = scores[first + j], 0.0
            for v in range(starts[j], starts[j + 1]):
                p = 0.0
                if take[v] >= 0:
                    p = share[v] * np.exp(x + ways[take[v]] - ways[v])
                    share[take[v]] += p
                    total += p
                share[skip[v]] += max(share[v] - p, 0.0)
            mu[first + j] = total
