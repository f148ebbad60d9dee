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

#: outputs in the list of an instance of its own; the same byte for each of eight
SLOTS, ONES = 16, np.uint64(0x0101010101010101)
#: two visits in three look at the list alone where it promises more than this share of the gap that the last search found
LISTED, OFTEN = 0.5, 3
#: what is not above it, relative to the scores, is rounding
TINY = 1e-13


@njit(cache=True, nogil=True)
def scores_of(sets, i, slopes, pairs, scores):
    """scores[k] = the slopes of the labels of output k of instance i, and the scores of its edges."""
    ends, listed, _, ladders, _ = sets
    outputs, n = listed[i % listed.shape[0]], scores.shape[0]
    scores[:] = 0.0
    for row in ladders:  # few of many labels are on
        for k in range(np.uint64(n)):
            scores[k] += slopes[row[k]] if row[k] < slopes.shape[0] else 0.0
    for v in range(slopes.shape[0] if ladders.shape[0] == 0 else 0):
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
def products(sets, outputs, k, square, room, out):
    """out[j] = the features of output j times those of output k, but for what is the same for all."""
    (ends, _, _, ladders, spans), (flips, sums, known, _) = sets, room
    known[k], out[:] = True, 0.0
    for row in ladders:
        for j in range(spans[row[k], 0], spans[row[k], 1]):
            out[j] += 2.0 * square
    if ladders.shape[0] > 0:
        return
    words, counts = outputs.view(np.uint64), sums.view(np.uint8)
    for part in range(2):  # labels, then edges, in which they differ: a byte for each output
        n = ends.shape[0] if part else outputs.shape[0]
        for start in range(0, n, 255):
            a, b = np.uint64(0), np.uint64(0)
            for e in range(start, min(start + 255, n)):
                if part:
                    u, v = ends[e]
                    a, b = a + (flips[u, 0] | flips[v, 0]), b + (flips[u, 1] | flips[v, 1])
                else:
                    mask = ONES * np.uint64(outputs[e, k])
                    flips[e, 0], flips[e, 1] = words[e, 0] ^ mask, words[e, 1] ^ mask
                    a, b = a + flips[e, 0], b + flips[e, 1]
            sums[0], sums[1] = a, b
            for j in range(SLOTS):
                out[j] -= counts[j] if part else square * counts[j]


@njit(cache=True, nogil=True)
def exchange(sets, outputs, masses, scores, first, last, square, upper, room):
    """A pairwise step, from the worst output with mass to the best one of a run; whether there was one to make."""
    (top, low), known, rows = (first, -1), room[2], room[3]
    for k in range(first, last):
        top = k if scores[k] > scores[top] else top
        low = k if masses[k] > 0.0 and (low < 0 or scores[k] < scores[low]) else low
    gain = scores[top] - scores[low]
    if not gain > TINY * (abs(scores[top]) + abs(scores[low])):
        return False
    own = rows.shape[0] == SLOTS  # room for what is known of each
    better, worse = rows[top if own else 0], rows[low if own else 1]
    for k, row in ((top, better), (low, worse)):
        if not (own and known[k]):
            products(sets, outputs, k, square, room, row)
    norm = better[top] - better[low] + worse[low] - worse[top]
    step = masses[low] if gain >= upper * norm * masses[low] else gain / (upper * norm)
    masses[top] += step
    masses[low] = 0.0 if step >= masses[low] else masses[low] - step
    for k in range(first, last):
        scores[k] -= upper * step * (better[k] - worse[k])
    return True


@njit(cache=True, nogil=True)
def follow_masses(sets, outputs, amounts, upper, change, pairs):
    """change = how the labels move where the masses of outputs change by amounts; the scores of edges follow."""
    ends, _, _, ladders, _ = sets
    change[:] = 0.0
    for k in range(amounts.shape[0]):
        if amounts[k] != 0.0:
            for v in ladders[:, k]:
                if v < change.shape[0]:
                    change[v] += amounts[k]
            for v in range(change.shape[0] if ladders.shape[0] == 0 else 0):
                change[v] += amounts[k] * outputs[v, k]
            for e in range(ends.shape[0]):
                pairs[e, 2 * outputs[ends[e, 0], k] + outputs[ends[e, 1], k]] -= upper * amounts[k]


@njit(cache=True, nogil=True)
def sweep(rows, sets, search, aims, most, table, pairs, nodes, visits, gaps, losses):
    """Up to `most` pairwise steps in each simplex of these instances. Returns how many blocks moved."""
    truth, costs, upper = aims
    n, size, listed = truth.shape[1], nodes.shape[1], sets[1]
    slopes, change, zeros, amounts, picks = np.empty(n), np.empty(n), np.zeros(n), np.empty(n), np.empty(n, np.int64)
    scores, before, found, changed = np.empty(size), np.empty(size), np.empty((n, 1), np.int8), 0
    room = np.empty(search[2].shape[0]), np.empty((n, 2)), np.empty((n, 2), np.int32), np.zeros(n, np.int64)
    own, words, known = search[2].shape[0] > 0, np.empty((n + 1, 2), np.uint64), np.empty(size, np.bool_)
    scratch = words[1:], words[0], known, np.empty((SLOTS if own else 2, size))
    for at, i in enumerate(visits):
        if upper[i] <= 0.0 and most > 0:
            gaps[i], losses[i] = 0.0, 0.0
            continue
        outputs, masses, gap, moved = listed[i % listed.shape[0]], nodes[i], 0.0, False
        slopes_of(rows[0], rows[1], rows[2], table, truth, costs, i, slopes)
        scores_of(sets, i, slopes, pairs, scores)
        loss, before[:], high = -score_of(sets[0], slopes, pairs, truth[i].copy().reshape(n, 1), 0), masses, scores.max()
        for k in range(size if search[1].shape[0] > 0 and gaps[i] > 0.0 else 0):
            gap += masses[k] * (high - scores[k])
        looks = at % OFTEN == 0 or gaps[i] == 0.0 or not gap > LISTED * gaps[i]
        gap, known[:] = 0.0, False
        if own and looks:
            find(search, slopes, pairs, room, found)
            high = score_of(sets[0], slopes, pairs, found, 0)
            if most > 0:
                keep(found, high, outputs, masses, scores)
        for first, last in sets[2]:  # of trees, which do not touch each other
            high, steps = high if own else scores[first:last].max(), 0
            loss += high
            for k in range(first, last):
                gap += masses[k] * max(high - scores[k], 0.0)
            while steps < most and exchange(sets, outputs, masses, scores, first, last, rows[3][i], upper[i], scratch):
                steps, moved = steps + 1, True
        if looks:
            gaps[i], losses[i] = gap, max(loss, 0.0)
        if moved:
            follow_masses(sets, outputs, masses - before, upper[i], change, pairs)
            move_labels(rows[0], rows[1], rows[2], i, upper[i], change, zeros, picks, amounts, table)
        changed += moved
    return changed


@njit(cache=True, nogil=True)
def means_of(sets, nodes, upper, labels, edges):
    """labels = the mean of the labels of each instance; edges += the sum of upper times that of their edges."""
    for i in range(nodes.shape[0]):
        follow_masses(sets, sets[1][i % sets[1].shape[0]], nodes[i], -upper[i], labels[i], edges)


@njit(cache=True, nogil=True)
def nearest(sets, i, slopes, pairs, tau, centre, point, marks):
    """The projection of centre + tau scores on the simplex of each run; what is positive is free."""
    scores_of(sets, i, slopes, pairs, point)
    for first, last in sets[2]:
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
    outputs, amounts = sets[1][i % sets[1].shape[0]], np.zeros(marks.shape[0] - 1)
    for first, last in sets[2]:
        free, mean = marks[1 + first : 1 + last].sum(), 0.0
        for k in range(first, last):
            if marks[1 + k]:
                amounts[k] = score_of(sets[0], slopes, pairs, outputs, k)
                mean += amounts[k] / free
        for k in range(first, last):
            amounts[k] -= mean if marks[1 + k] else 0.0
    follow_masses(sets, outputs, amounts, -weight, labels, extra)


slopes_at, nearest_points, follow = family(__name__, BODIES, nearest, along)
