# mypy: ignore-errors
"""Compiled dynamic programme for the best tour of a few nodes (Held & Karp 1962)."""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def best_tours(scores, offsets, rows, edge_of, tours):
    """Write the best tour of each of these rows, from node 0 on, flat: tours[row] has the nodes in their order.

    edge_of: (n, n), the part of each pair of nodes. best[s, j]: of the paths from node 0 through the set s of the nodes
    1..n-1 that end at node j + 1. The direction is the one whose second node is smaller than the last.
    """
    n = edge_of.shape[0]
    m = n - 1
    best, before = np.empty((1 << m, m)), np.empty((1 << m, m), np.int64)
    for r in rows:
        own = scores[offsets[r] : offsets[r + 1]]
        for s in range(1, 1 << m):
            for j in range(m):
                if not (s >> j) & 1:
                    continue
                rest = s ^ (1 << j)
                if rest == 0:
                    best[s, j], before[s, j] = own[edge_of[0, j + 1]], -1
                    continue
                top, at = -np.inf, -1
                for i in range(m):
                    if (rest >> i) & 1:
                        x = best[rest, i] + own[edge_of[i + 1, j + 1]]
                        if x > top or at < 0:
                            top, at = x, i
                best[s, j], before[s, j] = top, at
        s = (1 << m) - 1
        top, j = -np.inf, -1
        for i in range(m):
            x = best[s, i] + own[edge_of[0, i + 1]]
            if x > top or j < 0:
                top, j = x, i
        tours[r, 0] = 0
        for place in range(m, 0, -1):
            tours[r, place] = j + 1
            i = before[s, j]
            s ^= 1 << j
            j = i
        if tours[r, 1] > tours[r, m]:
            tours[r, 1:] = tours[r, 1:][::-1].copy()
