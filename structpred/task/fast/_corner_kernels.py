# mypy: ignore-errors
"""A compiled store of corners: what fully corrective block-coordinate Frank-Wolfe does with the sparse corners of its blocks.

Slot k of block i is corner i * K + k of an arena, in the coordinates of a corner space; slot 0 is the truth, whose vector is 0.
The Gram matrix of a block is the lower triangle, row by row. The metric is a scale for each group of weights, and, where the
first group are functions of a kernel (task/function_space.py), its matrix over all positions: see `spread`, `clear`, `add`.
"""

import numpy as np

from structpred.core._sparse_kernels import in_order
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def spread(idx, val, metric):
    """The metric's scratch, zeros, becomes the scaled vector: an inner product with it is one by the metric.

    Indices may come more than once and in any order, here and in `add`; they are quickest in order.
    """
    scratch, ends, scale, gram, spans = metric
    k = 0
    for m in range(idx.shape[0]):
        j = idx[m]
        if k > 0 and j < ends[k - 1]:
            k = 0
        while j >= ends[k]:
            k += 1
        if k == 0 and gram.shape[0] > 0:
            t = j % gram.shape[0]
            for s in range(spans[t, 0], spans[t, 1]):
                scratch[j - t + s] += scale[0] * val[m] * gram[t, s]
        else:
            scratch[j] += scale[k] * val[m]


@njit(cache=True, nogil=True)
def clear(idx, metric):
    """The scratch becomes zero again."""
    scratch, ends, _, gram, spans = metric
    for j in idx:
        if j < ends[0] and gram.shape[0] > 0:
            t = j % gram.shape[0]
            scratch[j - t + spans[t, 0] : j - t + spans[t, 1]] = 0.0
        else:
            scratch[j] = 0.0


@njit(cache=True, nogil=True)
def add(weights, idx, val, coef, metric):
    """w += coef times the scaled vector, with the average's accumulator, if there is one.

    weights: (v, the average's accumulator, mass and scaled mass, steps so far).
    """
    v, u, _, scaled_mass, _ = weights
    _, ends, scale, gram, _ = metric
    averaged = u.shape[0] > 0
    functions = gram.shape[0] > 0
    step = np.empty(1, v.dtype)
    k = 0
    for m in range(idx.shape[0]):
        j = idx[m]
        if k > 0 and j < ends[k - 1]:
            k = 0
        while j >= ends[k]:
            k += 1
        change = coef * scale[k] * val[m]
        if k == 0 and functions:
            step[0] = change
            c = step[0]
            t = j % gram.shape[0]
            row = v[j - t : j - t + gram.shape[0]]
            similar = gram[t]
            for s in range(gram.shape[0]):
                row[s] += c * similar[s]
            continue
        v[j] += change
        if averaged:
            u[j] += scaled_mass[()] * change


@njit(cache=True, nogil=True)
def include(weights):
    """The present weights enter the average, step number k with weight k."""
    _, u, mass, scaled_mass, steps = weights
    steps[()] += 1
    if u.shape[0] > 0:
        mass[()] += steps[()]
        scaled_mass[()] += steps[()]


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
def place(arena, blocks, i, idx, val, level):
    """Keep a corner (idx, val) with the offset `level` in block i, which merges its two lightest where it is full.

    Returns (its slot, whether it is new, pairs that the arena must have space for before that can be done; 0 where it was done).
    """
    counts, alpha, offset, idle, _ = blocks
    size = alpha.shape[1]
    first = i * size
    c = counts[i]
    k = stored_as(arena, first, offset[i, :c], idx, val, level)
    if k < c:
        return k, False, 0
    needed = idx.shape[0]
    light, second = -1, -1
    if c == size:
        light, second = lightest(alpha[i])
        if alpha[i, light] > 0.0:
            needed += arena[3][first + light] + arena[3][first + second]
    if arena[5][()] + needed > arena[6][()]:
        return c, False, max(needed, 1)
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
    return c, True, 0


@njit(cache=True, nogil=True)
def correct(arena, blocks, i, dots, factor, rules, most_idle, size):
    """Pairwise steps of block i among its corners, at weights that have these inner products with them; factor: p_i / lam.

    rules: (the largest number of steps, the share of the gap at which they end). most_idle: visits without weight after which a
    corner goes; 0: none goes. size: how many coordinates the block has.
    Returns (the gap of H_i over the corners, the change of sum_k alpha_k corner_k as sorted pairs).
    """
    counts, alpha, offset, idle, gram = blocks
    c = counts[i]
    first = i * alpha.shape[1]
    values = offset[i, :c] - dots  # by how much each output scores above the truth, with its loss
    before = alpha[i, :c].copy()
    gap = pairwise_steps(alpha[i, :c], values, gram[i], factor, rules)
    at, changes = mixture(arena, first, alpha[i, :c] - before, size)
    if most_idle > 0:
        for k in range(c - 1, 0, -1):
            idle[i, k] = 0 if alpha[i, k] > 0.0 else idle[i, k] + 1
            if idle[i, k] > most_idle:
                drop(arena, blocks, i, k)
    return gap, at, changes


@njit(cache=True, nogil=True)
def mixture(arena, first, coefs, size):
    """sum_k coefs[k] times corner first + k, as sorted unique pairs; size: the number of coordinates."""
    n = 0
    for k in range(coefs.shape[0]):
        if coefs[k] != 0.0:
            n += arena[3][first + k]
    at = np.empty(n, np.int64)
    sums = np.empty(n)
    n = 0
    for k in range(coefs.shape[0]):
        if coefs[k] != 0.0:
            idx, val = corner_of(arena, first + k)
            for m in range(idx.shape[0]):
                at[n] = idx[m]
                sums[n] = coefs[k] * val[m]
                n += 1
    return in_order(at, sums, size)


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
def append(arena, slot, idx, val):
    """A corner in the space after the last one, which must be large enough."""
    start = arena[5][()]
    n = idx.shape[0]
    for k in range(n):
        arena[0][start + k] = idx[k]
    for k in range(n):
        arena[1][start + k] = val[k]
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
