# mypy: ignore-errors
"""Compiled sweeps of dual ascent for one label out of many, with shrinking of rows: blocks of a row, or one column at a time."""

import numpy as np

from structpred.rows._column_kernels import best_point, column_step, cost_of, dual_value, score_row
from structpred.runtime.jit import njit
from structpred.trainers.rows._sdca_kernels import (
    GAP,
    LAST_GAP,
    LOW,
    N_ACTIVE,
    OVER,
    PHASE,
    PLACE,
    SETTLED,
    TOP,
    TOP_BEFORE,
    WHOLE,
    draw,
    end_sweep,
    image_of,
    next_random,
)

#: rows whose gap is below this part of the mean leave the active ones; they all return once the sum fell to this part
SMALL = 0.1


@njit(cache=True, nogil=True)
def score_labels(indices, values, start, stop, table, truth, costs, labels, out):
    """out[j] = cost + score of labels[j]; all labels in one contiguous run where `labels` holds every one."""
    if labels.shape[0] == table.shape[1]:
        for j in range(np.uint64(table.shape[1])):
            labels[j] = j
            out[j] = cost_of(costs, truth, j)
        for k in range(np.uint64(start), np.uint64(stop)):
            f, x = np.uint64(indices[k]), values[k]
            for j in range(np.uint64(table.shape[1])):
                out[j] += x * table[f, j]
        return
    for j in range(np.uint64(labels.shape[0])):
        out[j] = cost_of(costs, truth, labels[j])
    for k in range(np.uint64(start), np.uint64(stop)):
        f, x = np.uint64(indices[k]), values[k]
        for j in range(np.uint64(labels.shape[0])):
            out[j] += x * table[f, np.uint32(labels[j])]


@njit(cache=True, nogil=True)
def threshold(points, n, top):
    """The tau with sum_j max(points_j - tau, 0) = 1 over the first n points, of which `top` is the largest."""
    low, count = -1.0, -1
    while True:  # Michelot (1986): tau rises, and points fall below it for good
        total, left = 0.0, 0
        for j in range(n):
            if points[j] - top > low:
                total += points[j] - top
                left += 1
        low = max(low, (total - 1.0) / left)
        if left == count:
            return top + low
        count = left


@njit(cache=True, nogil=True)
def move_block(curvature, labels, point, points, top, picks, amounts):
    """point goes to the projection of point + points / curvature; returns how many entries changed: which, and by how much.

    points are overwritten: 1 where the entry is positive before or after, else 0.
    """
    n, found, best = labels.shape[0], 0, -np.inf
    vertex = curvature <= 1e-200  # the dual is linear in this block
    for j in range(n):
        points[j] = (points[j] - top) / curvature + point[labels[j]] if not vertex else (0.0 if points[j] < top else 1.0)
        best = max(best, points[j])
    tau = threshold(points, n, best)
    for j in range(n):
        old, new = point[labels[j]], max(points[j] - tau, 0.0)
        points[j] = 1.0 if old > 0.0 or new > 0.0 else 0.0
        if new != old:
            point[labels[j]], picks[found], amounts[found] = new, labels[j], new - old
            found += 1
    return found


@njit(cache=True, nogil=True)
def add_block(indices, values, start, stop, scale, picks, amounts, found, table):
    """The entries of the table at `picks` grow by scale * amounts times the row."""
    for k in range(np.uint64(start), np.uint64(stop)):
        f, x = np.uint64(indices[k]), scale * values[k]
        for j in range(np.uint64(found)):
            table[f, np.uint64(picks[j])] += x * amounts[j]


@njit(cache=True, nogil=True)
def ascend_labels(rows, truths, squares, upper, costs, table, mu, labels, sizes, active, counts, limits, seed, budget):
    """Block steps over the active rows in random order, until `budget` products were added or the pass is over.

    mu_i goes to the projection of mu_i + s_i / q_i onto the simplex, s_i = costs + scores, q_i = upper_i |x_i|^2: the maximum of
    the dual over the labels of row i that are active, the first sizes_i of labels_i. Labels that stay at zero, and rows with one
    label left, leave until all others have settled. Returns how many blocks changed.
    """
    indptr, indices, values = rows
    state, changed, done, n_labels = np.uint64(seed), 0, 0, table.shape[1]
    points, amounts, picks = np.empty(n_labels), np.empty(n_labels), np.empty(n_labels, np.int64)
    while done < budget and counts[PHASE] != OVER:
        if counts[PLACE] >= counts[N_ACTIVE]:
            end_sweep(counts, limits, active.shape[0])
            if counts[PHASE] == WHOLE:
                sizes[:] = n_labels
            continue
        state, place = next_random(state), counts[PLACE]
        other = place + draw(state, counts[N_ACTIVE] - place)
        i = active[other]
        active[other], active[place] = active[place], i
        start, stop, n, point = indptr[i], indptr[i + 1], sizes[i], mu[i]
        mine = labels[i, :n]
        score_labels(indices, values, start, stop, table, truths[i], costs, mine, points)
        done += (stop - start + 8) * n
        top, low, mean = -np.inf, np.inf, 0.0
        for j in range(n):
            top = max(top, points[j])
            if point[mine[j]] > 0.0:
                low = min(low, points[j])
                mean += point[mine[j]] * points[j]
        if upper[i] > 0.0:
            limits[GAP] += upper[i] * (top - mean)
            limits[TOP], limits[LOW] = max(limits[TOP], top - low), 0.0
        if upper[i] > 0.0 and top > low:
            found = move_block(upper[i] * squares[i], mine, point, points, top, picks, amounts)
            add_block(indices, values, start, stop, -upper[i], picks, amounts, found, table)
            changed += found > 0
        else:
            for j in range(n):
                points[j] = point[mine[j]]
        kept = 0
        for j in range(n):
            if points[j] > 0.0:
                mine[j], mine[kept] = mine[kept], mine[j]
                points[j], points[kept] = points[kept], points[j]
                kept += 1
        sizes[i] = kept
        if kept > 1:
            counts[PLACE] += 1
        else:
            counts[N_ACTIVE] -= 1
            active[place], active[counts[N_ACTIVE]] = active[counts[N_ACTIVE]], i
    return changed


@njit(cache=True, nogil=True)
def label_losses(rows, truths, costs, table, labels, points, out):
    """out_i = max over all labels of cost + score, less the score of the truth. labels, points: working memory."""
    indptr, indices, values = rows
    for i in range(out.shape[0]):
        score_labels(indices, values, indptr[i], indptr[i + 1], table, truths[i], costs, labels, points)
        out[i] = points.max() - points[truths[i]]


@njit(cache=True, nogil=True)
def add_blocks(rows, truths, upper, costs, mu, picks, amounts, table):
    """table += sum_i upper_i x_i (e_{y_i} - mu_i)'; returns sum_i upper_i <costs, mu_i>."""
    indptr, indices, values = rows
    total = 0.0
    for i in range(truths.shape[0]):
        found = 0
        for j in range(mu.shape[1]):
            amount = (1.0 if j == truths[i] else 0.0) - mu[i, j]
            if amount != 0.0:
                picks[found], amounts[found] = j, amount
                total += upper[i] * cost_of(costs, truths[i], j) * mu[i, j]
                found += 1
        add_block(indices, values, indptr[i], indptr[i + 1], upper[i], picks, amounts, found, table)
    return total


@njit(cache=True, nogil=True)
def move_column(indices, values, start, stop, factor, moves, picks, found, table, u, w):
    """u += factor x_i moves' at the labels `picks`, and w with it."""
    for e in range(np.uint64(start), np.uint64(stop)):
        f, x = np.uint64(indices[e]), factor * values[e]
        for s in range(np.uint64(found)):
            j = np.uint64(picks[s])
            u[f, j] += x * moves[s]
            if table is not None:
                at = f * np.uint64(u.shape[1]) + j
                w[f, j] = image_of(u[f, j], table[0][at], table[1][at], table[2][at])


@njit(cache=True, nogil=True)
def end_column_sweep(counts, limits, n):
    """What the gaps of a sweep say of the next one."""
    gap = limits[LAST_GAP] = limits[GAP]
    limits[TOP_BEFORE] = SMALL * gap / n
    if counts[PHASE] == WHOLE:
        counts[PHASE] = OVER
        limits[SETTLED] = SMALL * gap
    elif gap <= limits[SETTLED] or (gap == 0.0 and counts[N_ACTIVE] == 0):  # no row is left: ends whatever was read from a file
        counts[PHASE], counts[N_ACTIVE] = WHOLE, n
    limits[GAP], counts[PLACE] = 0.0, 0


@njit(cache=True, nogil=True)
def ascend_columns(rows, truths, costs, kind, k, steep, upper, table, u, points, active, counts, limits, seed, budget):
    """Column steps over the active rows in random order, until `budget` products were added or the pass is over.

    points_i goes to the maximum of a lower bound of the dual over the column of row i, whose curvature is steep_i;
    u = sum_i upper_i x_i (e_{y_i} - points_i)' is kept, and with it w = u, or its image under `table` of (scale, low, high) for
    each weight. Returns how many columns changed.
    """
    indptr, indices, values = rows
    state, changed, done, m, n = np.uint64(seed), 0, 0, u.shape[1], points.shape[0]
    w = u
    if table is not None:
        scale, low, high = table
        w = (scale * (u.ravel() - np.minimum(np.maximum(u.ravel(), low), high))).reshape(u.shape)
    z, p, moves, picks = np.empty(m), np.empty(m), np.empty(m), np.empty(m, np.int64)
    while done < budget and counts[PHASE] != OVER:
        if counts[PLACE] >= counts[N_ACTIVE]:
            end_column_sweep(counts, limits, n)
            continue
        state, place = next_random(state), counts[PLACE]
        other = place + draw(state, counts[N_ACTIVE] - place)
        i = active[other]
        active[other], active[place] = active[place], i
        start, stop, point, truth = indptr[i], indptr[i + 1], points[i], truths[i]
        score_row(indices, values, start, stop, w, z)
        done += (stop - start + 8) * m
        gap = best_point(kind, k, z, truth, costs, p) - dual_value(kind, point, truth, costs) + z[truth]
        for j in range(m):
            gap -= z[j] * point[j]
            p[j] = point[j]
        gap = upper[i] * max(gap, 0.0)
        limits[GAP] += gap
        found = 0
        if gap > 0.0:
            column_step(kind, k, z, truth, costs, steep[i], p)
            for j in range(m):
                if p[j] != point[j]:
                    moves[found], picks[found] = p[j] - point[j], j
                    point[j] = p[j]
                    found += 1
            move_column(indices, values, start, stop, -upper[i], moves, picks, found, table, u, w)
            changed += found > 0
        if gap <= limits[TOP_BEFORE]:
            counts[N_ACTIVE] -= 1
            active[place], active[counts[N_ACTIVE]] = active[counts[N_ACTIVE]], i
        else:
            counts[PLACE] += 1
    return changed


@njit(cache=True, nogil=True)
def add_columns(rows, truths, costs, kind, upper, points, u):
    """u += sum_i upper_i x_i (e_{y_i} - points_i)'; returns sum_i upper_i (-phi*_i)."""
    indptr, indices, values = rows
    m, total = points.shape[1], 0.0
    moves, picks = np.empty(m), np.empty(m, np.int64)
    for i in range(points.shape[0]):
        total += upper[i] * dual_value(kind, points[i], truths[i], costs)
        found = 0
        for j in range(m):
            amount = (1.0 if j == truths[i] else 0.0) - points[i, j]
            if amount != 0.0:
                moves[found], picks[found] = amount, j
                found += 1
        move_column(indices, values, indptr[i], indptr[i + 1], upper[i], moves, picks, found, None, u, u)
    return total
