# mypy: ignore-errors
"""Compiled steps of Wolfe's method for a batch: each instance has an active set of vertices in a pool of its own size.

The pools of a batch are one tuple `sets`: (sizes, caps, widths, weights, factors, parts, lengths, at, spares). Instance slot s
has sizes[s] active vertices of at most caps[s], each a list of at most widths[s] parts; behind their rows stand as many for
vertices that were active once, spares[s] of them, which cost no oracle call where they are of use again. Its weights start at
at[s, 0] of `weights`, its factor at at[s, 1] of `factors`, its lists at at[s, 2] of `parts`, their lengths at 2 at[s, 0] of
`lengths`. The factor R is the upper Cholesky factor of the Gram matrix V^T D V + 1, packed by columns: R[i, j] stands at
j (j + 1) / 2 + i.
"""

import numpy as np

from structpred.projections._active_set_kernels import add, exchange, minimise, mixture, move_row, products, take_back, towards
from structpred.runtime.jit import njit

PATIENCE = 4  # how many vertices in a row may bring nothing new
RUNNING, DONE, STUCK = 0, 1, 2


@njit(cache=True, nogil=True)
def views(sets, s):
    """The parts, lengths, weights, factor and number of spare vertices of a slot."""
    _, caps, widths, weights, factors, parts, lengths, at, spares = sets
    cap = caps[s]
    width = widths[s]
    a = at[s, 0]
    b = at[s, 1]
    c = at[s, 2]
    return (
        parts[c : c + 2 * cap * width].reshape((2 * cap, width)),
        lengths[2 * a : 2 * (a + cap)],
        weights[a : a + cap],
        factors[b : b + cap * (cap + 1) // 2],
        spares[s : s + 1],
    )


@njit(cache=True, nogil=True)
def room_for(sets, batch, instances):
    """Zeros for the part counts of any of these instances, and three rows for numbers of their active vertices."""
    slots, offsets = batch[:2]
    most = 0
    cap = 0
    for i in instances:
        most = max(most, offsets[i + 1] - offsets[i])
        cap = max(cap, sets[1][slots[i]])
    return np.zeros(most), np.empty((3, cap + 1))


@njit(cache=True, nogil=True)
def advance(sets, batch, run, first, last):
    """One major cycle of the instances alive[first:last], whose new vertices are at hand.

    batch: (slots, offsets, points, metric, mu). run: (alive, vertices, ends, scores, places, gaps, scales, states, stuck, tol);
    the next residual of alive instance b goes to scores[places[b]:places[b + 1]].
    """
    slots, offsets, points, metrics, mus = batch
    alive, vertices, ends, scores, places, gaps, scales, states, stuck, tol = run
    sizes = sets[0]
    counts, room = room_for(sets, batch, alive[first:last])
    for b in range(first, last):
        i = alive[b]
        s = slots[i]
        lo = offsets[i]
        hi = offsets[i + 1]
        point = points[lo:hi]
        metric = metrics[lo:hi]
        mu = mus[lo:hi]
        residual = scores[places[b] : places[b + 1]]
        vertex = vertices[ends[b] : ends[b + 1]]
        parts, lengths, weights, factor, spares = views(sets, s)
        n = sizes[s]
        for j in range(vertex.shape[0]):
            counts[vertex[j]] += 1.0
        if n > 0:
            gap = 0.0
            scale = 0.0
            for p in range(hi - lo):
                gap += residual[p] * (counts[p] - mu[p])
                scale += abs(residual[p]) * (counts[p] + mu[p])
            gaps[i] = max(gap, 0.0)
            scales[i] = max(1.0, scale)
            if gap <= tol * scales[i]:
                states[i] = DONE
            elif stuck[i] >= PATIENCE:
                states[i] = STUCK
        if states[i] == RUNNING:
            grown = add(parts, lengths, weights, factor, n, vertex, counts, metric, room)
            if grown:
                n += 1
            else:
                n, grown = exchange(parts, lengths, weights, factor, n, vertex, counts, metric, room, spares)
            n, kept = minimise(parts, lengths, weights, factor, n, point, metric, mu, residual, room, spares)
            stuck[i] = 0 if grown and kept else stuck[i] + 1
        for j in range(vertex.shape[0]):
            counts[vertex[j]] = 0.0
        if states[i] == RUNNING:
            sizes[s] = take_back(
                parts, lengths, weights, factor, n, point, metric, mu, residual, room, spares, counts[: hi - lo], tol
            )


@njit(cache=True, nogil=True)
def resume(sets, batch, run, first, last):
    """Minor cycles for new points from the vertices that are there; instances without any ask for the best at their point."""
    slots, offsets, points, metrics, mus = batch
    alive, _, _, scores, places = run[:5]
    counts, room = room_for(sets, batch, alive[first:last])
    for b in range(first, last):
        i = alive[b]
        s = slots[i]
        lo = offsets[i]
        hi = offsets[i + 1]
        residual = scores[places[b] : places[b + 1]]
        if sets[0][s] == 0:
            residual[:] = points[lo:hi]
        else:
            parts, lengths, weights, factor, spares = views(sets, s)
            point = points[lo:hi]
            metric = metrics[lo:hi]
            mu = mus[lo:hi]
            n, _ = minimise(parts, lengths, weights, factor, sets[0][s], point, metric, mu, residual, room, spares)
            sets[0][s] = take_back(
                parts, lengths, weights, factor, n, point, metric, mu, residual, room, spares, counts[: hi - lo], run[9]
            )


@njit(cache=True, nogil=True)
def compact(scores, places, keep, kept_places):
    """Move the scores of the instances `keep` (ascending) to the front."""
    for b in range(keep.shape[0]):
        a = places[keep[b]]
        c = kept_places[b]
        for j in range(kept_places[b + 1] - c):
            scores[c + j] = scores[a + j]


@njit(cache=True, nogil=True)
def pull_back(sets, batch, given, found, first, last):
    """found = J^T given: V M V^T given on the active vertices, M the inverse of V^T D V among changes of sum zero."""
    slots, offsets = batch[:2]
    _, room = room_for(sets, batch, np.arange(first, last))
    for i in range(first, last):
        s = slots[i]
        parts, lengths, _, factor, _ = views(sets, s)
        n = sets[0][s]
        lo = offsets[i]
        hi = offsets[i + 1]
        products(parts, lengths, n, given[lo:hi], room[0])
        towards(factor, n, room[0], room[1], room[2])
        mixture(parts, lengths, room[1], n, found[lo:hi])


@njit(cache=True, nogil=True)
def move_slots(old, sources, new, targets, caps, widths, at):
    """Copy the vertices of slots `sources` of `old` to new places, as slots `targets` of `new`, which may be the same."""
    for k in range(sources.shape[0]):
        s = sources[k]
        t = targets[k]
        parts, lengths, weights, factor, spares = views(old, s)
        n = old[0][s]
        n_spares = spares[0]
        new[0][t] = n
        new[8][t] = n_spares
        new[1][t] = caps[k]
        new[2][t] = widths[k]
        new[7][t] = at[k]
        moved_parts, moved_lengths, moved_weights, moved_factor, _ = views(new, t)
        for v in range(n):
            moved_weights[v] = weights[v]
            move_row(parts, lengths, v, moved_parts, moved_lengths, v)
        for v in range(n_spares):
            move_row(parts, lengths, parts.shape[0] // 2 + v, moved_parts, moved_lengths, caps[k] + v)
        moved_factor[: n * (n + 1) // 2] = factor[: n * (n + 1) // 2]
