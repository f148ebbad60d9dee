# mypy: ignore-errors
"""The compiled inner step of block-coordinate Frank-Wolfe, over sparse vectors of any task."""

import numpy as np

from structpred.core._sparse_kernels import first_from, without_zeros
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def frank_wolfe_step(weights, point, dual_map, arena, i, psi, factor, rise, lam):
    """One line search on block i of an arena (all its arrays) and, if there is room for the new block, the update of w and it.

    weights: (v, the average's accumulator if it has a length, its coefficient). point: u, or of length 0 where w is linear in u.
    The corner is u_s = factor * psi; rise: by how much its offset exceeds the block's.
    Returns (duality gap of the block, gamma, pairs for which the arena has to be packed before this is done; 0 where it is).
    """
    idx, val, start, length = arena[:4]
    most = length[i] + psi[0].shape[0]
    at, own, corner = np.empty(most, np.int64), np.empty(most), np.empty(most)
    here = slice(start[i], start[i] + length[i])
    n = union(idx[here], val[here], psi[0], psi[1], factor, at, own, corner)
    both = at[:n], own[:n], corner[:n]
    gap, gamma = line_search(weights[0], point, dual_map, both, rise, lam)
    if gamma == 0.0:
        return gap, gamma, 0
    if not make_room(arena, i, n):
        return gap, gamma, n
    move_weights(weights, point, dual_map, both, gamma)
    move_block(arena, i, both, gamma)
    return gap, gamma, 0


@njit(cache=True, nogil=True, borrows=True)
def union(idx, val, psi_idx, psi_val, factor, at, own, corner):
    """The coordinates of a block or its corner, factor * psi, in order, with what both have there; returns their number."""
    a = 0
    b = 0
    n = 0
    while a < idx.shape[0] and b < psi_idx.shape[0]:
        j_a = idx[a]
        j_b = psi_idx[b]
        if j_a == j_b:
            at[n] = j_a
            own[n] = val[a]
            corner[n] = factor * psi_val[b]
            a += 1
            b += 1
        elif j_a < j_b:
            at[n] = j_a
            own[n] = val[a]
            corner[n] = 0.0
            a += 1
        else:
            at[n] = j_b
            own[n] = 0.0
            corner[n] = factor * psi_val[b]
            b += 1
        n += 1
    for k in range(a, idx.shape[0]):
        at[n] = idx[k]
        own[n] = val[k]
        corner[n] = 0.0
        n += 1
    for k in range(b, psi_idx.shape[0]):
        at[n] = psi_idx[k]
        own[n] = 0.0
        corner[n] = factor * psi_val[k]
        n += 1
    return n


@njit(cache=True, nogil=True, borrows=True)
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


@njit(cache=True, nogil=True, borrows=True)
def copy_pairs(idx, val, start, n, new_idx, new_val, to):
    """Copy n pairs, maybe to earlier places of the same arrays. Two loops: each is compiled to whole vector instructions."""
    for k in range(n):
        new_idx[to + k] = idx[start + k]
    for k in range(n):
        new_val[to + k] = val[start + k]


@njit(cache=True, nogil=True, borrows=True)
def group_from(ends, k, j):
    """The first group, from k on, that ends after coordinate j: in steps that double, then by halving. Groups may be many."""
    if j < ends[k]:
        return k
    low = k
    step = 1
    while low + step < ends.shape[0] and ends[low + step] <= j:
        low += step
        step *= 2
    high = min(low + step, ends.shape[0] - 1)
    while high - low > 1:
        mid = (low + high) // 2
        if ends[mid] <= j:
            low = mid
        else:
            high = mid
    return high


@njit(cache=True, nogil=True, borrows=True)
def line_search(v, point, dual_map, both, rise, lam):
    """(duality gap, step size) of the direction from a block to its corner, which `union` has merged."""
    ends, scale, low, high = dual_map
    at, own, corner = both
    bent = point.shape[0] > 0
    product = 0.0  # <u_s - u_i, w>
    square = 0.0  # sum_j s (u_s - u_i)_j^2: how fast w moves along the direction, at most
    m = 0
    k = 0
    while m < at.shape[0]:
        k = group_from(ends, k, at[m])
        s = scale[k]
        stop = first_from(at, m, at.shape[0], ends[k])
        while m < stop:
            d = corner[m] - own[m]
            j = at[m]
            w_j = s * (point[j] - min(max(point[j], low[k]), high[k])) if bent else v[j]
            product += d * w_j
            square += d * d * s
            m += 1
    # lines 6-7: gap and optimal step size (Lacoste-Julien et al. 2013, alg. 4)
    gap = rise - lam * product
    if gap <= 0.0:
        return gap, 0.0
    gamma = 1.0 if lam * square <= gap else gap / (lam * square)
    if square == np.inf:
        gamma = np.nan  # not a step of zero: the loop looks for weights that are no longer finite
    if bent and gamma < 1.0:
        gamma = root_of_slope(point, dual_map, both, rise, lam, gap, gamma)
    return gap, gamma


@njit(cache=True, nogil=True, borrows=True)
def move_weights(weights, point, dual_map, both, gamma):
    """The weights, their average and the dual point after a step of size gamma."""
    v, average, average_coef = weights
    ends, scale, low, high = dual_map
    at, own, corner = both
    bent = point.shape[0] > 0
    averaged = average.shape[0] > 0
    m = 0
    k = 0
    while m < at.shape[0]:
        k = group_from(ends, k, at[m])
        s = scale[k]
        stop = first_from(at, m, at.shape[0], ends[k])
        while m < stop:
            j = at[m]
            change = gamma * (corner[m] - own[m])
            if bent:
                point[j] += change
                change = s * (point[j] - min(max(point[j], low[k]), high[k])) - v[j]
            else:
                change = s * change
            v[j] += change
            if averaged:
                average[j] += average_coef * change
            m += 1


@njit(cache=True, nogil=True)
def move_point(point, v, dual_map, idx, val, coef, changes):
    """point += coef * (idx, val); changes: by how much the weights v that belong to it change there."""
    ends, scale, low, high = dual_map
    k = 0
    for m in range(idx.shape[0]):
        j = idx[m]
        k = group_from(ends, k, j)
        point[j] += coef * val[m]
        changes[m] = scale[k] * (point[j] - min(max(point[j], low[k]), high[k])) - v[j]


@njit(cache=True, nogil=True, borrows=True)
def move_block(arena, i, both, gamma):
    """u_i = (1 - gamma) u_i + gamma u_s, which has room, without zeros."""
    at, own, corner = both
    n = at.shape[0]
    here = slice(arena[2][i], arena[2][i] + n)
    idx, val = arena[0][here], arena[1][here]
    for m in range(n):
        idx[m] = at[m]
    for m in range(n):
        val[m] = (1.0 - gamma) * own[m] + gamma * corner[m]
    arena[3][i] = without_zeros(idx, val)


@njit(cache=True, nogil=True)
def mix_blocks(before, after, eta, mixed):
    """Blocks (1 - eta) before + eta after, one after the other in `mixed`, an empty arena that has the space."""
    idx, start, room = mixed[0], mixed[2], mixed[4]
    end = 0
    for i in range(start.shape[0]):
        old = slice(before[2][i], before[2][i] + before[3][i])
        new = slice(after[2][i], after[2][i] + after[3][i])
        start[i] = end
        room[i] = before[3][i] + after[3][i]
        here = slice(end, end + room[i])
        own, corner = np.empty(room[i]), np.empty(room[i])
        n = union(before[0][old], before[1][old], after[0][new], after[1][new], 1.0, idx[here], own, corner)
        move_block(mixed, i, (idx[here][:n], own[:n], corner[:n]), eta)
        end += room[i]
    mixed[5][()] = end


@njit(cache=True, nogil=True, borrows=True)
def root_of_slope(point, dual_map, both, rise, lam, gap, gamma):
    """The step size in [gamma, 1] at which the dual is largest, for weights that are piecewise linear in the dual point.

    The slope of the dual, rise - lam <d, w(u + gamma d)>, falls and is piecewise linear; it is `gap` at 0 and not negative at the
    `gamma` given. Newton's method, safeguarded by bisection: exact once it is on the piece of the root.
    """
    ends, scale, low, high = dual_map
    idx, own, corner = both
    below = gamma  # the slope is not negative there, and negative at `above`
    above = 1.0
    at = 1.0
    for n_round in range(1, 200):
        k = 0
        slope = rise
        bend = 0.0
        for i in range(idx.shape[0]):
            j = idx[i]
            k = group_from(ends, k, j)
            d = corner[i] - own[i]
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


@njit(cache=True, nogil=True, borrows=True)
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


@njit(cache=True, nogil=True, borrows=True)
def pack_blocks(order, idx, val, start, length, room, new_idx, new_val, new_start):
    """Move the blocks that have room, in this order, next to each other; new_idx and new_val may be idx and val."""
    end = 0
    for i in order:
        if room[i] > 0:
            copy_pairs(idx, val, start[i], length[i], new_idx, new_val, end)
            new_start[i] = end
            end += room[i]
