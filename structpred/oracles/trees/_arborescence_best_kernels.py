# mypy: ignore-errors
"""Compiled step from a best tree to the second best one (Camerini, Fratta & Maffioli 1980), O(n^2).

The contraction is run once more for a known best tree. Whenever the best arc into a node is the tree's own, the arc that could
stand in for it is sought: the best other one into the same node, from a head that does not descend from it. The stand-in that
costs least names the arc of the tree that the second best tree lacks; a search without that arc finds it.

A contracted node has several arcs from one head, of which its row keeps only the best one. The others are stand-ins too, so their
scores are recomputed: `shifts` holds, for each token, the sum of what was subtracted from the arcs into it on the way up.
"""

import numpy as np

from structpred.oracles.trees._arborescence_kernels import (
    ANY,
    ARC,
    FIRST,
    FORBIDDEN,
    PATH,
    PLACE,
    SINGLE,
    USABLE,
    contract,
    grow,
    parted,
)
from structpred.runtime.jit import njit

# more rows of `marks`
BEGIN = 5  # head -> its number in an order in which each head comes right before all that descend from it
COUNT = 6  # head -> how many descend from it, itself included
ENTRY = 7  # node -> the token at which the tree enters it

NONE = 0
UNCLEAR = -1


@njit(cache=True, nogil=True)
def number_heads(tree, n, marks):
    """Fill BEGIN and COUNT: b descends from a iff BEGIN[a] <= BEGIN[b] < BEGIN[a] + COUNT[a]. PATH and PLACE are overwritten."""
    marks[COUNT, : n + 1] = 1
    marks[PLACE, : n + 1] = 0  # children not done yet
    for m in range(n):
        marks[PLACE, tree[m]] += 1
    done = 0
    for m in range(1, n + 1):
        if marks[PLACE, m] == 0:
            marks[PATH, done] = m
            done += 1
    at = 0
    while at < done:  # from the leaves up
        h = tree[marks[PATH, at] - 1]
        marks[COUNT, h] += marks[COUNT, marks[PATH, at]]
        at += 1
        marks[PLACE, h] -= 1
        if h > 0 and marks[PLACE, h] == 0:
            marks[PATH, done] = h
            done += 1
    marks[BEGIN, 0] = 0
    marks[PLACE, 0] = 1  # the next free number below a head
    for at in range(n - 1, -1, -1):
        m = marks[PATH, at]
        h = tree[m - 1]
        marks[BEGIN, m] = marks[PLACE, h]
        marks[PLACE, h] += marks[COUNT, m]
        marks[PLACE, m] = marks[BEGIN, m] + 1


@njit(cache=True, nogil=True)
def best_into(row, skipped, own):
    """The first best head from `skipped` on, `own` left out: its score and the head, -1 where no arc is usable."""
    best = USABLE
    head = -1
    for u in range(skipped, len(row)):
        if u != own and row[u] > best:
            best = row[u]
            head = u
    return best, head


@njit(cache=True, nogil=True)
def stand_in(scores, row, shifts, n, skipped, here, entry, head, marks):
    """The score of the best arc into the node at position `here` that may replace head -> entry; USABLE where there is none."""
    first = marks[BEGIN, entry]
    last = first + marks[COUNT, entry]
    best = USABLE
    if head >= skipped:  # a single root's arc makes way for another root arc only
        for u in range(skipped, n + 1):
            below = first <= marks[BEGIN, u] < last
            if u != head and not below and marks[PLACE, u] != here and row[u] > best:
                best = row[u]
    for x in range(1, n + 1):
        if marks[PLACE, x] == here and x != entry:
            best = max(best, scores[(x - 1) * (n + 1) + head] - shifts[x])
    return best


@njit(cache=True, nogil=True)
def merge(values, shifts, n, marks, bottom, top):
    """Before positions bottom..top are contracted: bring `shifts` up to date; the token where the tree enters, or UNCLEAR."""
    entry = UNCLEAR
    for p in range(bottom, top + 1):
        node = marks[PATH, p]
        if values[1, p] == 0.0:  # its arc is not the tree's
            if entry != UNCLEAR:
                return UNCLEAR
            entry = marks[ENTRY, node]
    for x in range(1, n + 1):
        if marks[PLACE, x] >= bottom:
            shifts[x] += values[0, marks[PLACE, x]]
    return entry


@njit(cache=True, nogil=True)
def cheapest_swap(scores, n, single_root, tree, tolerance, rows, values, shifts, marks):
    """The token whose arc the second best tree lacks. tree: a best one; arcs whose scores differ by `tolerance` count as equal.

    NONE where there is no second tree, UNCLEAR where rounding hides how the contraction makes this one.
    """
    width = n + 1
    number_heads(tree, n, marks)
    for m in range(width):
        marks[ENTRY, m] = m
        marks[PLACE, m] = -1
        shifts[m] = 0.0
    marks[PLACE, 0] = 0
    marks[FIRST, 1] = 0
    skipped = 1 if single_root else 0
    least = -USABLE
    found = NONE
    last = n
    for start in range(1, width):
        if marks[PLACE, start] >= 0:
            continue
        depth = 1
        node = start
        marks[PATH, 1] = start
        marks[PLACE, start] = 1
        while True:
            row = scores[(node - 1) * width : node * width] if node <= n else rows[(node - width) * width : (node - n) * width]
            best, u = best_into(row, skipped, node if node <= n else -1)
            entry = marks[ENTRY, node]
            head = tree[entry - 1]
            score = scores[(entry - 1) * width + head] - shifts[entry]
            ours = u < 0 if head < skipped else score >= best - tolerance
            if ours:
                u = head
                cost = score - stand_in(scores, row, shifts, n, skipped, depth, entry, head, marks)
                if cost < least:
                    least = cost
                    found = entry
            if u < 0 or marks[PLACE, u] == depth:
                return UNCLEAR
            marks[ARC, node] = u
            values[0, depth] = row[u]
            values[1, depth] = 1.0 if ours else 0.0
            p = marks[PLACE, u]
            if p == 0:
                break
            if p < 0:
                depth += 1
                node = u
                marks[PATH, depth] = node
                marks[PLACE, node] = depth
            else:
                entry = merge(values, shifts, n, marks, p, depth)
                if entry == UNCLEAR:
                    return UNCLEAR
                last += 1
                contract(scores, rows, n, marks, last, p, depth)
                marks[ENTRY, last] = entry
                depth = p
                node = last
        for u in range(1, width):
            marks[PLACE, u] = min(marks[PLACE, u], 0)
    return found


@njit(cache=True, nogil=True)
def without(scores, n, single_root, tree, m, rows, marks, heads):
    """The best tree without the arc into token m of `tree`; False where there is none."""
    at = (m - 1) * (n + 1) + tree[m - 1]
    kept = scores[at]
    scores[at] = FORBIDDEN
    found = grow(scores, n, SINGLE if single_root else ANY, USABLE, rows, marks, heads)
    scores[at] = kept
    return found


@njit(cache=True, nogil=True)
def second_best(scores, n, single_root, tree, fixed, banned, tolerance, allowed, room, heads):
    """Write the second best tree of a set whose best is `tree`; returns a token whose arc it lacks, NONE where there is none.

    The set: trees with the arcs of `tree` into the tokens in `fixed`, and without the arcs in `banned`. allowed: room for scores.
    room: of tree_room(n).
    """
    width = n + 1
    allowed[:] = scores
    for m in range(n):
        if fixed[m]:
            for u in range(width):
                if u != tree[m]:
                    allowed[m * width + u] = FORBIDDEN
    for i in range(len(banned)):
        allowed[banned[i]] = FORBIDDEN
    marks, rows = parted(room, n)
    more = rows[n * width : n * width + 3 * width]  # behind the rows of contracted nodes
    values = more[: 2 * width].reshape(2, width)
    m = cheapest_swap(allowed, n, single_root, tree, tolerance, rows, values, more[2 * width :], marks)
    if m == NONE or (m > 0 and without(allowed, n, single_root, tree, m, rows, marks, heads)):
        return m
    best = -np.inf
    found = NONE
    for m in range(1, n + 1):  # rounding is in the way: try every arc
        if not fixed[m - 1] and without(allowed, n, single_root, tree, m, rows, marks, heads):
            total = 0.0
            for i in range(n):
                total += scores[i * width + heads[i]]
            if total > best:
                best = total
                found = m
    if found > 0:
        without(allowed, n, single_root, tree, found, rows, marks, heads)
    return found
