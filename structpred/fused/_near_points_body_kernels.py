# mypy: ignore-errors
"""The nearest points of all blocks of label sets, and how these follow the weights: bodies for `family`, over two calls.

A block's nearest point is the projection of centre + tau slopes on its polytope; marks begin with how much of it is free, and then
say along what. Where tau is 0 it stays at the centre.
"""

import numpy as np

from structpred.fused._closed_set_kernels import move_labels, slopes_of

#: nearest(sets, i, slopes, pairs, tau, centre, point, marks): the point of instance i, and its marks.
#: along(sets, i, slopes, pairs, weight, marks, labels, extra): labels = how labels move; extra += weight times how edges do.
nearest = along = None


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
