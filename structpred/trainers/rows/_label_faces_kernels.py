# mypy: ignore-errors
"""The maximum of the multiclass dual over the entries between their bounds, a linear system, by an active-set method."""

import numpy as np

from structpred.rows._column_kernels import cost_of
from structpred.rows._scalar_kernels import row_dot
from structpred.runtime.jit import njit

#: a system is solved with its diagonal larger by this share: a direction without curvature then leads to a bound
RIDGE = 1e-12
# how a search over a face ended: at the maximum, at a bound of an entry that others are measured against, without budget
SOLVED, REBASED, STOPPED = range(3)


@njit(cache=True, nogil=True)
def free_entries(upper, squares, mu, labels, sizes, own, picks, bases):
    """Of each row the positive entries but the largest one: row, label, and the label of the largest.

    Returns how many there are, or one more than there is room for.
    """
    found = 0
    for i in range(mu.shape[0]):
        if sizes[i] < 2 or upper[i] <= 0.0 or squares[i] <= 1e-100:
            continue
        base = labels[i, 0]
        for label in labels[i, : sizes[i]]:
            if mu[i, label] > mu[i, base]:
                base = label
        for label in labels[i, : sizes[i]]:
            if label != base and mu[i, label] > 0.0:
                if found == own.shape[0]:
                    return found + 1
                own[found], picks[found], bases[found] = i, label, base
                found += 1
    return found


@njit(cache=True, nogil=True)
def factor(rows, own, picks, bases, row, system):
    """system = U with U'U the curvature of the dual along e_pick - e_base of each entry's row. row: zeros, one per feature."""
    indptr, indices, values = rows
    n = own.shape[0]
    for k in range(n):
        start, stop, last, product = indptr[own[k]], indptr[own[k] + 1], -1, 0.0
        for q in range(start, stop):
            row[indices[q]] = values[q]
        for m in range(k, n):
            factors = (picks[k] == picks[m]) - (picks[k] == bases[m]) - (bases[k] == picks[m]) + (bases[k] == bases[m])
            if factors != 0 and own[m] != last:
                last = own[m]
                product = row_dot(indices, values, indptr[last], indptr[last + 1], row)
            system[k, m] = factors * product if factors != 0 else 0.0
        for q in range(start, stop):
            row[indices[q]] = 0.0
    least = np.empty(n)
    for k in range(n):
        least[k] = RIDGE * system[k, k]
        system[k, k] += least[k]
    for k in range(n):
        row = system[k, k:n]
        pivot = np.sqrt(max(row[0], least[k]))
        for m in range(row.shape[0]):
            row[m] /= pivot
        for j in range(1, row.shape[0]):
            share, source, target = row[j], row[j:], system[k + j, k + j : n]
            if share != 0.0:
                for m in range(source.shape[0]):
                    target[m] -= share * source[m]


@njit(cache=True, nogil=True)
def solve(system, n, x):
    """x = (U'U)^-1 x, for the first n entries."""
    for k in range(n):
        x[k] /= system[k, k]
        share, row, rest = x[k], system[k, k + 1 : n], x[k + 1 : n]
        for m in range(row.shape[0]):
            rest[m] -= share * row[m]
    for k in range(n - 1, -1, -1):
        row, rest = system[k, k + 1 : n], x[k + 1 : n]
        even, odd, last = 0.0, 0.0, row.shape[0] // 2
        for m in range(last):  # two sums, so that none waits for the other
            even += row[2 * m] * rest[2 * m]
            odd += row[2 * m + 1] * rest[2 * m + 1]
        if row.shape[0] > 2 * last:
            even += row[2 * last] * rest[2 * last]
        x[k] = (x[k] - even - odd) / system[k, k]


@njit(cache=True, nogil=True)
def without(system, n, gone):
    """U of the system without one of its n entries: its column goes, and rotations make the rest triangular again."""
    for k in range(n):
        row = system[k, max(gone, k - 1) : n]
        for m in range(row.shape[0] - 1):
            row[m] = row[m + 1]
    for k in range(gone, n - 1):
        upper, lower = system[k, k : n - 1], system[k + 1, k : n - 1]
        length = np.sqrt(upper[0] * upper[0] + lower[0] * lower[0])
        cosine, sine = upper[0] / length, lower[0] / length
        for m in range(upper.shape[0]):
            up, down = upper[m], lower[m]
            upper[m], lower[m] = cosine * up + sine * down, cosine * down - sine * up


@njit(cache=True, nogil=True)
def move(rows, upper, table, mu, own, picks, bases, change, step):
    """mu and the table after `step` times this change of upper_i mu_i."""
    indptr, indices, values = rows
    for k in range(change.shape[0]):
        i, pick, base, amount = own[k], picks[k], bases[k], step * change[k]
        mu[i, pick] += amount / upper[i]
        mu[i, base] -= amount / upper[i]
        for q in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            feature, part = np.uint32(indices[q]), amount * values[q]
            table[feature, pick] -= part
            table[feature, base] += part
    for k in range(change.shape[0]):  # rounding
        mu[own[k], picks[k]], mu[own[k], bases[k]] = max(mu[own[k], picks[k]], 0.0), max(mu[own[k], bases[k]], 0.0)


@njit(cache=True, nogil=True)
def longest(upper, mu, own, picks, bases, change):
    """The largest step <= 1 that keeps mu >= 0; the entry that ends it (else -1), and whether it is its base that does."""
    step, hit, of_base, down = 1.0, -1, False, 0.0
    for k in range(change.shape[0]):
        i = own[k]
        room = upper[i] * mu[i, picks[k]]
        if room + step * change[k] < 0.0:
            step, hit, of_base = -room / change[k], k, False
        down = change[k] + (down if k and own[k - 1] == i else 0.0)
        room = upper[i] * mu[i, bases[k]]
        if (k + 1 == change.shape[0] or own[k + 1] != i) and room - step * down < 0.0:
            step, hit, of_base = room / down, k, True
    return step, hit, of_base


@njit(cache=True, nogil=True)
def search(rows, truths, upper, costs, table, mu, own, picks, bases, system, budget):
    """Newton steps over the entries given, cut at the first bound, whose entry leaves; `budget` is what may be multiplied."""
    indptr, indices, values = rows
    n, full, slopes = own.shape[0], 0, np.empty(own.shape[0])
    while n and full < 2:  # the second full step takes away what the ridge left
        if budget <= 0:
            return STOPPED, budget
        for k in range(n):
            i, pick, base = own[k], picks[k], bases[k]
            slope = cost_of(costs, truths[i], pick) - cost_of(costs, truths[i], base)
            for q in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                feature = np.uint32(indices[q])
                slope += values[q] * (table[feature, pick] - table[feature, base])
            slopes[k] = slope
        solve(system, n, slopes)
        step, hit, of_base = longest(upper, mu, own[:n], picks, bases, slopes[:n])
        move(rows, upper, table, mu, own, picks, bases, slopes[:n], step)
        budget -= 3 * n * n
        full = full + 1 if hit < 0 else 0
        if of_base:
            mu[own[hit], bases[hit]] = 0.0
            return REBASED, budget
        if hit >= 0:
            mu[own[hit], picks[hit]] = 0.0
            without(system, n, hit)
            n -= 1
            for k in range(hit, n):
                own[k], picks[k], bases[k] = own[k + 1], picks[k + 1], bases[k + 1]
    return SOLVED, budget


@njit(cache=True, nogil=True)
def solve_face(rows, truths, squares, upper, costs, table, mu, labels, sizes, room, budget):
    """mu and the table go to the maximum of the dual over all mu >= 0 that are zero where it is now, if at most `room` entries
    are free and `budget` products suffice; else the dual rises, or nothing changes. Returns whether it is the maximum, and what
    is left of the budget.

    The dual never falls: with U'U a little larger than its curvature, a step <= 1 stops short of the maximum along its line.
    """
    own, picks, bases = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    while budget > 0:
        n = free_entries(upper, squares, mu, labels, sizes, own, picks, bases)
        if n > room:
            return False, budget
        system = np.empty((n, n))
        factor(rows, own[:n], picks, bases, np.zeros(table.shape[0]), system)
        budget -= n * n * (n + 30) // 6
        end, budget = search(rows, truths, upper, costs, table, mu, own[:n], picks, bases, system, budget)
        if end != REBASED:
            return end == SOLVED, budget
    return False, budget
