# mypy: ignore-errors
"""Compiled sweeps over closed sets of labels in a forest: a block is the labels' marginals m, 0 <= m_child <= m_parent <= 1.

Labels are numbered in depth-first order: the subtree of v is v .. v + sizes[v] - 1, and parents (-1 at roots) come first. Nearest
points are isotonic regressions on the forest (Pardalos and Xue 1999).
"""

import numpy as np

from structpred.fused._label_set_body_kernels import BODIES, move_labels, slopes_of
from structpred.runtime.jit import family, njit

#: what a subtree gains is rounding where it is smaller, relative to its slopes: line searches leave sums that are zero
ROUNDING = 1e-12


@njit(cache=True, nogil=True)
def best_closed(parents, first, last, least, slopes, values, best):
    """best = the closed set of labels first..last-1 (whole subtrees) with the largest sum of slopes; up to `least` is no gain."""
    for v in range(first, last):
        values[v] = slopes[v]
    for v in range(last - 1, first, -1):
        if parents[v] >= first and values[v] > least:
            values[parents[v]] += values[v]
    for v in range(first, last):
        on = values[v] > least and (parents[v] < first or best[parents[v]] > 0.0)
        best[v] = 1.0 if on else 0.0


@njit(cache=True, nogil=True)
def line_search(first, last, cap, curvature, best, point, slopes):
    """The best step of labels first..last-1 from point towards cap * best; slopes follow."""
    gain, norm = 0.0, 0.0
    for v in range(first, last):
        change = cap * best[v] - point[v]
        gain += slopes[v] * change
        norm += change * change
    if not (gain > 0.0 and norm > 0.0):
        return
    step = min(1.0, gain / (curvature * norm)) if curvature > 0.0 else 1.0
    for v in range(first, last):
        change = step * (cap * best[v] - point[v])
        point[v] = cap * best[v] if step == 1.0 else point[v] + change
        slopes[v] -= curvature * change


@njit(cache=True, nogil=True)
def newton_step(v, last, sizes, cap, curvature, point, slopes):
    """The best value of label v alone, between its children and `cap`."""
    low, child = 0.0, v + 1
    while child < last:
        low = max(low, point[child])
        child += sizes[child]
    wanted = point[v] + slopes[v] / curvature
    new = min(max(wanted, low), max(cap, low))
    slopes[v] = 0.0 if new == wanted else slopes[v] - curvature * (new - point[v])  # no rounding decides about its sign
    point[v] = new


@njit(cache=True, nogil=True)
def visit_closed(parents, sizes, curvature, values, best, point, slopes):
    """A line search for each root towards `best`; then, from the leaves up, one for each subtree and a step of each label."""
    n, v = point.shape[0], 0
    while v < n:
        line_search(v, v + sizes[v], 1.0, curvature, best, point, slopes)
        v += sizes[v]
    if not curvature > 0.0:
        return
    for v in range(n - 1, -1, -1):
        last, cap = v + sizes[v], 1.0 if parents[v] < 0 else point[parents[v]]
        if sizes[v] > 1:
            size = 0.0
            for u in range(v, last):
                size += abs(slopes[u])
            best_closed(parents, v, last, ROUNDING * size, slopes, values, best)
            line_search(v, last, cap, curvature, best, point, slopes)
        newton_step(v, last, sizes, cap, curvature, point, slopes)


@njit(cache=True, nogil=True)
def sweep(rows, forest, aims, most, table, nodes, visits, gaps, losses):
    """A visit of each of these instances: their scores once, the gap, and if `most` the steps. Returns how many blocks moved."""
    indptr, indices, values, squares = rows
    parents, sizes = forest
    truth, costs, upper = aims
    n = parents.shape[0]
    slopes, sums, best, old, amounts = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    picks, changed = np.empty(n, np.int64), 0
    for i in visits:
        if upper[i] <= 0.0 and most > 0:
            gaps[i], losses[i] = 0.0, 0.0
            continue
        point = nodes[i]
        slopes_of(indptr, indices, values, table, truth, costs, i, slopes)
        best_closed(parents, 0, n, 0.0, slopes, sums, best)
        gap, loss = 0.0, 0.0
        for v in range(n):
            old[v] = point[v]
            gap += slopes[v] * (best[v] - point[v])
            loss += slopes[v] * (best[v] - truth[i, v])
        gaps[i], losses[i] = max(gap, 0.0), max(loss, 0.0)
        if most > 0:
            visit_closed(parents, sizes, 2.0 * upper[i] * squares[i], sums, best, point, slopes)
        changed += move_labels(indptr, indices, values, i, upper[i], point, old, picks, amounts, table) > 0
    return changed


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
