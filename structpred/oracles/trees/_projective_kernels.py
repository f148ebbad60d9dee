# mypy: ignore-errors
"""Compiled search for the best projective tree (Eisner 1996), O(n^3) with inner loops over whole rows.

Positions 0..n, 0 the root. For a span i..j, i < j, of a table: OPEN_RIGHT, OPEN_LEFT the best with the arc i -> j or j -> i;
RIGHT, LEFT the best where i or j heads all that lies between; spans of one position count 0. With s the score of the arc,

    OPEN[i, j] = max_k RIGHT[i, k] + LEFT[k + 1, j] + s      RIGHT[i, j] = max_k OPEN_RIGHT[i, k] + RIGHT[k, j]
                                                             LEFT[i, j] = max_k LEFT[i, k] + OPEN_LEFT[k, j].

Rows are filled from the last to the first, from left to right: what is done for (i, k) is handed on to all (i, j), j > k, so
that every loop runs along rows of all tables. Splits are not stored: the way back looks for them again, O(n^2).
"""

import numpy as np

from structpred.oracles.trees._tree_kernels import all_finite
from structpred.runtime.jit import njit

RIGHT = 0
LEFT = 1
OPEN_RIGHT = 2
OPEN_LEFT = 3
WAITING = 4  # behind the tables: the stack of spans, whose positions any float64 holds


@njit(cache=True, nogil=True, borrows=True, forceinline=True)
def hand_on(row, first, more, by):
    """row = max(row, more + by), or = more + by the first time."""
    if first:
        for j in range(len(row)):
            row[j] = more[j] + by
    else:
        for j in range(len(row)):
            x = more[j] + by
            row[j] = x if x > row[j] else row[j]


@njit(cache=True, nogil=True, borrows=True, forceinline=True)
def fill_tables(scores, n, single_root, tables):
    """All spans of tokens; those that begin at the root too where it may have several children."""
    right = tables[RIGHT]
    left = tables[LEFT]
    open_right = tables[OPEN_RIGHT]
    open_left = tables[OPEN_LEFT]
    for i in range(n, 0 if single_root else -1, -1):
        right[i, i] = 0.0
        left[i, i] = 0.0
        if i < n:
            hand_on(open_right[i, i + 1 : n + 1], True, left[i + 1, i + 1 : n + 1], 0.0)
        for j in range(i + 1, n + 1):
            split = open_right[i, j]
            rightward = split + scores[(j - 1) * (n + 1) + i]
            open_right[i, j] = rightward
            first = j == i + 1
            if first or rightward > right[i, j]:
                right[i, j] = rightward
            if i > 0:
                leftward = split + scores[(i - 1) * (n + 1) + j]
                open_left[i, j] = leftward
                if first or leftward > left[i, j]:
                    left[i, j] = leftward
                hand_on(left[i, j + 1 : n + 1], first, open_left[j, j + 1 : n + 1], left[i, j])
            hand_on(right[i, j + 1 : n + 1], first, right[j, j + 1 : n + 1], rightward)
            if j < n:
                hand_on(open_right[i, j + 1 : n + 1], False, left[j + 1, j + 1 : n + 1], right[i, j])


@njit(cache=True, nogil=True, borrows=True, forceinline=True)
def push(waiting, depth, i, j, kind):
    """Put the span i..j on the stack, unless it is a single position; returns its new height."""
    if i == j:
        return depth
    waiting[0, depth] = i
    waiting[1, depth] = j
    waiting[2, depth] = kind
    return depth + 1


@njit(cache=True, nogil=True, borrows=True)
def best_heads(scores, single_root, tables, heads):
    """The heads of the best projective tree of len(heads) tokens; whether all scores are finite: else nothing is written.

    scores: (m - 1) * (n + 1) + h, flat. Ties go to the split that comes first. tables: of projective_scratch(n or more). Spans on
    the stack share no step between positions: n of them at most.
    """
    if not all_finite(scores):
        return False
    n = len(heads)
    fill_tables(scores, n, single_root != 0, tables)
    right = tables[RIGHT]
    left = tables[LEFT]
    open_right = tables[OPEN_RIGHT]
    open_left = tables[OPEN_LEFT]
    waiting = tables[WAITING]
    if single_root != 0:
        root = 1
        best = scores[0] + left[1, 1] + right[1, n]
        for r in range(2, n + 1):
            x = scores[(r - 1) * (n + 1)] + left[1, r] + right[r, n]
            if x > best:
                best = x
                root = r
        heads[root - 1] = 0
        depth = push(waiting, push(waiting, 0, 1, root, LEFT), root, n, RIGHT)
    else:
        depth = push(waiting, 0, 0, n, RIGHT)
    while depth > 0:
        depth -= 1
        i = np.int64(waiting[0, depth])
        j = np.int64(waiting[1, depth])
        if waiting[2, depth] == RIGHT:
            k = i + 1
            while k < j and open_right[i, k] + right[k, j] != right[i, j]:
                k += 1
            heads[k - 1] = i
            depth = push(waiting, depth, k, j, RIGHT)
            j = k
            value = open_right[i, j]
            arc = scores[(j - 1) * (n + 1) + i]
        else:
            k = i
            while k < j - 1 and left[i, k] + open_left[k, j] != left[i, j]:
                k += 1
            heads[k - 1] = j
            depth = push(waiting, depth, i, k, LEFT)
            i = k
            value = open_left[i, j]
            arc = scores[(i - 1) * (n + 1) + j]
        k = i
        while k < j - 1 and right[i, k] + left[k + 1, j] + arc != value:
            k += 1
        depth = push(waiting, push(waiting, depth, i, k, RIGHT), k + 1, j, LEFT)
    return True


@njit(cache=True, nogil=True, borrows=True)
def best_trees(scores, offsets, sizes, single_root, tables, heads):
    """best_heads of each of many instances; heads holds theirs one after the other. False where a score is not finite."""
    end = 0
    for i in range(len(sizes)):
        if not best_heads(scores[offsets[i] : offsets[i + 1]], single_root, tables, heads[end : end + sizes[i]]):
            return False
        end += sizes[i]
    return True
