# mypy: ignore-errors
"""Compiled search for the best head and modifiers of one word, by a path over the modifiers of each side, outwards.

A side of d modifiers has the states 0 (start), 1..d and d + 1 (end). The pair (i, j), i < j, is part j (j - 1) / 2 + i of that
side's siblings, so that what leads to j lies in a row; so do the scores of one modifier under all heads of the word:

    table[j, g] = max_i table[i, g] + sibling[i, j], + arc[j] + grandparent[j, g] where j is not the end.
"""

import numpy as np

from structpred.oracles.trees._projective_kernels import hand_on
from structpred.oracles.trees._tree_kernels import all_finite
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True, borrows=True)
def pairs_of(d):
    """The number of sibling parts of a side with d modifiers."""
    return (d + 1) * (d + 2) // 2


@njit(cache=True, nogil=True, borrows=True)
def fill_side(scores, arcs, siblings, grand, d, n_heads, table):
    """The best paths to each state, for all heads at once; arcs, siblings, grand: where the scores of this side begin."""
    width = max(n_heads, 1)
    table[0, :width] = 0.0
    at = siblings
    for j in range(1, d + 2):
        row = table[j, :width]
        for i in range(j):
            hand_on(row, i == 0, table[i, :width], scores[at])
            at += 1
        if j <= d:
            arc = scores[arcs + j - 1]
            for g in range(n_heads):
                row[g] += arc + scores[grand + (j - 1) * n_heads + g]
            if n_heads == 0:
                row[0] += arc


@njit(cache=True, nogil=True, borrows=True)
def follow_side(scores, siblings, d, g, table, chosen):
    """Mark the modifiers of the best path of a side under head g. Ties go to the state that comes first."""
    j = d + 1
    while j > 0:
        at = siblings + j * (j - 1) // 2
        best = 0
        for i in range(1, j):
            if table[i, g] + scores[at + i] > table[best, g] + scores[at + best]:
                best = i
        j = best
        if j > 0:
            chosen[j - 1] = 1


@njit(cache=True, nogil=True, borrows=True)
def best_child(scores, n_heads, left, right, labels):
    """The best head and the best single modifier; returns their score."""
    d = left + right
    sides = d + n_heads
    grand = sides + pairs_of(left) + pairs_of(right)
    best = -np.inf
    child = 0
    head = 0
    for j in range(d):
        own = left if j < left else right
        k = j + 1 if j < left else j + 1 - left
        siblings = sides if j < left else sides + pairs_of(left)
        empty = sides + pairs_of(left) if j < left else sides
        other = right if j < left else left
        end = (own + 1) * own // 2
        alone = (
            scores[j]
            + scores[siblings + k * (k - 1) // 2]
            + scores[siblings + end + k]
            + scores[empty + other * (other + 1) // 2]
        )
        for g in range(max(n_heads, 1)):
            value = alone if n_heads == 0 else alone + scores[d + g] + scores[grand + j * n_heads + g]
            if value > best:
                best = value
                child = j
                head = g
    labels[0] = head
    labels[1 + child] = 1
    return best


@njit(cache=True, nogil=True, borrows=True)
def best_modifiers(scores, n_heads, left, right, one_child, tables, labels):
    """Write labels, the head and whether each modifier is on; returns their score. tables: (2, left or right + 2, heads)."""
    labels[:] = 0
    d = left + right
    if one_child and d > 0:
        return best_child(scores, n_heads, left, right, labels)
    to_left = d + n_heads
    to_right = to_left + pairs_of(left)
    grand = to_right + pairs_of(right)
    fill_side(scores, 0, to_left, grand, left, n_heads, tables[0])
    fill_side(scores, left, to_right, grand + left * n_heads, right, n_heads, tables[1])
    best = -np.inf
    for g in range(max(n_heads, 1)):
        value = tables[0, left + 1, g] + tables[1, right + 1, g]
        if n_heads > 0:
            value += scores[d + g]
        if value > best:
            best = value
            labels[0] = g
    follow_side(scores, to_left, left, labels[0], tables[0], labels[1 : 1 + left])
    follow_side(scores, to_right, right, labels[0], tables[1], labels[1 + left :])
    return best


@njit(cache=True, nogil=True, borrows=True)
def parts_of_side(chosen, arcs, siblings, grand, n_heads, head, out, k):
    """Write the parts of a side from place k on; returns the place behind them."""
    last = 0
    d = chosen.shape[0]
    for j in range(1, d + 2):
        if j > d or chosen[j - 1]:
            out[k] = siblings + j * (j - 1) // 2 + last
            k += 1
            last = j
            if j <= d:
                out[k] = arcs + j - 1
                k += 1
                if n_heads > 0:
                    out[k] = grand + (j - 1) * n_heads + head
                    k += 1
    return k


@njit(cache=True, nogil=True, borrows=True)
def modifier_parts(labels, n_heads, left, right, out, k):
    """Write the parts of one output from place k on; returns the place behind them."""
    d = left + right
    to_left = d + n_heads
    to_right = to_left + pairs_of(left)
    grand = to_right + pairs_of(right)
    if n_heads > 0:
        out[k] = d + labels[0]
        k += 1
    k = parts_of_side(labels[1 : 1 + left], 0, to_left, grand, n_heads, labels[0], out, k)
    return parts_of_side(labels[1 + left :], left, to_right, grand + left * n_heads, n_heads, labels[0], out, k)


@njit(cache=True, nogil=True)
def best_of_all(scores, offsets, sizes, tables, ends, labels):
    """best_modifiers of each of many words. False where a score is not finite."""
    if not all_finite(scores):
        return False
    for i in range(sizes.shape[0]):
        n_heads, left, right, one_child = sizes[i]
        own = scores[offsets[i] : offsets[i + 1]]
        best_modifiers(own, n_heads, left, right, one_child, tables, labels[ends[i] : ends[i + 1]])
    return True


@njit(cache=True, nogil=True)
def parts_of_all(labels, ends, sizes, out, part_ends):
    """The parts of many outputs, flat; part_ends[i + 1] is where those of output i end."""
    k = 0
    for i in range(sizes.shape[0]):
        n_heads, left, right, _ = sizes[i]
        k = modifier_parts(labels[ends[i] : ends[i + 1]], n_heads, left, right, out, k)
        part_ends[i + 1] = k
    return k
