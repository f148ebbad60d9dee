# mypy: ignore-errors
"""The compiled inner step of block-coordinate Frank-Wolfe, over sparse vectors of any task."""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def frank_wolfe_step(weights, point, dual_map, block, psi, factor, l_i, l_s, lam, out_idx, out_i, out_s):
    """One line search on block i and the update of w.

    weights: (v, the average's accumulator if it has a length, its coefficient). point: u, or of length 0 where w is linear in u.
    block: (indices, values) of u_i. The corner is u_s = factor * psi with the offset l_s.
    Returns (duality gap of the block, gamma, pairs of the new u_i), the new u_i in out_idx and out_i.
    """
    v, average, average_coef = weights
    ends, scale, low, high = dual_map
    w_idx, w_val = block
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
    while a < w_idx.shape[0] or b < psi_idx.shape[0]:
        if b >= psi_idx.shape[0] or (a < w_idx.shape[0] and w_idx[a] < psi_idx[b]):
            j = w_idx[a]
            x_i = w_val[a]
            x_s = 0.0
            a += 1
        elif a >= w_idx.shape[0] or psi_idx[b] < w_idx[a]:
            j = psi_idx[b]
            x_i = 0.0
            x_s = factor * psi_val[b]
            b += 1
        else:
            j = w_idx[a]
            x_i = w_val[a]
            x_s = factor * psi_val[b]
            a += 1
            b += 1
        while j >= end:
            k += 1
            end = ends[k]
            s = scale[k]
        out_idx[n] = j
        out_i[n] = x_i
        out_s[n] = x_s
        n += 1
        w_j = s * (point[j] - min(max(point[j], low[k]), high[k])) if bent else v[j]
        product += (x_s - x_i) * w_j
        square += (x_s - x_i) * (x_s - x_i) * s
    # lines 6-7: gap and optimal step size (Lacoste-Julien et al. 2013, alg. 4)
    gap = l_s - l_i - lam * product
    if gap <= 0.0:
        return gap, 0.0, n
    gamma = 1.0 if lam * square <= gap else gap / (lam * square)
    if square == np.inf:
        gamma = np.nan  # not a step of zero: the loop looks for weights that are no longer finite
    if bent and gamma < 1.0:
        gamma = root_of_slope(point, dual_map, out_idx[:n], out_i, out_s, l_s - l_i, lam, gap, gamma)
    m = 0
    k = 0
    for i in range(n):
        j = out_idx[i]
        while j >= ends[k]:
            k += 1
        change = gamma * (out_s[i] - out_i[i])
        if bent:
            point[j] += change
            change = scale[k] * (point[j] - min(max(point[j], low[k]), high[k])) - v[j]
        else:
            change = scale[k] * change
        v[j] += change
        if average.shape[0] > 0:
            average[j] += average_coef * change
        x = (1.0 - gamma) * out_i[i] + gamma * out_s[i]
        if x != 0.0:
            out_idx[m] = j
            out_i[m] = x
            m += 1
    return gap, gamma, m


@njit(cache=True, nogil=True)
def root_of_slope(point, dual_map, idx, x_i, x_s, rise, lam, gap, gamma):
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
            d = x_s[i] - x_i[i]
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
            for k in range(length[i]):
                new_idx[end + k] = idx[start[i] + k]
                new_val[end + k] = val[start[i] + k]
            new_start[i] = end
            end += room[i]
