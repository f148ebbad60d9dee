# mypy: ignore-errors
"""The compiled inner step of block-coordinate Frank-Wolfe, over sparse vectors of any task."""

import numpy as np

from structpred.runtime.jit import njit

NO_INDEX = np.iinfo(np.int64).max


@njit(cache=True, nogil=True)
def frank_wolfe_step(weights, point, dual_map, arena, i, psi, factor, rise, lam):
    """One line search on block i of an arena (all its arrays) and, if there is room for the new block, the update of w and it.

    weights: (v, the average's accumulator if it has a length, its coefficient). point: u, or of length 0 where w is linear in u.
    The corner is u_s = factor * psi; rise: by how much its offset exceeds the block's.
    Returns (duality gap of the block, gamma, pairs for which the arena has to be packed before `move_block`; 0 where all is done).
    """
    idx, val, start, length = arena[:4]
    here = slice(start[i], start[i] + length[i])
    gap, gamma, n = line_search(weights[0], point, dual_map, (idx[here], val[here]), psi, factor, rise, lam)
    if gamma == 0.0:
        return gap, gamma, 0
    if not make_room(arena, i, n):
        return gap, gamma, n
    move_block(weights, point, dual_map, arena, i, psi, factor, gamma, n)
    return gap, gamma, 0


@njit(cache=True, nogil=True)
def make_room(arena, i, n):
    """Whether n pairs have room in block i; where they had not, it is moved to the end, with some more room, as the limit allows.

    On their second visit blocks grow by a third, later by less: with half as much again at first, few blocks leave holes.
    """
    idx, val, start, length, room, taken, limit = arena
    if n <= room[i]:
        return True
    wanted = n + (n // 4 if room[i] > 0 else n // 2) + 4
    end = taken[()]
    if end + wanted > limit[()]:
        return False
    copy_pairs(idx, val, start[i], length[i], idx, val, end)
    start[i] = end
    room[i] = wanted
    taken[()] = end + wanted
    return True


@njit(cache=True, nogil=True)
def copy_pairs(idx, val, start, n, new_idx, new_val, to):
    """Copy n pairs, which may go to earlier places of the same arrays; in two loops, each of which is whole vector instructions."""
    for k in range(n):
        new_idx[to + k] = idx[start + k]
    for k in range(n):
        new_val[to + k] = val[start + k]


@njit(cache=True, nogil=True)
def line_search(v, point, dual_map, block, psi, factor, rise, lam):
    """(duality gap, step size, number of coordinates where block or corner are) of the direction to the corner."""
    ends, scale, low, high = dual_map
    idx, val = block
    psi_idx, psi_val = psi
    bent = point.shape[0] > 0
    n = 0
    a = 0
    b = 0
    k = 0
    end = ends[0]
    s = scale[0]
    product = 0.0  # <u_s - u_i, w>
    square = 0.0  # sum_j s (u_s - u_i)_j^2: how fast w moves along the direction, at most
    j_a = idx[0] if idx.shape[0] > 0 else NO_INDEX
    j_b = psi_idx[0] if psi_idx.shape[0] > 0 else NO_INDEX
    while j_a < NO_INDEX or j_b < NO_INDEX:
        j = min(j_a, j_b)
        d = 0.0
        if j_b == j:
            d = factor * psi_val[b]
            b += 1
            j_b = psi_idx[b] if b < psi_idx.shape[0] else NO_INDEX
        if j_a == j:
            d -= val[a]
            a += 1
            j_a = idx[a] if a < idx.shape[0] else NO_INDEX
        while j >= end:
            k += 1
            end = ends[k]
            s = scale[k]
        n += 1
        w_j = s * (point[j] - min(max(point[j], low[k]), high[k])) if bent else v[j]
        product += d * w_j
        square += d * d * s
    # lines 6-7: gap and optimal step size (Lacoste-Julien et al. 2013, alg. 4)
    gap = rise - lam * product
    if gap <= 0.0:
        return gap, 0.0, n
    gamma = 1.0 if lam * square <= gap else gap / (lam * square)
    if square == np.inf:
        gamma = np.nan  # not a step of zero: the loop looks for weights that are no longer finite
    if bent and gamma < 1.0:
        at, direction = difference(block, psi, factor, n)
        gamma = root_of_slope(point, dual_map, at, direction, rise, lam, gap, gamma)
    return gap, gamma, n


@njit(cache=True, nogil=True)
def difference(block, psi, factor, n):
    """factor * psi less the block, as n pairs in order."""
    idx, val = block
    psi_idx, psi_val = psi
    at = np.empty(n, np.int64)
    out = np.empty(n)
    a = 0
    b = 0
    for k in range(n):
        x = 0.0
        j_a = idx[a] if a < idx.shape[0] else NO_INDEX
        j_b = psi_idx[b] if b < psi_idx.shape[0] else NO_INDEX
        if j_b <= j_a:
            x = factor * psi_val[b]
            b += 1
        if j_a <= j_b:
            x -= val[a]
            a += 1
        at[k] = min(j_a, j_b)
        out[k] = x
    return at, out


@njit(cache=True, nogil=True)
def move_block(weights, point, dual_map, arena, i, psi, factor, gamma, n):
    """u_i = (1 - gamma) u_i + gamma factor psi, whose n pairs have room, and w with it: backwards, so nothing is overwritten.

    Coordinates do not depend on each other: their order is free.
    """
    v, average, average_coef = weights
    ends, scale, low, high = dual_map
    psi_idx, psi_val = psi
    idx = arena[0][arena[2][i] : arena[2][i] + arena[4][i]]
    val = arena[1][arena[2][i] : arena[2][i] + arena[4][i]]
    length = arena[3]
    bent = point.shape[0] > 0
    averaged = average.shape[0] > 0
    a = length[i] - 1
    b = psi_idx.shape[0] - 1
    k = ends.shape[0] - 1
    s = scale[k]
    zeros = 0
    for at in range(n - 1, -1, -1):
        j_a = idx[a] if a >= 0 else -1
        j_b = psi_idx[b] if b >= 0 else -1
        j = max(j_a, j_b)
        x_i = 0.0
        x_s = 0.0
        if j_a == j:
            x_i = val[a]
            a -= 1
        if j_b == j:
            x_s = factor * psi_val[b]
            b -= 1
        while k > 0 and j < ends[k - 1]:
            k -= 1
            s = scale[k]
        change = gamma * (x_s - x_i)
        if bent:
            point[j] += change
            change = s * (point[j] - min(max(point[j], low[k]), high[k])) - v[j]
        else:
            change = s * change
        v[j] += change
        if averaged:
            average[j] += average_coef * change
        x = (1.0 - gamma) * x_i + gamma * x_s
        zeros += x == 0.0
        idx[at] = j
        val[at] = x
    length[i] = n - zeros
    if zeros > 0:
        m = 0
        for at in range(n):
            if val[at] != 0.0:
                idx[m] = idx[at]
                val[m] = val[at]
                m += 1


@njit(cache=True, nogil=True)
def root_of_slope(point, dual_map, idx, direction, rise, lam, gap, gamma):
    """The step size in [gamma, 1] at which the dual is largest, for weights that are piecewise linear in the dual point.

    The slope of the dual, rise - lam <d, w(u + gamma d)>, falls and is piecewise linear; it is `gap` at 0 and not negative at the
    `gamma` given. Newton's method, safeguarded by bisection: exact once it is on the piece of the root.
    """
    ends, scale, low, high = dual_map
    below = gamma  # the slope is not negative there, and negative at `above`
    above = 1.0
    at = 1.0
    for n_round in range(1, 200):
        k = 0
        slope = rise
        bend = 0.0
        for i in range(idx.shape[0]):
            j = idx[i]
            while j >= ends[k]:
                k += 1
            d = direction[i]
            u = point[j] + at * d
            slope -= lam * d * scale[k] * (u - min(max(u, low[k]), high[k]))
            if u < low[k] or u > high[k] or low[k] == high[k]:
                bend += lam * d * d * scale[k]
        if slope >= 0.0:
            below = at
        else:
            above = at
        if abs(slope) <= 1e-13 * gap or below >= above:
            break
        following = at + slope / bend if bend > 0.0 else -1.0
        if not below <= following <= above or n_round % 4 == 0:
            following = 0.5 * (below + above)
        if following == at:
            break
        at = following
    return at


@njit(cache=True, nogil=True)
def add_blocks(out, first, idx, val, start, length):
    """out += entries first..first + len(out) - 1 of the sum of all blocks of an arena; indices rise within a block."""
    end = first + out.shape[0]
    for i in range(start.shape[0]):
        k = start[i]
        stop = k + length[i]
        high = stop
        while k < high:  # the first index that is not below `first`
            mid = (k + high) // 2
            if idx[mid] < first:
                k = mid + 1
            else:
                high = mid
        while k < stop and idx[k] < end:
            out[idx[k] - first] += val[k]
            k += 1


@njit(cache=True, nogil=True)
def pack_blocks(order, idx, val, start, length, room, new_idx, new_val, new_start):
    """Move the blocks that have room, in this order, next to each other; new_idx and new_val may be idx and val."""
    end = 0
    for i in order:
        if room[i] > 0:
            copy_pairs(idx, val, start[i], length[i], new_idx, new_val, end)
            new_start[i] = end
            end += room[i]
