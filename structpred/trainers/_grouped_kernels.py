# mypy: ignore-errors
"""Steps of weights with one factor a group: a step costs what it touches, and shrinking a group costs one product.

What goes together comes as one tuple: groups (group k is ends[k]:ends[k+1]; factors s; squares |v_k|^2; masses A of the average),
lists (touched coordinates: group k has counts[k] of them from starts[k] on, with room up to starts[k+1]; a count beyond the room
means that there are too many to list).
"""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def add_grouped(v, u, groups, lists, idx, val, coef):
    """theta += coef * (idx, val); indices ascend."""
    ends, factors, squares, masses = groups
    touched, starts, counts = lists
    averaged = u.shape[0] > 0
    k = -1
    for a in range(idx.shape[0]):
        j = idx[a]
        if k < 0 or j >= ends[k + 1]:
            k = np.searchsorted(ends, j, side="right") - 1
        old = np.float64(v[j])
        v[j] = old + coef / factors[k] * val[a]
        new = np.float64(v[j])
        if new == 0.0:
            v[j] = -0.0  # zero again, but listed: none is listed twice
        squares[k] += new * new - old * old
        if averaged:
            u[j] += masses[k] * (new - old)
        if old == 0.0 and not np.signbit(old):
            at = starts[k] + counts[k]
            counts[k] = min(counts[k], starts[k + 1] - starts[k]) + 1
            if at < starts[k + 1]:
                touched[at] = j


@njit(cache=True, nogil=True)
def scale_groups(v, u, groups, lists, ratios, least):
    """theta_k *= ratios[k] in all groups; a ratio of 0 empties a group; factors below `least` are multiplied into v."""
    factors = groups[1]
    for k in range(factors.shape[0]):
        if ratios[k] == 0.0:
            empty_group(v, u, groups, lists, k)
        else:
            factors[k] *= ratios[k]
            if factors[k] < least:
                fold_group(v, u, groups, lists, k)


@njit(cache=True, nogil=True)
def empty_group(v, u, groups, lists, k):
    """v_k = 0. What the average holds, masses[k] v - u, stays, with masses[k] = 0 from now on."""
    ends, factors, squares, masses = groups
    touched, starts, counts = lists
    listed = counts[k] <= starts[k + 1] - starts[k]
    for a in range(counts[k] if listed else ends[k + 1] - ends[k]):
        j = touched[starts[k] + a] if listed else ends[k] + a
        if u.shape[0] > 0:
            u[j] -= masses[k] * np.float64(v[j])
        v[j] = 0.0
    counts[k] = 0
    factors[k] = 1.0
    squares[k] = 0.0
    masses[k] = 0.0


@njit(cache=True, nogil=True)
def fold_group(v, u, groups, lists, k):
    """v_k *= s_k, then s_k = 1. What the average holds moves into u: a mass divided by s_k might be huge."""
    ends, factors, squares, masses = groups
    touched, starts, counts = lists
    listed = counts[k] <= starts[k + 1] - starts[k]
    for a in range(counts[k] if listed else ends[k + 1] - ends[k]):
        j = touched[starts[k] + a] if listed else ends[k] + a
        if u.shape[0] > 0:
            u[j] -= masses[k] * np.float64(v[j])
        v[j] *= factors[k]
    squares[k] *= factors[k] * factors[k]
    factors[k] = 1.0
    masses[k] = 0.0


@njit(cache=True, nogil=True)
def count_squares(v, ends, squares):
    """squares[k] = |v_k|^2."""
    for k in range(squares.shape[0]):
        total = 0.0
        for j in range(ends[k], ends[k + 1]):
            total += np.float64(v[j]) * np.float64(v[j])
        squares[k] = total
