# mypy: ignore-errors
"""Compiled sweeps over labels on a graph: a block is the labels' marginals and four numbers an edge (off-off, off-on, ...)."""

import numpy as np

from structpred.fused._closed_set_kernels import move_labels, slopes_of
from structpred.oracles.fields._mrf_enumeration_kernels import best_output
from structpred.oracles.fields._tree_mrf_kernels import best_states
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def best_labels(search, slopes, pairs, fixed, room, best):
    """The best labels at these scores, by the dynamic program where there is a plan of it, else by looking at all."""
    plan, listed = search
    scores, sums, back = room
    n, n_edges = slopes.shape[0], pairs.shape[0]
    for v in range(n):
        scores[2 * v], scores[2 * v + 1] = fixed[2 * v], slopes[v] + fixed[2 * v + 1]
    at = 2 * n
    for e in range(n_edges):
        for a in range(4):
            scores[at] = pairs[e, a] + fixed[at]
            at += 1
    if plan.shape[0] > 0:
        best_states(scores, plan, 2, sums, back, best)
    else:
        best_output(scores, listed, best)


@njit(cache=True, nogil=True)
def gains_of(ends, slopes, pairs, best, point, edges, square):
    """(slope towards the output `best`, |change|^2 of the features) from a block's marginals."""
    gain, norm = 0.0, 0.0
    for v in range(point.shape[0]):
        change = best[v] - point[v]
        gain += slopes[v] * change
        norm += 2.0 * square * change * change
    for e in range(ends.shape[0]):
        on = 2 * best[ends[e, 0]] + best[ends[e, 1]]
        for a in range(4):
            change = (1.0 if a == on else 0.0) - edges[e, a]
            gain += pairs[e, a] * change
            norm += change * change
    return gain, norm


@njit(cache=True, nogil=True)
def joint_step(ends, upper, square, best, point, edges, slopes, pairs):
    """The block's line search towards `best`. Returns its gap."""
    gain, norm = gains_of(ends, slopes, pairs, best, point, edges, square)
    if not gain > 0.0:
        return 0.0
    step = 1.0 if gain >= upper * norm else gain / (upper * norm)
    for v in range(point.shape[0]):
        change = step * (best[v] - point[v])
        point[v] += change
        slopes[v] -= 2.0 * upper * square * change
    for e in range(ends.shape[0]):
        on = 2 * best[ends[e, 0]] + best[ends[e, 1]]
        for a in range(4):
            change = step * ((1.0 if a == on else 0.0) - edges[e, a])
            edges[e, a] += change
            pairs[e, a] -= upper * change
    return gain


@njit(cache=True, nogil=True)
def forced(links, ends, v, k, state, point, edges, wanted):
    """wanted = edge k of label v where v has `state`, whatever its neighbour; returns the edge."""
    e = links[1][k]
    on = point[links[0][k]]
    own, step = (2, 1) if ends[e, 0] == v else (1, 2)
    wanted[:] = 0.0
    wanted[own * state], wanted[own * state + step] = 1.0 - on, on
    return e


@njit(cache=True, nogil=True)
def label_steps(first, links, ends, upper, square, point, edges, slopes, pairs, wanted):
    """For each label in turn a line search towards the block's own distribution with the label forced on, or off."""
    for v in range(point.shape[0]):
        gain, norm, state = 0.0, 0.0, 0
        for own in range(2):
            change = own - point[v]
            slope, size = slopes[v] * change, 2.0 * square * change * change
            for k in range(first[v], first[v + 1]):
                e = forced(links, ends, v, k, own, point, edges, wanted)
                for a in range(4):
                    other = wanted[a] - edges[e, a]
                    slope += pairs[e, a] * other
                    size += other * other
            if slope > gain:
                gain, norm, state = slope, size, own
        if not (gain > 0.0 and norm > 0.0):
            continue
        step = 1.0 if gain >= upper * norm else gain / (upper * norm)
        for k in range(first[v], first[v + 1]):
            e = forced(links, ends, v, k, state, point, edges, wanted)
            for a in range(4):
                other = step * (wanted[a] - edges[e, a])
                edges[e, a] += other
                pairs[e, a] -= upper * other
        change = step * (state - point[v])
        point[v] += change
        slopes[v] -= 2.0 * upper * square * change


@njit(cache=True, nogil=True)
def loss_of(ends, slopes, pairs, best, truth):
    """The scores and losses of `best` less those of the truth."""
    loss = 0.0
    for v in range(slopes.shape[0]):
        loss += slopes[v] * (best[v] - truth[v])
    for e in range(ends.shape[0]):
        u, v = ends[e]
        loss += pairs[e, 2 * best[u] + best[v]] - pairs[e, 2 * truth[u] + truth[v]]
    return max(loss, 0.0)


@njit(cache=True, nogil=True)
def sweep(rows, graph, search, aims, table, pairs, nodes, all_edges, visits, gaps, losses):
    """A joint step of each of these instances and, where nothing is forbidden, steps of its labels. Returns how many moved."""
    indptr, indices, values, squares = rows
    ends, first, other, edge, fixed, free = graph
    truth, costs, upper = aims
    n = nodes.shape[1]
    slopes, old, amounts, wanted = np.empty(n), np.empty(n), np.empty(n), np.empty(4)
    room = np.empty(fixed.shape[0]), np.empty((n, 2)), np.empty((n, 2), np.int32)
    best, picks, changed = np.zeros(n, np.int64), np.empty(n, np.int64), 0
    for i in visits:
        if upper[i] <= 0.0:
            gaps[i], losses[i] = 0.0, 0.0
            continue
        point, edges = nodes[i], all_edges[i]
        slopes_of(indptr, indices, values, table, truth, costs, i, slopes)
        best_labels(search, slopes, pairs, fixed, room, best)
        for k in range(n):
            old[k] = point[k]
        losses[i] = loss_of(ends, slopes, pairs, best, truth[i])
        gaps[i] = joint_step(ends, upper[i], squares[i], best, point, edges, slopes, pairs)
        if free:
            label_steps(first, (other, edge), ends, upper[i], squares[i], point, edges, slopes, pairs, wanted)
        moved = move_labels(indptr, indices, values, i, upper[i], point, old, picks, amounts, table)
        changed += moved > 0 or gaps[i] > 0.0
    return changed


@njit(cache=True, nogil=True)
def values_of(rows, graph, search, aims, table, pairs, out):
    """out[i] = the largest loss and score of an output, less the score of the truth."""
    indptr, indices, values, _ = rows
    ends, fixed = graph[0], graph[4]
    truth, costs, _ = aims
    n = truth.shape[1]
    slopes, best = np.empty(n), np.zeros(n, np.int64)
    room = np.empty(fixed.shape[0]), np.empty((n, 2)), np.empty((n, 2), np.int32)
    for i in range(out.shape[0]):
        slopes_of(indptr, indices, values, table, truth, costs, i, slopes)
        best_labels(search, slopes, pairs, fixed, room, best)
        out[i] = loss_of(ends, slopes, pairs, best, truth[i])
