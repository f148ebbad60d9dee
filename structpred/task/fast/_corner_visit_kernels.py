# mypy: ignore-errors
"""Whole visits of blocks of corners, the store of _corner_kernels.py: bodies for `family`, over three calls of feature maps.

They take `corpus`, the arrays that a feature map hands to its own calls.
"""

from structpred.task.fast._corner_kernels import add, clear, corner_of, correct, entry, include, place, spread

#: lift(w, i, parts, counts, corpus): the joint features of part counts of instance i, which ascend, as pairs in any order.
#: dots(w, i, arena, first_slot, n, corpus): the inner products of w with those of corners first_slot..first_slot + n - 1, of i.
#: size_of(i, corpus): the number of parts of instance i.
lift = dots = size_of = None


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


def cached_pass(weights, metric, arena, blocks, order, shares, lam, rules, corpus):
    """Visits of all blocks without the oracle. Returns (the sum of their gaps over remembered corners, whether w moved)."""
    total = 0.0
    any_moved = False
    for i in order:
        gap, moved = settle(weights, metric, arena, blocks, i, shares[i] / lam, rules, 0, corpus)
        total += shares[i] * gap
        any_moved |= moved
    return total, any_moved


VISITS = (multiply, settle, visit, cached_pass)
