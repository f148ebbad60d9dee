# mypy: ignore-errors
"""Nearest points of the simplex over outputs that are listed, one list for all instances or one for each."""

import numpy as np

from structpred.fused._near_points_body_kernels import BODIES
from structpred.runtime.jit import family, njit


@njit(cache=True, nogil=True)
def output_score(ends, slopes, pairs, output):
    """The sum of the slopes of the labels that are on, and of the edges' scores."""
    total = 0.0
    for v in range(slopes.shape[0]):
        if output[v]:
            total += slopes[v]
    for e in range(ends.shape[0]):
        total += pairs[e, 2 * output[ends[e, 0]] + output[ends[e, 1]]]
    return total


@njit(cache=True, nogil=True)
def nearest(sets, i, slopes, pairs, tau, centre, point, marks):
    """The projection of centre + tau scores on the simplex; what is positive is free."""
    ends, listed = sets
    outputs, n, cut, left = listed[i % listed.shape[0]], point.shape[0], -np.inf, 0
    for k in range(n):
        point[k] = centre[k] + tau * output_score(ends, slopes, pairs, outputs[k])
        cut = max(cut, point[k] - 1.0)
    while left != marks[0] or left == 0:  # Michelot (1986): the cut rises, and points fall below it for good
        total, left, marks[0] = 0.0, marks[0], 0
        for k in range(n):
            if point[k] > cut:
                total += point[k] - cut
                marks[0] += 1
        cut += (total - 1.0) / marks[0]
    for k in range(n):
        point[k] = max(point[k] - cut, 0.0)
        marks[1 + k] = point[k] > 0.0
    marks[0] = marks[1:].sum() - 1


@njit(cache=True, nogil=True)
def along(sets, i, slopes, pairs, weight, marks, labels, extra):
    """Outputs move by their scores less the mean of these."""
    ends, listed = sets
    outputs, n = listed[i % listed.shape[0]], marks.shape[0] - 1
    scores, mean = np.empty(n), 0.0
    for k in range(n):
        if marks[1 + k]:
            scores[k] = output_score(ends, slopes, pairs, outputs[k])
            mean += scores[k] / (marks[0] + 1)
    labels[:] = 0.0
    for k in range(n):
        if marks[1 + k]:
            for v in range(labels.shape[0]):
                labels[v] += (scores[k] - mean) * outputs[k, v]
            for e in range(ends.shape[0]):
                extra[e, 2 * outputs[k, ends[e, 0]] + outputs[k, ends[e, 1]]] += weight * (scores[k] - mean)


slopes_at, nearest_points, follow = family(__name__, BODIES, nearest, along)
