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
    end = ends[0]
    unscaled = 0.0
    for a in range(idx.shape[0]):
        j = idx[a]
        if j >= end:
            while j >= ends[k + 1]:
                k += 1
            end = ends[k + 1]
            unscaled = coef / factors[k]
        old = np.float64(v[j])
        v[j] = old + unscaled * val[a]
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
def scale_groups(v, u, groups, lists, norms, new, least):
    """theta_k *= new[k] / norms[k] in all groups: new norms; factors below `least` are multiplied into v."""
    factors, counts = groups[1], lists[2]
    for k in range(factors.shape[0]):
        ratio = new[k] / norms[k] if norms[k] > 0.0 else 0.0
        if ratio != 0.0:
            factors[k] *= ratio
            if factors[k] < least:
                multiply_out(v, u, groups, lists, k, factors[k])
        else:
            multiply_out(v, u, groups, lists, k, 0.0)
            counts[k] = 0


@njit(cache=True, nogil=True)
def multiply_out(v, u, groups, lists, k, factor):
    """v_k *= factor, then s_k = 1. What the average holds, masses[k] v - u, moves into u: a mass divided by s_k might be huge."""
    ends, factors, squares, masses = groups
    touched, starts, counts = lists
    listed = counts[k] <= starts[k + 1] - starts[k]
    mass = masses[k] if u.shape[0] > 0 else 0.0
    for a in range(counts[k] if listed else ends[k + 1] - ends[k]):
        j = touched[starts[k] + a] if listed else ends[k] + a
        if mass != 0.0:
            u[j] -= mass * np.float64(v[j])
        v[j] = v[j] * factor if factor > 0.0 else 0.0  # not -0.0: coordinates that are listed have that zero
    squares[k] *= factor * factor
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
