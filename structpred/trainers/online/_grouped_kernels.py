# mypy: ignore-errors
"""Steps of weights with one factor a group: a step costs what it touches, and shrinking a group costs one product.

What goes together comes as one tuple: groups (group k is ends[k]:ends[k+1]; factors s; squares |v_k|^2; masses A of the average),
lists (touched coordinates: group k has counts[k] of them from starts[k] on, with room up to starts[k+1]; a count beyond the room
means that there are too many to list).

Steps in kernel form: a coefficient changes, and a row of a Gram matrix is added to the values of a function. place: (where the
values of the kernel begin, how far in front of them the coefficients are, n positions); indices of a step are those of values.
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


@njit(cache=True, nogil=True)
def add_dense(v, u, mass, place, gram, idx, val, coef):
    """theta += coef * (idx, val). Returns (by how much |v|^2 grows, |(idx, val)|^2)."""
    first, back, n = place
    grown = 0.0
    own = 0.0
    step = np.empty(1, v.dtype)
    for e in range(idx.shape[0]):
        label = (idx[e] - first) // n
        t = (idx[e] - first) % n
        similar = gram[t]
        own += square_of(idx, val, e, first, n, similar)
        step[0] = coef * val[e]
        c = step[0]
        row = v[first + label * n : first + (label + 1) * n]
        grown += 2.0 * c * np.float64(row[t]) + np.float64(c) * c * similar[t]
        v[idx[e] - back] += c
        for s in range(n):
            row[s] += c * similar[s]
        if u.shape[0] > 0:
            u[idx[e] - back] += mass * c
            for s in range(n):
                u[first + label * n + s] += mass * (c * similar[s])
    return grown, own


@njit(cache=True, nogil=True)
def square_of(idx, val, e, first, n, similar):
    """What pair e adds to the squared norm of a step, beside the pairs before it."""
    label = (idx[e] - first) // n
    total = val[e] * val[e] * similar[(idx[e] - first) % n]
    for b in range(e):
        if (idx[b] - first) // n == label:
            total += 2.0 * val[e] * val[b] * similar[(idx[b] - first) % n]
    return total


@njit(cache=True, nogil=True)
def add_sparse(v, u, mass, place, gram, idx, val, coef):
    """As `add_dense`, for a CSR matrix (indptr, indices, data) with sorted indices."""
    first, back, n = place
    indptr, indices, data = gram
    grown = 0.0
    own = 0.0
    step = np.empty(1, v.dtype)
    full = np.zeros(n, data.dtype)
    for e in range(idx.shape[0]):
        t = (idx[e] - first) % n
        at = first + (idx[e] - first) // n * n
        here = slice(indptr[t], indptr[t + 1])
        near = indices[here]
        similar = data[here]
        for p in range(near.shape[0]):
            full[near[p]] = similar[p]
        own += square_of(idx, val, e, first, n, full)
        step[0] = coef * val[e]
        c = step[0]
        grown += 2.0 * c * np.float64(v[at + t]) + np.float64(c) * c * full[t]
        v[idx[e] - back] += c
        for p in range(near.shape[0]):
            v[at + near[p]] += c * similar[p]
            full[near[p]] = 0.0
        if u.shape[0] > 0:
            u[idx[e] - back] += mass * c
            for p in range(near.shape[0]):
                u[at + near[p]] += mass * (c * similar[p])
    return grown, own
