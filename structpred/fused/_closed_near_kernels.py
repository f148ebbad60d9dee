# mypy: ignore-errors
"""Nearest points of closed sets of labels: isotonic regression on a forest (Pardalos and Xue 1999), and its derivative."""

import numpy as np

from structpred.fused._near_points_body_kernels import BODIES
from structpred.runtime.jit import family, njit


@njit(cache=True, nogil=True)
def nearest(sets, i, slopes, pairs, tau, centre, point, marks):
    """Groups of labels with their mean, each below that of the group above it, from the leaves up; then cut at 0 and 1."""
    parents, sizes = sets
    n, owner = parents.shape[0], marks[1:]
    sums, counts = np.empty(n), np.ones(n)
    for v in range(n - 1, -1, -1):
        owner[v], sums[v], worst = v, centre[v] + tau * slopes[v], v
        while worst >= 0 and sizes[v] > 1:
            worst, high = -1, sums[v] / counts[v]
            for u in range(v + 1, v + sizes[v]):
                if owner[u] == u and owner[parents[u]] == v and sums[u] / counts[u] > high:
                    worst, high = u, sums[u] / counts[u]
            if worst >= 0:
                sums[v], counts[v] = sums[v] + sums[worst], counts[v] + counts[worst]
                for u in range(worst, worst + sizes[worst]):
                    owner[u] = v if owner[u] == worst else owner[u]
    for v in range(n):
        point[v] = min(max(sums[owner[v]] / counts[owner[v]], 0.0), 1.0)
    for v in range(n):
        if 0.0 < point[v] < 1.0:
            marks[0] += 1
        else:
            owner[v] = -1


@njit(cache=True, nogil=True)
def along(sets, i, slopes, pairs, weight, marks, labels, extra):
    """Each group moves by the mean of its slopes."""
    n = labels.shape[0]
    counts = np.zeros(n)
    labels[:] = 0.0
    for v in range(n):
        if marks[1 + v] >= 0:
            labels[marks[1 + v]] += slopes[v]
            counts[marks[1 + v]] += 1.0
    for v in range(n - 1, -1, -1):  # a group's first label comes last
        if marks[1 + v] >= 0:
            labels[v] = labels[marks[1 + v]] / counts[marks[1 + v]]


slopes_at, nearest_points, follow = family(__name__, BODIES, nearest, along)
