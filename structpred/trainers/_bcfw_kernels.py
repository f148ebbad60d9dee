# mypy: ignore-errors
"""The compiled inner step of block-coordinate Frank-Wolfe, over sparse vectors of any task."""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def frank_wolfe_step(v, u, u_coef, w_idx, w_val, psi_idx, psi_val, factor, l_i, l_s, lam, out_idx, out_i, out_s):
    """One line search on block i and the update of w (v, and the average's accumulator u if it has a length).

    The corner is w_s = factor * psi with the offset l_s. Returns (duality gap of the block, gamma, pairs of the new w_i),
    the new w_i in out_idx and out_i.
    """
    n = 0
    a = 0
    b = 0
    product = 0.0  # <w_s - w_i, w>
    square = 0.0  # |w_s - w_i|^2
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
        out_idx[n] = j
        out_i[n] = x_i
        out_s[n] = x_s
        n += 1
        product += (x_s - x_i) * v[j]
        square += (x_s - x_i) * (x_s - x_i)
    # lines 6-7: gap and optimal step size (Lacoste-Julien et al. 2013, alg. 4)
    gap = l_s - l_i - lam * product
    if gap <= 0.0:
        return gap, 0.0, n
    gamma = 1.0 if lam * square <= gap else gap / (lam * square)
    if square == np.inf:
        gamma = np.nan  # not a step of zero: the loop looks for weights that are no longer finite
    m = 0
    for k in range(n):
        j = out_idx[k]
        change = gamma * (out_s[k] - out_i[k])
        v[j] += change
        if u.shape[0] > 0:
            u[j] += u_coef * change
        x = (1.0 - gamma) * out_i[k] + gamma * out_s[k]
        if x != 0.0:
            out_idx[m] = j
            out_i[m] = x
            m += 1
    return gap, gamma, m


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
