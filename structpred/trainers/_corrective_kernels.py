# mypy: ignore-errors
"""Compiled visits of fully corrective block-coordinate Frank-Wolfe, over the sparse corners of any task.

Slot k of block i is corner i * K + k of an arena; slot 0 is the truth, whose vector is zero. The Gram matrix of a block is the
lower triangle, row by row. The metric is known to `spread`, `clear`, `add` and `flush` alone: a scale for each group of weights,
and, where the first group are functions of a kernel (core/function_space.py), its matrix over all positions.
"""

import numpy as np

from structpred.core._sparse_kernels import dot
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def spread(corner, metric):
    """The metric's scratch becomes the scaled corner: its `dot` with another corner of its block is their inner product."""
    idx, val = corner
    scratch, ends, scale, gram, spans = metric
    k = 0
    for m in range(idx.shape[0]):
        j = idx[m]
        while j >= ends[k]:
            k += 1
        if k == 0 and gram.shape[0] > 0:
            t = j % gram.shape[0]
            for s in range(spans[t, 0], spans[t, 1]):
                scratch[j - t + s] += scale[0] * val[m] * gram[t, s]
        else:
            scratch[j] = scale[k] * val[m]


@njit(cache=True, nogil=True)
def clear(corner, metric):
    """The scratch becomes zero again."""
    scratch, ends, _, gram, spans = metric
    for j in corner[0]:
        if j < ends[0] and gram.shape[0] > 0:
            t = j % gram.shape[0]
            scratch[j - t + spans[t, 0] : j - t + spans[t, 1]] = 0.0
        else:
            scratch[j] = 0.0


@njit(cache=True, nogil=True)
def add(weights, corner, coef, metric):
    """w += coef times the scaled corner, with the average's accumulator, if there is one; functions change in `flush`."""
    v, u, _, scaled_mass, _ = weights
    idx, val = corner
    scratch, ends, scale, gram, _ = metric
    averaged = u.shape[0] > 0
    k = 0
    for m in range(idx.shape[0]):
        j = idx[m]
        while j >= ends[k]:
            k += 1
        change = coef * scale[k] * val[m]
        if k == 0 and gram.shape[0] > 0:
            scratch[j] += change
            continue
        v[j] += change
        if averaged:
            u[j] += scaled_mass[()] * change


@njit(cache=True, nogil=True)
def flush(weights, corner, metric):
    """The changes of functions that `add` has left in the scratch: a row of the matrix for each, whatever corners it is of."""
    v = weights[0]
    scratch, ends, _, gram, _ = metric
    step = np.empty(1, v.dtype)
    for j in corner[0]:
        if gram.shape[0] > 0 and j < ends[0] and scratch[j] != 0.0:
            t = j % gram.shape[0]
            step[0] = scratch[j]
            scratch[j] = 0.0
            c = step[0]
            row = v[j - t : j - t + gram.shape[0]]
            similar = gram[t]
            for s in range(gram.shape[0]):
                row[s] += c * similar[s]


@njit(cache=True, nogil=True)
def corner_of(arena, slot):
    """Its pairs, as views."""
    here = slice(arena[2][slot], arena[2][slot] + arena[3][slot])
    return arena[0][here], arena[1][here]


@njit(cache=True, nogil=True)
def entry(k, m):
    """Where the product of corners k and m is in the packed Gram matrix."""
    return k * (k + 1) // 2 + m if k >= m else m * (m + 1) // 2 + k


@njit(cache=True, nogil=True)
def visit(weights, metric, arena, blocks, i, piece, share, lam, rules):
    """One visit of block i with the oracle's corner: kept, all corners scored, corrective steps, w moved.

    weights: (v, the average's accumulator, mass and scaled mass, steps so far). metric: (zeros as long as v, which are zeros
    again at the end, ends and scale of each group, the matrix of a kernel and for each position those of its block; both empty
    where there are no functions). piece: (indices, values, offset) of the corner.
    rules: (the largest number of steps, the share of the gap at which they end, visits without weight after which a corner goes).
    Returns (gap of the block, whether it moved, pairs that the arena must have space for before the visit can be made; 0 where it
    was made).
    """
    counts, alpha, offset, idle, gram = blocks
    size = alpha.shape[1]
    first = i * size
    idx, val, level = piece
    c = counts[i]
    k = stored_as(arena, first, offset[i, :c], idx, val, level)
    if k == c:
        needed = idx.shape[0]
        light, second = -1, -1
        if c == size:
            light, second = lightest(alpha[i])
            if alpha[i, light] > 0.0:
                needed += arena[3][first + light] + arena[3][first + second]
        if arena[5][()] + needed > arena[6][()]:
            return 0.0, False, max(needed, 1)
        if c == size:
            if alpha[i, light] > 0.0:
                merge(arena, blocks, i, second, light)
            drop(arena, blocks, i, light)
            c -= 1
        append(arena, first + c, idx, val)
        alpha[i, c] = 0.0
        offset[i, c] = level
        idle[i, c] = 0
        counts[i] = c + 1
        products(arena, gram[i], first, c, metric)
    gap, moved = correct(weights, metric, arena, blocks, i, share, lam, rules)
    for k in range(counts[i] - 1, 0, -1):
        idle[i, k] = 0 if alpha[i, k] > 0.0 else idle[i, k] + 1
        if idle[i, k] > rules[2]:
            drop(arena, blocks, i, k)
    return gap, moved, 0


@njit(cache=True, nogil=True)
def cached_pass(weights, metric, arena, blocks, order, shares, lam, rules):
    """Visits of all blocks without the oracle. Returns (the sum of their gaps over remembered corners, whether one moved)."""
    total = 0.0
    any_moved = False
    for i in order:
        gap, moved = correct(weights, metric, arena, blocks, i, shares[i], lam, rules)
        total += gap
        any_moved |= moved
    return total, any_moved


@njit(cache=True, nogil=True)
def correct(weights, metric, arena, blocks, i, share, lam, rules):
    """Pairwise steps of block i among its corners, and w moved by what they changed. Returns (gap over the corners, moved)."""
    counts, alpha, offset, _, gram = blocks
    c = counts[i]
    first = i * alpha.shape[1]
    values = np.empty(c)  # by how much each output scores above the truth, with its loss
    for k in range(c):
        idx, val = corner_of(arena, first + k)
        values[k] = offset[i, k] - dot(weights[0], idx, val)
    before = alpha[i, :c].copy()
    gap = pairwise_steps(alpha[i, :c], values, gram[i], share / lam, rules)
    moved = False
    for k in range(c):
        change = alpha[i, k] - before[k]
        if change != 0.0:
            add(weights, corner_of(arena, first + k), share / lam * change, metric)
            moved |= arena[3][first + k] > 0
    for k in range(c):
        if alpha[i, k] != before[k]:
            flush(weights, corner_of(arena, first + k), metric)
    include(weights)
    return share * gap, moved


@njit(cache=True, nogil=True)
def include(weights):
    """The present weights enter the average, step number k with weight k."""
    _, u, mass, scaled_mass, steps = weights
    steps[()] += 1
    if u.shape[0] > 0:
        mass[()] += steps[()]
        scaled_mass[()] += steps[()]


@njit(cache=True, nogil=True)
def pairwise_steps(alpha, values, gram, factor, rules):
    """Mass moves from the worst corner that has some to the best one, by as much as the dual rises. Returns the gap before."""
    at_start = 0.0
    for n_step in range(rules[0] + 1):
        best = 0
        worst = -1
        mean = 0.0
        for k in range(values.shape[0]):
            mean += alpha[k] * values[k]
            if values[k] > values[best]:
                best = k
            if alpha[k] > 0.0 and (worst < 0 or values[k] < values[worst]):
                worst = k
        gap = values[best] - mean
        if n_step == 0:
            at_start = gap
        rise = values[best] - values[worst]
        if n_step == rules[0] or rise <= 0.0 or gap <= rules[1] * at_start:
            break
        bend = factor * (gram[entry(best, best)] + gram[entry(worst, worst)] - 2.0 * gram[entry(best, worst)])
        t = alpha[worst]
        if bend * t > rise:
            t = rise / bend
        if bend == np.inf:
            t = np.nan  # not a step of zero: the loop looks for weights that are no longer finite
        alpha[worst] -= t
        alpha[best] += t
        for k in range(values.shape[0]):
            values[k] -= factor * t * (gram[entry(k, best)] - gram[entry(k, worst)])
    return at_start


@njit(cache=True, nogil=True)
def stored_as(arena, first, offsets, idx, val, level):
    """The slot of the block that holds this corner already; the number of slots where none does."""
    for k in range(offsets.shape[0]):
        if offsets[k] == level and arena[3][first + k] == idx.shape[0]:
            own_idx, own_val = corner_of(arena, first + k)
            m = 0
            while m < idx.shape[0] and own_idx[m] == idx[m] and own_val[m] == val[m]:
                m += 1
            if m == idx.shape[0]:
                return k
    return offsets.shape[0]


@njit(cache=True, nogil=True)
def products(arena, gram, first, k, metric):
    """Row k of a Gram matrix, up to the diagonal."""
    scratch = metric[0]
    corner = corner_of(arena, first + k)
    spread(corner, metric)
    for m in range(k + 1):
        idx, val = corner_of(arena, first + m)
        gram[entry(k, m)] = dot(scratch, idx, val)
    clear(corner, metric)


@njit(cache=True, nogil=True)
def all_products(arena, blocks, metric):
    """The Gram matrices of all blocks, anew: the metric has changed."""
    counts, alpha, _, _, gram = blocks
    for i in range(counts.shape[0]):
        for k in range(1, counts[i]):
            products(arena, gram[i], i * alpha.shape[1], k, metric)


@njit(cache=True, nogil=True)
def append(arena, slot, idx, val):
    """A corner in the space after the last one, which must be large enough."""
    start = arena[5][()]
    n = idx.shape[0]
    arena[0][start : start + n] = idx
    arena[1][start : start + n] = val
    arena[2][slot] = start
    arena[3][slot] = n
    arena[4][slot] = n
    arena[5][()] = start + n


@njit(cache=True, nogil=True)
def lightest(alpha):
    """The slots with the least and the second least weight, the truth left out."""
    a = 1
    b = 2
    if alpha[b] < alpha[a]:
        a, b = b, a
    for k in range(3, alpha.shape[0]):
        if alpha[k] < alpha[a]:
            a, b = k, a
        elif alpha[k] < alpha[b]:
            b = k
    return a, b


@njit(cache=True, nogil=True)
def merge(arena, blocks, i, a, b):
    """Corner a becomes the weighted mean of a and b, with the weight of both: the same dual point. b is left without weight."""
    counts, alpha, offset, idle, gram = blocks
    first = i * alpha.shape[1]
    total = alpha[i, a] + alpha[i, b]
    x = alpha[i, a] / total
    y = alpha[i, b] / total
    for k in range(counts[i]):
        if k != a and k != b:
            gram[i, entry(a, k)] = x * gram[i, entry(a, k)] + y * gram[i, entry(b, k)]
    both = x * gram[i, entry(a, a)] + 2.0 * y * gram[i, entry(a, b)]
    gram[i, entry(a, a)] = x * both + y * y * gram[i, entry(b, b)]
    offset[i, a] = x * offset[i, a] + y * offset[i, b]
    alpha[i, a] = total
    alpha[i, b] = 0.0
    idle[i, a] = 0
    append_mean(arena, first + a, corner_of(arena, first + a), corner_of(arena, first + b), x, y)


@njit(cache=True, nogil=True)
def append_mean(arena, slot, one, other, x, y):
    """The sum x * one + y * other, in order, in the space after the last corner."""
    start = arena[5][()]
    n = start
    a = 0
    b = 0
    while a < one[0].shape[0] or b < other[0].shape[0]:
        takes_one = b == other[0].shape[0] or (a < one[0].shape[0] and one[0][a] <= other[0][b])
        takes_other = a == one[0].shape[0] or (b < other[0].shape[0] and other[0][b] <= one[0][a])
        total = 0.0
        if takes_one:
            arena[0][n] = one[0][a]
            total = x * one[1][a]
            a += 1
        if takes_other:
            arena[0][n] = other[0][b]
            total += y * other[1][b]
            b += 1
        arena[1][n] = total
        n += 1
    arena[2][slot] = start
    arena[3][slot] = n - start
    arena[4][slot] = n - start
    arena[5][()] = n


@njit(cache=True, nogil=True)
def drop(arena, blocks, i, k):
    """Forget corner k, which has no weight: the last one takes its slot."""
    counts, alpha, offset, idle, gram = blocks
    last = counts[i] - 1
    first = i * alpha.shape[1]
    if k != last:
        for m in range(last):
            if m != k:
                gram[i, entry(k, m)] = gram[i, entry(last, m)]
        gram[i, entry(k, k)] = gram[i, entry(last, last)]
        alpha[i, k] = alpha[i, last]
        offset[i, k] = offset[i, last]
        idle[i, k] = idle[i, last]
        for array in arena[2:5]:
            array[first + k] = array[first + last]
    alpha[i, last] = 0.0
    for array in arena[3:5]:
        array[first + last] = 0
    counts[i] = last


@njit(cache=True, nogil=True)
def add_corners(out, first, arena, coefs):
    """out += entries first..first + len(out) - 1 of the sum of coefs times the corners; indices rise within a corner."""
    end = first + out.shape[0]
    for slot in range(coefs.shape[0]):
        if coefs[slot] != 0.0:
            idx, val = corner_of(arena, slot)
            k = np.searchsorted(idx, first)
            while k < idx.shape[0] and idx[k] < end:
                out[idx[k] - first] += coefs[slot] * val[k]
                k += 1
