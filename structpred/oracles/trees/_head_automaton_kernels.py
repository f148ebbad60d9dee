# mypy: ignore-errors
"""Compiled search for the best head and modifiers of one word, by a path over the modifiers of each side, outwards.

A side of d modifiers has the states 0 (start), 1..d and d + 1 (end). The pair (i, j), i < j, is part j (j - 1) / 2 + i of that
side's siblings, so that what leads to j lies in a row; so do the scores of one modifier under all heads of the word:

    table[j, g] = max_i table[i, g] + sibling[i, j], + arc[j] + grandparent[j, g] where j is not the end.

size: (heads, left, right, one_child). A side comes as (d, and where its arcs, siblings and grandparents begin).
"""

import numpy as np

from structpred.oracles.trees._projective_kernels import hand_on
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True, borrows=True)
def side_of(size, right):
    """One side of a word."""
    d = size[1] + size[2]
    to_right = d + size[0] + (size[1] + 1) * (size[1] + 2) // 2
    grand = to_right + (size[2] + 1) * (size[2] + 2) // 2
    if right:
        return size[2], size[1], to_right, grand + size[1] * size[0]
    return size[1], np.int64(0), d + size[0], grand


@njit(cache=True, nogil=True, borrows=True)
def fill_side(scores, n_heads, side, table):
    """The best paths to each state, for all heads at once; a root has one column."""
    d, arcs, at, grand = side
    width = max(n_heads, 1)
    table[0, :width] = 0.0
    for j in range(1, d + 2):
        row = table[j, :width]
        for i in range(j):
            hand_on(row, i == 0, table[i, :width], scores[at])
            at += 1
        if j <= d:
            for g in range(width):
                row[g] += scores[arcs + j - 1]
            for g in range(n_heads):
                row[g] += scores[grand + (j - 1) * n_heads + g]


@njit(cache=True, nogil=True, borrows=True)
def follow_side(scores, side, g, table, labels):
    """Mark the modifiers of the best path of a side under head g. Ties go to the state that comes first."""
    d, arcs, siblings, _ = side
    j = d + 1
    while j > 0:
        at = siblings + j * (j - 1) // 2
        best = 0
        for i in range(1, j):
            if table[i, g] + scores[at + i] > table[best, g] + scores[at + best]:
                best = i
        j = best
        if j > 0:
            labels[arcs + j] = 1


@njit(cache=True, nogil=True, borrows=True)
def best_modifiers(scores, size, tables, labels):
    """Write labels, the head and whether each modifier is on; returns their score. tables: (2, left or right + 2, heads)."""
    n_heads, left, right, one_child = size
    labels[:] = 0
    sides = side_of(size, 0), side_of(size, 1)
    best = -np.inf
    if one_child and left + right > 0:
        child = 0
        for k in range(2):
            d, arcs, siblings, _ = sides[k]
            other, _, empty, _ = sides[1 - k]
            for j in range(1, d + 1):
                value = scores[arcs + j - 1] + scores[siblings + j * (j - 1) // 2] + scores[siblings + (d + 1) * d // 2 + j]
                value += scores[empty + (other + 1) * other // 2]
                if value > best:
                    best = value
                    child = arcs + j
        labels[child] = 1
        return best
    fill_side(scores, n_heads, sides[0], tables[0])
    fill_side(scores, n_heads, sides[1], tables[1])
    for g in range(max(n_heads, 1)):
        value = tables[0, left + 1, g] + tables[1, right + 1, g] + (scores[left + right + g] if n_heads > 0 else 0.0)
        if value > best:
            best = value
            labels[0] = g
    follow_side(scores, sides[0], labels[0], tables[0], labels)
    follow_side(scores, sides[1], labels[0], tables[1], labels)
    return best


@njit(cache=True, nogil=True, borrows=True)
def modifier_parts(labels, size, out, k):
    """Write the parts of one output from place k on; returns the place behind them."""
    n_heads, left, right, _ = size
    if n_heads > 0:
        out[k] = left + right + labels[0]
        k += 1
    for which in range(2):
        d, arcs, siblings, grand = side_of(size, which)
        last = 0
        for j in range(1, d + 2):
            if j <= d and not labels[arcs + j]:
                continue
            out[k] = siblings + j * (j - 1) // 2 + last
            k += 1
            last = j
            if j <= d:
                out[k] = arcs + j - 1
                k += 1
            if j <= d and n_heads > 0:
                out[k] = grand + (j - 1) * n_heads + labels[0]
                k += 1
    return k


@njit(cache=True, nogil=True)
def best_of_all(scores, offsets, sizes, tables, ends, labels):
    """best_modifiers of each of many words."""
    for i in range(sizes.shape[0]):
        best_modifiers(scores[offsets[i] : offsets[i + 1]], sizes[i], tables, labels[ends[i] : ends[i + 1]])


@njit(cache=True, nogil=True)
def parts_of_all(labels, ends, sizes, out, part_ends):
    """The parts of many outputs, flat; part_ends[i + 1] is where those of output i end."""
    for i in range(sizes.shape[0]):
        part_ends[i + 1] = modifier_parts(labels[ends[i] : ends[i + 1]], sizes[i], out, part_ends[i])
