# mypy: ignore-errors
"""Compiled visits of blocks of corners over label sequences: the store of core/_corner_kernels.py with the features of sequences.

corpus: (feature indices, values, indptr of tokens, offsets of sequences, start_row, width, n_labels).
"""

import numpy as np

from structpred.core._corner_kernels import add, clear, corner_of, correct, entry, include, place, spread
from structpred.features._feature_kernels import pairs_of_sequence
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def lift(w, i, parts, counts, corpus):
    """The joint features of part counts of sequence i, as pairs in any order."""
    indices, values, indptr, offsets, start_row, width, n_labels = corpus
    return pairs_of_sequence(parts, counts, indices, values, indptr, offsets[i], offsets[i + 1], start_row, width, n_labels)


@njit(cache=True, nogil=True)
def dots(w, i, arena, first_slot, n, corpus):
    """The inner products of w with the joint features of corners first_slot..first_slot + n - 1, which are of sequence i."""
    indices, values, indptr, offsets, start_row, width, n_labels = corpus
    first = offsets[i]
    last = offsets[i + 1]
    n_emissions = (last - first) * n_labels
    out = np.zeros(n)
    for k in range(n):
        parts, counts = corner_of(arena, first_slot + k)
        for m in range(parts.shape[0]):
            score = 0.0
            if parts[m] < n_emissions:
                t = first + parts[m] // n_labels
                label = parts[m] % n_labels
                for f in range(indptr[t], indptr[t + 1]):
                    score += np.float64(values[f]) * np.float64(w[np.int64(indices[f]) * width + label])
                if start_row >= 0 and t == first:
                    score += np.float64(w[start_row * width + label])
                if start_row >= 0 and t == last - 1:
                    score += np.float64(w[(start_row + 1) * width + label])
            else:
                pair = parts[m] - n_emissions
                score = np.float64(w[(start_row + 2 + pair // n_labels) * width + pair % n_labels])
            out[k] += score * counts[m]
    return out


@njit(cache=True, nogil=True)
def size_of(i, corpus):
    """The number of parts of sequence i."""
    _, _, _, offsets, start_row, _, n_labels = corpus
    return (offsets[i + 1] - offsets[i] + (n_labels if start_row >= 0 else 0)) * n_labels


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
