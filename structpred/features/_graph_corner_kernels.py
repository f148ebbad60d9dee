# mypy: ignore-errors
"""Compiled visits of blocks of corners over graphs: the store of core/_corner_kernels.py with the features of graphs.

corpus: what score_graphs takes beside the weights (where, table, node_side, edge_side).
"""

import numpy as np

from structpred.core._corner_kernels import add, clear, corner_of, correct, entry, include, place, spread
from structpred.core._sparse_kernels import dot
from structpred.features._graph_kernels import combine_graph, score_graph, sides_of
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def size_of(i, corpus):
    """The number of parts of graph i."""
    where, table, _, _ = corpus
    pattern, node_at, edge_at, _, _ = where
    p = pattern[i]
    return (node_at[p + 1] - node_at[p]) * table[0] + (edge_at[p + 1] - edge_at[p]) * table[0] * table[0]


@njit(cache=True, nogil=True)
def lift(w, i, parts, counts, corpus):
    """The joint features of part counts of graph i, which ascend, as sorted unique pairs; w: as long as the weights."""
    where, table, node_side, edge_side = corpus
    nodes, edges = sides_of(i, where, node_side, edge_side)
    _, idx, val = combine_graph(parts, counts, w.shape[0], table, nodes, edges)
    return idx, val


@njit(cache=True, nogil=True)
def dots(w, i, arena, first_slot, n, corpus):
    """The inner products of w with the joint features of corners first_slot..first_slot + n - 1, which are of graph i."""
    where, table, node_side, edge_side = corpus
    nodes, edges = sides_of(i, where, node_side, edge_side)
    scores = np.empty(size_of(i, corpus))
    score_graph(w, table, nodes, edges, scores)
    out = np.empty(n)
    for k in range(n):
        parts, counts = corner_of(arena, first_slot + k)
        out[k] = dot(scores, parts, counts)
    return out


@njit(cache=True, nogil=True)
def multiply(metric, arena, blocks, i, slot, corpus):
    """The inner products of a corner with those before it, into the Gram matrix of its block."""
    first = i * blocks[1].shape[1]
    idx, val = corner_of(arena, first + slot)
    idx, val = lift(metric[0], i, idx, val, corpus)
    spread(idx, val, metric)
    row = dots(metric[0], i, arena, first, slot + 1, corpus)
    for m in range(slot + 1):
        blocks[4][i, entry(slot, m)] = row[m]
    clear(idx, metric)


@njit(cache=True, nogil=True)
def settle(weights, metric, arena, blocks, i, factor, rules, most_idle, corpus):
    """Pairwise steps of a block, and w moved by what they changed; (the gap of H_i over the corners, whether w moved)."""
    products = dots(weights[0], i, arena, i * blocks[1].shape[1], blocks[0][i], corpus)
    gap, at, counts = correct(arena, blocks, i, products, factor, rules, most_idle, size_of(i, corpus))
    moved = False
    if at.shape[0] > 0:
        idx, val = lift(weights[0], i, at, counts, corpus)
        add(weights, idx, val, factor, metric)
        for x in val:
            moved |= x != 0.0
    include(weights)
    return gap, moved


@njit(cache=True, nogil=True)
def visit(weights, metric, arena, blocks, i, corner, factor, rules, most_idle, corpus):
    """A visit with the oracle's corner (parts, counts, offset): kept, then `settle`.

    Returns (gap, whether w moved, pairs that the arena must have space for before it can be made; 0 where it was made).
    """
    slot, new, needed = place(arena, blocks, i, corner[0], corner[1], corner[2])
    if needed > 0:
        return 0.0, False, needed
    if new:
        multiply(metric, arena, blocks, i, slot, corpus)
    gap, moved = settle(weights, metric, arena, blocks, i, factor, rules, most_idle, corpus)
    return gap, moved, 0


@njit(cache=True, nogil=True)
def cached_pass(weights, metric, arena, blocks, order, shares, lam, rules, corpus):
    """Visits of all blocks without the oracle. Returns (the sum of their gaps over remembered corners, whether w moved)."""
    total = 0.0
    any_moved = False
    for i in order:
        gap, moved = settle(weights, metric, arena, blocks, i, shares[i] / lam, rules, 0, corpus)
        total += shares[i] * gap
        any_moved |= moved
    return total, any_moved
