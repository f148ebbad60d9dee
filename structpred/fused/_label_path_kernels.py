# mypy: ignore-errors
"""Compiled sweeps over paths from a root to a leaf: a block is a point of the simplex over leaves; parents come first."""

import numpy as np

from structpred.fused._closed_set_kernels import move_labels, slopes_of
from structpred.runtime.jit import njit

#: pairwise steps of one visit
STEPS = 10
#: what is not above it, relative to the scores, is rounding
TINY = 1e-13


@njit(cache=True, nogil=True)
def path_sums(parents, slopes, sums):
    """sums[v] = the slopes of v and of all above it."""
    for v in range(parents.shape[0]):
        sums[v] = slopes[v] if parents[v] < 0 else slopes[v] + sums[parents[v]]


@njit(cache=True, nogil=True)
def extremes(leaves, masses, sums):
    """(the place of the best leaf, that of the worst one with mass)."""
    top, low = 0, -1
    for k in range(leaves.shape[0]):
        if sums[leaves[k]] > sums[leaves[top]]:
            top = k
        if masses[k] > 0.0 and (low < 0 or sums[leaves[k]] < sums[leaves[low]]):
            low = k
    return top, low


@njit(cache=True, nogil=True)
def path_difference(parents, depths, u, v):
    """(how many labels are on one of the two paths alone, the depth of their lowest common ancestor, -1 without one)."""
    a, b = u, v
    while a != b:
        if depths[a] >= depths[b]:
            a = parents[a]
        else:
            b = parents[b]
        if a < 0 or b < 0:
            return depths[u] + depths[v] + 2, -1
    return depths[u] + depths[v] - 2 * depths[a], depths[a]


@njit(cache=True, nogil=True)
def shift(parents, depths, leaf, above, amount, curvature, change, slopes):
    """The labels of a path below depth `above` move by `amount`; slopes follow."""
    v = leaf
    while v >= 0 and depths[v] > above:
        change[v] += amount
        slopes[v] -= curvature * amount
        v = parents[v]


@njit(cache=True, nogil=True)
def sweep(rows, forest, aims, table, nodes, visits, gaps, losses):
    """Up to ten pairwise steps of each instance, from the worst leaf with mass to the best. Returns how many blocks moved."""
    indptr, indices, values, squares = rows
    parents, depths, leaves = forest
    truth, costs, upper = aims
    n = parents.shape[0]
    slopes, sums, change, zeros, amounts = np.empty(n), np.empty(n), np.empty(n), np.zeros(n), np.empty(n)
    picks, changed = np.empty(n, np.int64), 0
    for i in visits:
        if upper[i] <= 0.0:
            gaps[i], losses[i] = 0.0, 0.0
            continue
        masses, curvature = nodes[i], 2.0 * upper[i] * squares[i]
        slopes_of(indptr, indices, values, table, truth, costs, i, slopes)
        path_sums(parents, slopes, sums)
        own = 0.0
        for v in range(n):
            own += slopes[v] * truth[i, v]
        top, low = extremes(leaves, masses, sums)
        mean, high = 0.0, sums[leaves[top]]
        for k in range(leaves.shape[0]):
            mean += masses[k] * (high - sums[leaves[k]])
        gaps[i], losses[i] = max(mean, 0.0), max(high - own, 0.0)
        change[:] = 0.0
        for _ in range(STEPS):
            gain = sums[leaves[top]] - sums[leaves[low]]
            if not gain > TINY * (abs(sums[leaves[top]]) + abs(sums[leaves[low]])):
                break
            differ, above = path_difference(parents, depths, leaves[top], leaves[low])
            step = masses[low]
            if curvature > 0.0:
                step = min(step, gain / (curvature * differ))
            masses[top] += step
            masses[low] = 0.0 if step >= masses[low] else masses[low] - step
            shift(parents, depths, leaves[top], above, step, curvature, change, slopes)
            shift(parents, depths, leaves[low], above, -step, curvature, change, slopes)
            path_sums(parents, slopes, sums)
            top, low = extremes(leaves, masses, sums)
        changed += move_labels(indptr, indices, values, i, upper[i], change, zeros, picks, amounts, table) > 0
    return changed


@njit(cache=True, nogil=True)
def values_of(rows, forest, aims, table, out):
    """out[i] = the largest loss and score of a path, less the score of the truth."""
    indptr, indices, values, _ = rows
    parents, _, leaves = forest
    truth, costs, _ = aims
    n = parents.shape[0]
    slopes, sums = np.empty(n), np.empty(n)
    for i in range(out.shape[0]):
        slopes_of(indptr, indices, values, table, truth, costs, i, slopes)
        path_sums(parents, slopes, sums)
        best, own = sums[leaves[0]], 0.0
        for v in range(n):
            own += slopes[v] * truth[i, v]
        for k in range(leaves.shape[0]):
            best = max(best, sums[leaves[k]])
        out[i] = max(best - own, 0.0)
