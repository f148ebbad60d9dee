# mypy: ignore-errors
"""Compiled sweeps over paths down from a root: a block is a point of the simplex over their ends, or of one in each tree.

Parents come first. The label above all, n, is the end of the empty path: its depth is -1, and nothing is gained by it.
"""

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
    sums[slopes.shape[0]] = 0.0
    for v in range(slopes.shape[0]):
        sums[v] = slopes[v] if parents[v] < 0 else slopes[v] + sums[parents[v]]


@njit(cache=True, nogil=True)
def extremes(leaves, masses, sums, first, last):
    """(the place of the best end, that of the worst one with mass) from first to last - 1."""
    top, low = first, -1
    for k in range(first, last):
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
    """Up to ten pairwise steps in each simplex of an example, from the worst end with mass to the best. Returns how many move."""
    indptr, indices, values, squares = rows
    parents, depths, leaves, runs = forest
    truth, costs, upper = aims
    n = truth.shape[1]
    slopes, sums, change, zeros, amounts = np.empty(n), np.empty(n + 1), np.empty(n), np.zeros(n), np.empty(n)
    picks, changed = np.empty(n, np.int64), 0
    for i in visits:
        if upper[i] <= 0.0:
            gaps[i], losses[i] = 0.0, 0.0
            continue
        masses, curvature = nodes[i], 2.0 * upper[i] * squares[i]
        slopes_of(indptr, indices, values, table, truth, costs, i, slopes)
        path_sums(parents, slopes, sums)
        change[:] = 0.0
        gap, loss = 0.0, -(slopes * truth[i]).sum()
        for first, last in runs:  # of trees, which do not touch each other
            top, low = extremes(leaves, masses, sums, first, last)
            high = sums[leaves[top]]
            loss += high
            gap += (masses[first:last] * (high - sums[leaves[first:last]])).sum()
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
                top, low = extremes(leaves, masses, sums, first, last)
        gaps[i], losses[i] = max(gap, 0.0), max(loss, 0.0)
        changed += move_labels(indptr, indices, values, i, upper[i], change, zeros, picks, amounts, table) > 0
    return changed


@njit(cache=True, nogil=True)
def values_of(rows, forest, aims, table, out):
    """out[i] = the largest loss and score of an output, less the score of the truth."""
    indptr, indices, values, _ = rows
    parents, _, leaves, runs = forest
    truth, costs, _ = aims
    n = truth.shape[1]
    slopes, sums = np.empty(n), np.empty(n + 1)
    for i in range(out.shape[0]):
        slopes_of(indptr, indices, values, table, truth, costs, i, slopes)
        path_sums(parents, slopes, sums)
        loss = -(slopes * truth[i]).sum()
        for first, last in runs:
            loss += sums[leaves[first:last]].max()
        out[i] = max(loss, 0.0)
