# mypy: ignore-errors
"""What sweeps over label sets share: scores of one row of features, moves along it, and, as bodies for `family` over two calls,
the nearest points of all blocks and how these follow the weights. Tables are (features, labels).

A block's nearest point is the projection of centre + tau slopes on its polytope; marks begin with how much of it is free, and
then say along what. Where tau is 0 it stays at the centre.
"""

import numpy as np

from structpred.runtime.jit import njit

#: nearest(sets, i, slopes, pairs, tau, centre, point, marks): the point of instance i, and its marks.
#: along(sets, i, slopes, pairs, weight, marks, labels, extra): labels = how labels move; extra += weight times how edges do.
nearest = along = None


@njit(cache=True, nogil=True)
def slopes_of(indptr, indices, values, table, truth, costs, i, out):
    """out[l] = what it gains to switch label l on: its scores on less off, 2 x V, and what it costs."""
    n_labels = out.shape[0]
    for j in range(np.uint64(n_labels)):
        out[j] = -costs[i, j] if truth[i, j] else costs[i, j]
    for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
        f, x = np.uint64(indices[k]), 2.0 * values[k]
        for j in range(np.uint64(n_labels)):
            out[j] += x * table[f, j]


@njit(cache=True, nogil=True)
def move_labels(indptr, indices, values, i, upper, point, old, picks, amounts, table):
    """table -= upper x (point - old)' for the labels that moved; returns how many did."""
    found = 0
    for j in range(point.shape[0]):
        if point[j] != old[j]:
            picks[found], amounts[found] = j, upper * (point[j] - old[j])
            found += 1
    if 8 * found > point.shape[0]:  # whole runs of labels are faster
        for j in range(point.shape[0]):
            amounts[j] = upper * (point[j] - old[j])
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            f, x = np.uint64(indices[k]), values[k]
            for j in range(np.uint64(point.shape[0])):
                table[f, j] -= x * amounts[j]
        return found
    for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
        f, x = np.uint64(indices[k]), values[k]
        for j in range(np.uint64(found)):
            table[f, np.uint64(picks[j])] -= x * amounts[j]
    return found


def slopes_at(rows, aims, table, out):
    """out[i] = the slopes of the labels of instance i."""
    for i in range(out.shape[0]):
        slopes_of(rows[0], rows[1], rows[2], table, aims[0], aims[1], i, out[i])


def nearest_points(sets, taus, slopes, pairs, centres, points, marks):
    """Of all blocks."""
    for i in range(taus.shape[0]):
        marks[i, 0], points[i] = 0, centres[i]
        if taus[i] > 0.0:
            nearest(sets, i, slopes[i], pairs, taus[i], centres[i], points[i], marks[i])


def follow(rows, aims, sets, weights, marks, table, pairs, out, extra):
    """out, extra += how the weights would change with the points, where these follow a change (table, pairs)."""
    n = table.shape[1]
    slopes, labels, zeros, picks, amounts = np.empty(n), np.empty(n), np.zeros(n), np.empty(n, np.int64), np.empty(n)
    for i in range(weights.shape[0]):
        if marks[i, 0] > 0:
            slopes_of(rows[0], rows[1], rows[2], table, aims[0], aims[1], i, slopes)
            along(sets, i, slopes, pairs, weights[i], marks[i], labels, extra)
            move_labels(rows[0], rows[1], rows[2], i, -weights[i], labels, zeros, picks, amounts, out)


BODIES = (slopes_at, nearest_points, follow)
