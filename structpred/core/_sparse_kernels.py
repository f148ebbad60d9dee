# mypy: ignore-errors
"""Compiled helpers for sparse vectors: sorted, unique (index, value) pairs and additions into dense weights."""

import numpy as np

from structpred.runtime.jit import njit

ONE, SEVEN, EIGHTS, TOP = np.uint64(1), np.uint64(7), np.uint64(3), np.uint64(56)
BYTES = np.uint64(0x0101010101010101)


@njit(cache=True, nogil=True, borrows=True)
def coalesce(idx, val, n, idx2, val2):
    """Sort the first n pairs by index, add up equal indices in their order, drop zeros; returns the new length.

    A stable merge sort, so that equal indices are always added in the order they were written:
    the sum is then the same to the last bit whoever wrote the pairs.
    """
    width = 1
    for start in range(0, n, 8):  # short runs by insertion
        stop = min(start + 8, n)
        for j in range(start + 1, stop):
            key, x = idx[j], val[j]
            k = j - 1
            while k >= start and idx[k] > key:
                idx[k + 1] = idx[k]
                val[k + 1] = val[k]
                k -= 1
            idx[k + 1] = key
            val[k + 1] = x
    width = 8
    while width < n:
        for start in range(0, n, 2 * width):
            mid = min(start + width, n)
            stop = min(start + 2 * width, n)
            if mid == stop or idx[mid - 1] <= idx[mid]:
                continue  # what is written block by block is almost sorted
            a, b = start, mid
            for k in range(start, stop):
                if a < mid and (b >= stop or idx[a] <= idx[b]):
                    idx2[k] = idx[a]
                    val2[k] = val[a]
                    a += 1
                else:
                    idx2[k] = idx[b]
                    val2[k] = val[b]
                    b += 1
            for k in range(start, stop):
                idx[k] = idx2[k]
                val[k] = val2[k]
        width *= 2
    m = 0
    k = 0
    while k < n:
        key = idx[k]
        total = val[k]
        k += 1
        while k < n and idx[k] == key:
            total += val[k]
            k += 1
        if total != 0.0:
            idx[m] = key
            val[m] = total
            m += 1
    return m


@njit(cache=True, nogil=True, borrows=True)
def without_zeros(idx, val):
    """Drop pairs with the value zero, in place; returns the new length."""
    none = True
    for k in range(val.shape[0]):
        none &= val[k] != 0.0
    if none:
        return idx.shape[0]
    m = 0
    for k in range(idx.shape[0]):
        if val[k] != 0.0:
            idx[m] = idx[k]
            val[m] = val[k]
            m += 1
    return m


@njit(cache=True, nogil=True)
def add_up(idx, val, dim):
    """The pairs sorted, equal ones added up in their order, as new arrays: cheaper than `coalesce` unless there are few.

    What is there is marked, eight indices a word, a byte each; so the place of an index is how many marks stand before it: those
    of earlier words, and the sum of the lower bytes of its own, which a product brings to the top byte.
    """
    marks = np.zeros(dim // 8 + 1, np.uint64)
    for k in range(idx.shape[0]):
        j = np.uint64(idx[k])
        marks[j >> EIGHTS] |= ONE << ((j & SEVEN) << EIGHTS)
    before = np.empty(marks.shape[0], np.int64)
    n = 0
    for at in range(marks.shape[0]):
        before[at] = n
        n += np.int64((marks[at] * BYTES) >> TOP)
    out_idx = np.empty(n, np.int64)
    out_val = np.zeros(n)
    for k in range(idx.shape[0]):
        j = np.uint64(idx[k])
        at = j >> EIGHTS
        lower = marks[at] & ((ONE << ((j & SEVEN) << EIGHTS)) - ONE)
        place = before[at] + np.int64((lower * BYTES) >> TOP)
        out_idx[place] = idx[k]
        out_val[place] += val[k]
    n = without_zeros(out_idx, out_val)
    return out_idx[:n], out_val[:n]


@njit(cache=True, nogil=True)
def in_order(idx, val, dim):
    """What `coalesce` gives for all pairs, whose indices are below dim, as new arrays, by whichever way is faster."""
    n = idx.shape[0]
    if n > 16 and n > dim // 64:
        return add_up(idx, val, dim)
    n = coalesce(idx, val, n, np.empty(n, np.int64), np.empty(n))
    return idx[:n], val[:n]


@njit(cache=True, nogil=True, borrows=True)
def add_into(v, idx, val, coef):
    """v[idx] += coef * val, the sums in float64."""
    for k in range(idx.shape[0]):
        v[idx[k]] += coef * val[k]


@njit(cache=True, nogil=True, borrows=True)
def add_into_both(v, u, idx, val, coef, coef_u):
    """v[idx] += coef * val and u[idx] += coef_u * val: the weights and the accumulator of their average."""
    for k in range(idx.shape[0]):
        j = idx[k]
        v[j] += coef * val[k]
        u[j] += coef_u * val[k]


@njit(cache=True, nogil=True, borrows=True)
def dot(v, idx, val):
    """The inner product of dense weights and a sparse vector, in float64."""
    total = 0.0
    for k in range(idx.shape[0]):
        total += v[idx[k]] * val[k]
    return total


@njit(cache=True, nogil=True, borrows=True)
def squared_norm(val):
    """The sum of squares, added in order."""
    total = 0.0
    for k in range(val.shape[0]):
        total += val[k] * val[k]
    return total


@njit(cache=True, nogil=True, borrows=True)
def weighted_square(weights, idx, val):
    """The sum of weights[idx] * val^2, added in order."""
    total = 0.0
    for k in range(idx.shape[0]):
        total += weights[idx[k]] * (val[k] * val[k])
    return total


@njit(cache=True, nogil=True)
def grouped_dot(v, ends, factors, idx, val):
    """The same for the weights factors[k] * v in group k, which is ends[k]:ends[k + 1]; indices ascend."""
    total = 0.0
    k = 0
    for a in range(idx.shape[0]):
        while idx[a] >= ends[k + 1]:
            k += 1
        total += v[idx[a]] * (factors[k] * val[a])
    return total


@njit(cache=True, nogil=True)
def dots_from(v, idx, val, starts, lengths):
    """The inner products of v and the sparse vectors that begin at starts[k] and have lengths[k] pairs."""
    out = np.empty(starts.shape[0])
    for k in range(starts.shape[0]):
        here = slice(starts[k], starts[k] + lengths[k])
        out[k] = dot(v, idx[here], val[here])
    return out


@njit(cache=True, nogil=True)
def add_each(v, idx, val, ends, coefs, low, high):
    """v += the sum of coefs[k] times the sparse vectors idx[ends[k]:ends[k + 1]], val, one after the other, at low..high-1."""
    for k in range(coefs.shape[0]):
        begin = first_from(idx, ends[k], ends[k + 1], low)
        end = first_from(idx, begin, ends[k + 1], high)
        add_into(v, idx[begin:end], val[begin:end], coefs[k])


@njit(cache=True, nogil=True, borrows=True)
def first_from(idx, begin, end, least):
    """The first of the ascending idx[begin:end] that is at least `least`, as a place in idx; `end` if none is."""
    if begin < end and idx[begin] >= least:
        return begin
    if begin < end and idx[end - 1] < least:
        return end
    while begin < end:
        middle = (begin + end) // 2
        if idx[middle] < least:
            begin = middle + 1
        else:
            end = middle
    return begin


@njit(cache=True, nogil=True)
def add_rows(out, rows, change):
    """out[rows[j]] += change[j]; no copy is made of either."""
    for j in range(rows.shape[0]):
        into, row = out[rows[j]], change[j]
        for k in range(row.shape[0]):
            into[k] += row[k]
