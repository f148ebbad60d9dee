# mypy: ignore-errors
"""Compiled sweeps over outputs that are listed, (labels, outputs) of 0 and 1: a block is a point of the simplex over them.

All instances share one list, or each has its own, which grows by the outputs that a search finds. Edges, where there are any,
have four numbers each (off-off, off-on, ...).
"""

import numpy as np

from structpred.fused._label_set_body_kernels import BODIES, move_labels, slopes_of
from structpred.oracles.fields._mrf_enumeration_kernels import best_output
from structpred.oracles.fields._tree_mrf_kernels import best_states
from structpred.runtime.jit import family, njit

#: pairwise steps of one visit
STEPS = 10
#: what is not above it, relative to the scores, is rounding
TINY = 1e-13


@njit(cache=True, nogil=True)
def scores_of(ends, slopes, pairs, outputs, scores):
    """scores[k] = the slopes of the labels of output k, and the scores of its edges."""
    n = scores.shape[0]
    scores[:] = 0.0
    for v in range(slopes.shape[0]):
        for k in range(np.uint64(n)):
            scores[k] += slopes[v] * outputs[v, k]
    for e in range(ends.shape[0]):
        u, v = ends[e]
        for k in range(np.uint64(n)):
            scores[k] += pairs[e, 2 * outputs[u, k] + outputs[v, k]]


@njit(cache=True, nogil=True)
def score_of(ends, slopes, pairs, outputs, k):
    """That of one of them, the same to the last bit."""
    total = 0.0
    for v in range(slopes.shape[0]):
        total += slopes[v] * outputs[v, k]
    for e in range(ends.shape[0]):
        total += pairs[e, 2 * outputs[ends[e, 0], k] + outputs[ends[e, 1], k]]
    return total


@njit(cache=True, nogil=True)
def find(search, slopes, pairs, room, found):
    """found = the best output, by the dynamic program where there is a plan of it, else by looking at all."""
    plan, listed, fixed = search
    scores, sums, back, best = room
    n = slopes.shape[0]
    for v in range(n):
        scores[2 * v], scores[2 * v + 1] = fixed[2 * v], slopes[v] + fixed[2 * v + 1]
    for k in range(2 * n, fixed.shape[0]):
        scores[k] = pairs[(k - 2 * n) // 4, (k - 2 * n) % 4] + fixed[k]
    if plan.shape[0] > 0:
        best_states(scores, plan, 2, sums, back, best)
    else:
        best_output(scores, listed, best)
    found[:, 0] = best


@njit(cache=True, nogil=True)
def keep(found, score, outputs, masses, scores):
    """An output that is not listed takes the place of the worst one without mass, if there is such a place."""
    slot = -1
    for k in range(masses.shape[0]):
        if scores[k] == score and (outputs[:, k] == found[:, 0]).all():
            return
        if masses[k] == 0.0 and (slot < 0 or scores[k] < scores[slot]):
            slot = k
    if slot >= 0:
        outputs[:, slot], scores[slot] = found[:, 0], score


@njit(cache=True, nogil=True)
def exchange(ends, outputs, masses, scores, first, last, square, upper, change, pairs):
    """A pairwise step, from the worst output with mass to the best one of a run; whether there was one to make."""
    top, low = first, -1
    for k in range(first, last):
        top = k if scores[k] > scores[top] else top
        low = k if masses[k] > 0.0 and (low < 0 or scores[k] < scores[low]) else low
    gain, norm = scores[top] - scores[low], 0.0
    if not gain > TINY * (abs(scores[top]) + abs(scores[low])):
        return False
    for v in range(change.shape[0]):
        norm += 2.0 * square * (outputs[v, top] != outputs[v, low])
    for e in range(ends.shape[0]):
        u, v = ends[e]
        norm += 2.0 * (outputs[u, top] != outputs[u, low] or outputs[v, top] != outputs[v, low])
    step = masses[low] if gain >= upper * norm * masses[low] else gain / (upper * norm)
    masses[top] += step
    masses[low] = 0.0 if step >= masses[low] else masses[low] - step
    for v in range(change.shape[0]):
        amount = step * (outputs[v, top] - outputs[v, low])
        if amount != 0.0:
            change[v] += amount
            for k in range(first, last):
                scores[k] -= 2.0 * upper * square * amount * outputs[v, k]
    for e in range(ends.shape[0]):
        u, v = ends[e]
        on, off = 2 * outputs[u, top] + outputs[v, top], 2 * outputs[u, low] + outputs[v, low]
        if on != off:
            pairs[e, on] -= upper * step
            pairs[e, off] += upper * step
            for k in range(first, last):
                state = 2 * outputs[u, k] + outputs[v, k]
                scores[k] -= upper * step * ((state == on) - (state == off))
    return True


@njit(cache=True, nogil=True)
def sweep(rows, ends, runs, search, aims, table, pairs, nodes, listed, visits, gaps, losses):
    """Up to ten pairwise steps in each simplex of these instances. Returns how many blocks moved."""
    truth, costs, upper = aims
    n, size = truth.shape[1], nodes.shape[1]
    slopes, change, zeros, amounts, picks = np.empty(n), np.empty(n), np.zeros(n), np.empty(n), np.empty(n, np.int64)
    scores, found, changed = np.empty(size), np.empty((n, 1), np.int8), 0
    room = np.empty(search[2].shape[0]), np.empty((n, 2)), np.empty((n, 2), np.int32), np.zeros(n, np.int64)
    for i in visits:
        gaps[i], losses[i] = 0.0, 0.0
        if upper[i] <= 0.0:
            continue
        outputs, masses = listed[i % listed.shape[0]], nodes[i]
        slopes_of(rows[0], rows[1], rows[2], table, truth, costs, i, slopes)
        scores_of(ends, slopes, pairs, outputs, scores)
        losses[i], change[:], moved = -score_of(ends, slopes, pairs, truth[i].copy().reshape(n, 1), 0), 0.0, False
        if search[2].shape[0] > 0:
            find(search, slopes, pairs, room, found)
            high = score_of(ends, slopes, pairs, found, 0)
            keep(found, high, outputs, masses, scores)
        for first, last in runs:  # of trees, which do not touch each other
            high, steps = high if search[2].shape[0] > 0 else scores[first:last].max(), 0
            losses[i] += high
            for k in range(first, last):
                gaps[i] += masses[k] * max(high - scores[k], 0.0)
            while steps < STEPS and exchange(ends, outputs, masses, scores, first, last, rows[3][i], upper[i], change, pairs):
                steps, moved = steps + 1, True
        losses[i] = max(losses[i], 0.0)
        move_labels(rows[0], rows[1], rows[2], i, upper[i], change, zeros, picks, amounts, table)
        changed += moved
    return changed


@njit(cache=True, nogil=True)
def values_of(rows, ends, runs, search, aims, table, pairs, listed, out):
    """out[i] = the largest loss and score of an output, less the score of the truth."""
    truth, costs, _ = aims
    n, size = truth.shape[1], listed.shape[2]
    slopes, scores, found = np.empty(n), np.empty(size), np.empty((n, 1), np.int8)
    room = np.empty(search[2].shape[0]), np.empty((n, 2)), np.empty((n, 2), np.int32), np.zeros(n, np.int64)
    for i in range(out.shape[0]):
        slopes_of(rows[0], rows[1], rows[2], table, truth, costs, i, slopes)
        if search[2].shape[0] > 0:
            find(search, slopes, pairs, room, found)
            high = score_of(ends, slopes, pairs, found, 0)
        else:
            scores_of(ends, slopes, pairs, listed[0], scores)
            high = 0.0
            for first, last in runs:
                high += scores[first:last].max()
        out[i] = max(high - score_of(ends, slopes, pairs, truth[i].copy().reshape(n, 1), 0), 0.0)


@njit(cache=True, nogil=True)
def means_of(ends, nodes, listed, upper, labels, edges):
    """labels += the mean of the labels of each instance; edges += the sum of upper times that of their edges."""
    for i in range(nodes.shape[0]):
        outputs = listed[i % listed.shape[0]]
        for k in range(nodes.shape[1]):
            if nodes[i, k] > 0.0:
                for v in range(labels.shape[1]):
                    labels[i, v] += nodes[i, k] * outputs[v, k]
                for e in range(ends.shape[0]):
                    edges[e, 2 * outputs[ends[e, 0], k] + outputs[ends[e, 1], k]] += upper[i] * nodes[i, k]


@njit(cache=True, nogil=True)
def nearest(sets, i, slopes, pairs, tau, centre, point, marks):
    """The projection of centre + tau scores on the simplex of each run; what is positive is free."""
    ends, listed, runs = sets
    scores_of(ends, slopes, pairs, listed[i % listed.shape[0]], point)
    for first, last in runs:
        cut, top = -1.0, -np.inf
        for k in range(first, last):
            point[k] = centre[k] + tau * point[k]
            top = max(top, point[k])
        for k in range(first, last):  # so that the sum is 1 but for rounding, however far tau reaches
            point[k] -= top
        count, left = last - first + 1, last - first + 2
        while count < left:  # Michelot (1986): the cut rises, and points fall below it for good
            total, left, count = 0.0, count, 0
            for k in range(first, last):
                if point[k] > cut:
                    total += point[k] - cut
                    count += 1
            cut += (total - 1.0) / count
        for k in range(first, last):
            point[k] = max(point[k] - cut, 0.0)
            marks[1 + k] = point[k] > 0.0
        marks[0] += marks[1 + first : 1 + last].sum() - 1


@njit(cache=True, nogil=True)
def along(sets, i, slopes, pairs, weight, marks, labels, extra):
    """Outputs move by their scores less the mean of these in their run."""
    ends, listed, runs = sets
    outputs, scores = listed[i % listed.shape[0]], np.empty(marks.shape[0] - 1)
    labels[:] = 0.0
    for first, last in runs:
        free, mean = marks[1 + first : 1 + last].sum(), 0.0
        for k in range(first, last):
            if marks[1 + k]:
                scores[k] = score_of(ends, slopes, pairs, outputs, k)
                mean += scores[k] / free
        for k in range(first, last):
            if marks[1 + k]:
                for v in range(labels.shape[0]):
                    labels[v] += (scores[k] - mean) * outputs[v, k]
                for e in range(ends.shape[0]):
                    extra[e, 2 * outputs[ends[e, 0], k] + outputs[ends[e, 1], k]] += weight * (scores[k] - mean)


slopes_at, nearest_points, follow = family(__name__, BODIES, nearest, along)
