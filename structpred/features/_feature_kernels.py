# mypy: ignore-errors
"""Compiled scoring of feature rows. All sums are float64, whatever the weights' type."""

import numpy as np

from structpred.core._sparse_kernels import in_order
from structpred.runtime.jit import njit, prefetch


@njit(cache=True, nogil=True, borrows=True)
def score_rows(table, indices, values, indptr, start, size, out):
    """out[k] = sum of table[indices[j]] * values[j] over row start + k, a table row per feature, added in their order.

    Empty values say that all of them are one. Eight at a time, so that a row is read and written an eighth as often; by indices
    of the table, not by views of its rows, whose owners would be counted.
    """
    width = out.shape[1]
    if values.shape[0] == 0:
        return sum_rows(table, indices, indptr, start, size, out)
    for r in range(size):
        k = indptr[start + r]
        stop = indptr[start + r + 1]
        for label in range(width):
            out[r, label] = 0.0
        while k + 8 <= stop:
            f0, f1, f2, f3 = indices[k], indices[k + 1], indices[k + 2], indices[k + 3]
            f4, f5, f6, f7 = indices[k + 4], indices[k + 5], indices[k + 6], indices[k + 7]
            x0, x1, x2, x3 = (
                np.float64(values[k]),
                np.float64(values[k + 1]),
                np.float64(values[k + 2]),
                np.float64(values[k + 3]),
            )
            x4, x5 = np.float64(values[k + 4]), np.float64(values[k + 5])
            x6, x7 = np.float64(values[k + 6]), np.float64(values[k + 7])
            for label in range(width):
                total = out[r, label] + x0 * np.float64(table[f0, label])
                total += x1 * np.float64(table[f1, label])
                total += x2 * np.float64(table[f2, label])
                total += x3 * np.float64(table[f3, label])
                total += x4 * np.float64(table[f4, label])
                total += x5 * np.float64(table[f5, label])
                total += x6 * np.float64(table[f6, label])
                out[r, label] = total + x7 * np.float64(table[f7, label])
            k += 8
        while k + 2 <= stop:
            f0, f1 = indices[k], indices[k + 1]
            x0, x1 = np.float64(values[k]), np.float64(values[k + 1])
            for label in range(width):
                total = out[r, label] + x0 * np.float64(table[f0, label])
                out[r, label] = total + x1 * np.float64(table[f1, label])
            k += 2
        if k < stop:
            f0, x0 = indices[k], np.float64(values[k])
            for label in range(width):
                out[r, label] += x0 * np.float64(table[f0, label])


@njit(cache=True, nogil=True, borrows=True)
def sum_rows(table, indices, indptr, start, size, out):
    """`score_rows` where all values are one: the same bits without reading and multiplying them.

    The ends of the next row's rows of the table are fetched ahead: most are in no cache near.
    """
    width = out.shape[1]
    for r in range(size):
        k = indptr[start + r]
        stop = indptr[start + r + 1]
        for j in range(stop, indptr[start + r + 2] if r + 1 < size else stop):
            prefetch(table, indices[j], 0)
            prefetch(table, indices[j], width - 1)
        for label in range(width):
            out[r, label] = 0.0
        while k + 8 <= stop:
            f0, f1, f2, f3 = indices[k], indices[k + 1], indices[k + 2], indices[k + 3]
            f4, f5, f6, f7 = indices[k + 4], indices[k + 5], indices[k + 6], indices[k + 7]
            for label in range(width):
                total = out[r, label] + np.float64(table[f0, label])
                total += np.float64(table[f1, label])
                total += np.float64(table[f2, label])
                total += np.float64(table[f3, label])
                total += np.float64(table[f4, label])
                total += np.float64(table[f5, label])
                total += np.float64(table[f6, label])
                out[r, label] = total + np.float64(table[f7, label])
            k += 8
        while k + 2 <= stop:
            f0, f1 = indices[k], indices[k + 1]
            for label in range(width):
                total = out[r, label] + np.float64(table[f0, label])
                out[r, label] = total + np.float64(table[f1, label])
            k += 2
        if k < stop:
            f0 = indices[k]
            for label in range(width):
                out[r, label] += np.float64(table[f0, label])


@njit(cache=True, nogil=True, borrows=True)
def add_bounds(table, start_row, start, size, first, last, out):
    """Add the start and the stop row, which begin at start_row, where positions start..start+size-1 are first and last - 1."""
    for label in range(out.shape[1]):
        if start == first:
            out[0, label] += np.float64(table[start_row, label])
        if start + size == last:
            out[size - 1, label] += np.float64(table[start_row + 1, label])


@njit(cache=True, nogil=True, borrows=True)
def score_chain(table, indices, values, indptr, first, last, start_row, n_labels, room, out):
    """Emission scores of tokens first..last-1, then, with start_row >= 0, those of transitions, into out, flat.

    start_row < 0 means that there are no start and stop rows either. room: one row as wide as the table.
    """
    for t in range(first, last):
        score_rows(table, indices, values, indptr, t, 1, room)
        if start_row >= 0:
            add_bounds(table, start_row, t, 1, first, last, room)
        for label in range(n_labels):
            out[(t - first) * n_labels + label] = room[0, label]
    if start_row >= 0:
        n = (last - first) * n_labels
        for p in range(n_labels):
            for label in range(n_labels):
                out[n + p * n_labels + label] = table[start_row + 2 + p, label]


@njit(cache=True, nogil=True, borrows=True, forceinline=True, fastmath={"reassoc"})
def add_row(row, x, target):
    """target += x * row; returns by how much |target|^2 grew (the sum may be taken in any order, so that it vectorises)."""
    grown = 0.0
    for label in range(row.shape[0]):
        change = x * row[label]
        grown += change * (2.0 * target[label] + change)
        target[label] += change
    return grown


@njit(cache=True, nogil=True, borrows=True)
def number_locally(indices, indptr, offsets, seen_in, rank, local):
    """local[k] = which of its sequence's features indices[k] is, in order of appearance; returns the most in one sequence.

    For each feature: seen_in, -1 at first, and rank.
    """
    most = 0
    for i in range(offsets.shape[0] - 1):
        count = 0
        for k in range(indptr[offsets[i]], indptr[offsets[i + 1]]):
            f = indices[k]
            if seen_in[f] != i:
                seen_in[f] = i
                rank[f] = count
                count += 1
            local[k] = rank[f]
        most = max(most, count)
    return most


@njit(cache=True, nogil=True, borrows=True)
def spread_sequence(mu, coef, local, values, indptr, first, last, bounds, n_labels, row, table):
    """table += coef * Psi^T mu of one sequence; returns by how much its squared norm grew.

    local: the row of each feature, such as its number in the sequence. Rows from `bounds` on are start, stop and the transitions;
    bounds < 0 means there are none.
    """
    length = last - first
    total = 0.0
    for t in range(length):
        for label in range(n_labels):
            row[label] = coef * mu[t * n_labels + label]
        for k in range(indptr[first + t], indptr[first + t + 1]):
            total += add_row(row, np.float64(values[k]), table[local[k]])
        if bounds >= 0 and t == 0:
            total += add_row(row, 1.0, table[bounds])
        if bounds >= 0 and t == length - 1:
            total += add_row(row, 1.0, table[bounds + 1])
    if bounds >= 0:
        for p in range(n_labels):
            for label in range(n_labels):
                row[label] = coef * mu[(length + p) * n_labels + label]
            total += add_row(row, 1.0, table[bounds + 2 + p])
    return total


@njit(cache=True, nogil=True, borrows=True)
def add_sequences(mu, places, coefs, indices, values, indptr, offsets, start_row, n_labels, row, table):
    """table += sum over the sequences of coefs[i] * Psi_i^T mu[places[i]:places[i + 1]]."""
    for i in range(coefs.shape[0]):
        own = mu[places[i] : places[i + 1]]
        spread_sequence(own, coefs[i], indices, values, indptr, offsets[i], offsets[i + 1], start_row, n_labels, row, table)


@njit(cache=True, nogil=True, borrows=True)
def move_row(source, coef, target):
    """target += coef * source, and source becomes zero."""
    for label in range(source.shape[0]):
        target[label] += coef * source[label]
        source[label] = 0.0


@njit(cache=True, nogil=True, borrows=True)
def flush_sequence(table, local, indices, indptr, first, last, bounds, start_row, n_labels, coef, weights):
    """weights += coef * table on the rows that spread_sequence touched; these rows of table become zero again."""
    for k in range(indptr[first], indptr[last]):
        move_row(table[local[k]], coef, weights[indices[k]])
    if start_row >= 0:
        for p in range(2 + n_labels):
            move_row(table[bounds + p], coef, weights[start_row + p])


@njit(cache=True, nogil=True)
def combine_sequence(parts, counts, indices, values, indptr, first, last, start_row, width, n_labels, dim):
    """The joint features of part counts of one sequence, as sorted unique pairs."""
    idx, val = pairs_of_sequence(parts, counts, indices, values, indptr, first, last, start_row, width, n_labels)
    return in_order(idx, val, dim)


@njit(cache=True, nogil=True)
def pairs_of_sequence(parts, counts, indices, values, indptr, first, last, start_row, width, n_labels):
    """The joint features of part counts of one sequence: Psi^T mu as unsorted pairs.

    Parts below (last - first) * n_labels are position-label, the others label-label.
    """
    size = 0
    for part in parts:
        t = first + part // n_labels
        size += indptr[t + 1] - indptr[t] + 2 if t < last else 1
    idx = np.empty(size, np.int64)
    val = np.empty(size)
    n = 0
    n_emissions = (last - first) * n_labels
    for j in range(parts.shape[0]):
        part = parts[j]
        c = counts[j]
        if part < n_emissions:
            t = first + part // n_labels
            label = part % n_labels
            for k in range(indptr[t], indptr[t + 1]):
                idx[n] = np.int64(indices[k]) * width + label
                val[n] = c * np.float64(values[k])
                n += 1
            if start_row >= 0 and t == first:
                idx[n] = start_row * width + label
                val[n] = c
                n += 1
            if start_row >= 0 and t == last - 1:
                idx[n] = (start_row + 1) * width + label
                val[n] = c
                n += 1
        else:
            pair = part - n_emissions
            idx[n] = (start_row + 2 + pair // n_labels) * width + pair % n_labels
            val[n] = c
            n += 1
    return idx[:n], val[:n]


@njit(cache=True, nogil=True)
def score_parts(w, indices, values, indptr, first, last, out):
    """out[p] = row (first + p) of a CSR matrix times w."""
    for p in range(first, last):
        total = 0.0
        for k in range(indptr[p], indptr[p + 1]):
            total += np.float64(values[k]) * np.float64(w[indices[k]])
        out[p - first] = total


@njit(cache=True, nogil=True)
def combine_parts(parts, counts, indices, values, indptr, first, dim):
    """The sum of the rows first + parts[j] of a CSR matrix, times counts[j], as sorted unique pairs."""
    size = 0
    for j in range(parts.shape[0]):
        size += indptr[first + parts[j] + 1] - indptr[first + parts[j]]
    idx = np.empty(size, np.int64)
    val = np.empty(size)
    n = 0
    for j in range(parts.shape[0]):
        p = first + parts[j]
        for k in range(indptr[p], indptr[p + 1]):
            idx[n] = indices[k]
            val[n] = counts[j] * np.float64(values[k])
            n += 1
    return in_order(idx, val, dim)


@njit(cache=True, nogil=True)
def combine_each(parts, counts, ends, indices, values, indptr, offsets, dim, first, out_ends):
    """`combine_parts` for the instances from `first` on, flat; that of instance first + k begins at out_ends[k]."""
    n_instances = ends.shape[0] - 1
    size = 0
    for i in range(n_instances):
        for j in range(ends[i], ends[i + 1]):
            r = offsets[first + i] + parts[j]
            size += indptr[r + 1] - indptr[r]
    idx = np.empty(size, np.int64)
    val = np.empty(size)
    n = 0
    out_ends[0] = 0
    for i in range(n_instances):
        own = slice(ends[i], ends[i + 1])
        some, amounts = combine_parts(parts[own], counts[own], indices, values, indptr, offsets[first + i], dim)
        for k in range(some.shape[0]):
            idx[n] = some[k]
            val[n] = amounts[k]
            n += 1
        out_ends[i + 1] = n
    return idx[:n], val[:n]
