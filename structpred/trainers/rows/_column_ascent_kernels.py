# mypy: ignore-errors
"""Compiled sweeps of dual ascent for one label out of many: one column of dual variables at a time, any loss, any dual map."""

import numpy as np

from structpred.rows._column_kernels import best_point, column_step, dual_value, score_row
from structpred.runtime.jit import njit
from structpred.trainers.rows._sdca_kernels import (
    GAP,
    LAST_GAP,
    N_ACTIVE,
    OVER,
    PHASE,
    PLACE,
    SETTLED,
    TOP_BEFORE,
    WHOLE,
    draw,
    image_of,
    next_random,
)

#: rows whose gap is below this part of the mean leave the active ones; they all return once the sum fell to this part
SMALL = 0.1


@njit(cache=True, nogil=True)
def images(u, table, w):
    """w, the weights (n_features, m) of the dual point u."""
    scale, low, high = table
    for f in range(u.shape[0]):
        for j in range(u.shape[1]):
            at = f * u.shape[1] + j
            w[f, j] = image_of(u[f, j], scale[at], low[at], high[at])


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
def end_sweep(counts, limits, n):
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
        w = np.empty_like(u)
        images(u, table, w)
    z, p, moves, picks = np.empty(m), np.empty(m), np.empty(m), np.empty(m, np.int64)
    while done < budget and counts[PHASE] != OVER:
        if counts[PLACE] >= counts[N_ACTIVE]:
            end_sweep(counts, limits, n)
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
