# mypy: ignore-errors
"""Compiled steps of Wolfe's method for one active set: vertices come in, minor cycles drop them, the factor follows.

`parts` and `lengths` hold lists of parts in two halves of the same number of rows: the n active vertices stand in the first, with
`weights` and `factor` beside them (`_lockstep_kernels` says how the factor lies); in the second those that were active once,
oldest first: spares[0] of them.
"""

import numpy as np

from structpred.runtime.jit import njit

DEPENDENT = 1e-10  # below this share of its squared length a vertex's squared distance from the others' affine hull is zero
SAME = 1e-6  # a vertex whose counts are as near as this to a mixture's is that mixture


@njit(cache=True, nogil=True)
def solve_lower(factor, n, x):
    """R^-T x, in place."""
    for j in range(n):
        column = j * (j + 1) // 2
        left = x[j]
        for i in range(j):
            left -= factor[column + i] * x[i]
        x[j] = left / factor[column + j]


@njit(cache=True, nogil=True)
def solve_upper(factor, n, x):
    """R^-1 x, in place."""
    for j in range(n - 1, -1, -1):
        column = j * (j + 1) // 2
        x[j] /= factor[column + j]
        for i in range(j):
            x[i] -= factor[column + i] * x[j]


@njit(cache=True, nogil=True)
def drop_column(factor, n, k):
    """Change the factor, in place, to that of the matrix without row and column k.

    The rows after k take up what row k held of them, as Cholesky on the smaller matrix would: R'R + rest rest', by rotations.
    """
    rest = np.empty(n)
    for j in range(k + 1, n):
        column = j * (j + 1) // 2
        new = (j - 1) * j // 2
        rest[j - 1] = factor[column + k]
        for i in range(k):
            factor[new + i] = factor[column + i]
        for i in range(k + 1, j + 1):
            factor[new + i - 1] = factor[column + i]
    for i in range(k, n - 1):
        diagonal = i * (i + 1) // 2 + i
        here = factor[diagonal]
        size = np.hypot(here, rest[i])
        cos = here / size
        sin = rest[i] / size
        for j in range(i, n - 1):
            at = j * (j + 1) // 2 + i
            old = factor[at]
            factor[at] = cos * old + sin * rest[j]
            rest[j] = cos * rest[j] - sin * old


@njit(cache=True, nogil=True)
def products(parts, lengths, n, x, found):
    """found[k] = v_k . x for the active vertices."""
    for k in range(n):
        total = 0.0
        for j in range(lengths[k]):
            total += x[parts[k, j]]
        found[k] = total


@njit(cache=True, nogil=True)
def mixture(parts, lengths, weights, n, mu):
    """mu = sum_k weights[k] v_k."""
    mu[:] = 0.0
    for k in range(n):
        for j in range(lengths[k]):
            mu[parts[k, j]] += weights[k]


@njit(cache=True, nogil=True)
def towards(factor, n, dots, change, ones):
    """The change of the weights, of sum 0, that leads to the minimiser over the affine hull: (V^T D V) change = dots - tau 1.

    From the residual's products with the vertices, less their mean, so that nothing large cancels: each call also corrects the
    rounding of those before. Adding 1 1^T to the left changes nothing for a change of sum 0.
    """
    mean = 0.0
    for k in range(n):
        mean += dots[k]
    mean /= n
    for k in range(n):
        change[k] = dots[k] - mean
        ones[k] = 1.0
    for x in (change, ones):
        solve_lower(factor, n, x)
        solve_upper(factor, n, x)
    above = 0.0
    below = 0.0
    for k in range(n):
        above += change[k]
        below += ones[k]
    for k in range(n):
        change[k] -= above / below * ones[k]


@njit(cache=True, nogil=True)
def normalise(weights, n):
    """Make the weights sum to one."""
    total = 0.0
    for k in range(n):
        total += weights[k]
    for k in range(n):
        weights[k] /= total


@njit(cache=True, nogil=True)
def move_row(parts, lengths, source, new_parts, new_lengths, target):
    """Row source becomes row target of another table, or of the same one."""
    new_lengths[target] = lengths[source]
    new_parts[target, : lengths[source]] = parts[source, : lengths[source]]


@njit(cache=True, nogil=True)
def forget(parts, lengths, spares, j):
    """Vertex j of those that were active once goes; the ones behind it move up."""
    half = parts.shape[0] // 2
    spares[0] -= 1
    for k in range(half + j, half + spares[0]):
        move_row(parts, lengths, k + 1, parts, lengths, k)


@njit(cache=True, nogil=True)
def drop(parts, lengths, weights, factor, n, k, spares):
    """Make vertex k inactive; the ones behind it move up. It is kept among the spare ones, of which the oldest makes room."""
    half = parts.shape[0] // 2
    if spares[0] == half:
        forget(parts, lengths, spares, 0)
    move_row(parts, lengths, k, parts, lengths, half + spares[0])
    spares[0] += 1
    drop_column(factor, n, k)
    for j in range(k + 1, n):
        weights[j - 1] = weights[j]
        move_row(parts, lengths, j, parts, lengths, j - 1)


@njit(cache=True, nogil=True)
def minimise(parts, lengths, weights, factor, n, point, metric, mu, residual, room, spares):
    """Minor cycles until the affine minimiser lies in the hull; (the number that stay, whether the newest does).

    mu is the mixture of what stays, residual = point - metric * mu.
    """
    newest = True
    while True:
        mixture(parts, lengths, weights, n, mu)
        for p in range(mu.shape[0]):
            residual[p] = point[p] - metric[p] * mu[p]
        products(parts, lengths, n, residual, room[0])
        towards(factor, n, room[0], room[1], room[2])
        change = room[1]
        length = 1.0
        leaving = -1
        for k in range(n):
            if weights[k] + change[k] <= 0.0:
                reach = weights[k] / max(-change[k], 1e-300)
                if leaving < 0 or reach < length:
                    length = min(1.0, reach)
                    leaving = k
        for k in range(n):
            weights[k] = max(weights[k] + length * change[k], 0.0)
        if leaving < 0:
            normalise(weights, n)
            mixture(parts, lengths, weights, n, mu)
            for p in range(mu.shape[0]):
                residual[p] = point[p] - metric[p] * mu[p]
            return n, newest
        weights[leaving] = 0.0
        for k in range(n - 1, -1, -1):
            if weights[k] == 0.0:
                newest = newest and k != n - 1
                drop(parts, lengths, weights, factor, n, k, spares)
                n -= 1
        normalise(weights, n)


@njit(cache=True, nogil=True)
def add(parts, lengths, weights, factor, n, vertex, counts, metric, room):
    """Make the vertex active with weight zero (the first: one), as the last of n + 1; False if it depends on the others.

    counts: its part counts, dense. Where it depends, room[0] holds the coefficients that make it of the others.
    """
    column = room[0]
    square = 1.0
    for j in range(vertex.shape[0]):
        square += metric[vertex[j]] * counts[vertex[j]]
    for k in range(n):
        total = 1.0
        for j in range(lengths[k]):
            total += metric[parts[k, j]] * counts[parts[k, j]]
        column[k] = total
    solve_lower(factor, n, column)
    pivot = square
    for j in range(n):
        pivot -= column[j] * column[j]
    if pivot <= DEPENDENT * square and n > 0:
        solve_upper(factor, n, column)
        return False
    at = n * (n + 1) // 2
    factor[at : at + n] = column[:n]
    factor[at + n] = np.sqrt(pivot)
    weights[n] = 0.0 if n else 1.0
    lengths[n] = vertex.shape[0]
    parts[n, : vertex.shape[0]] = vertex
    return True


@njit(cache=True, nogil=True)
def exchange(parts, lengths, weights, factor, n, vertex, counts, metric, room, spares):
    """A vertex that the quadratic cannot tell from a mixture of the others, and that scores more, takes the place of one of them.

    Weight moves from the mixture to it until one of the mixture has none left. Only parts of metric 0 can tell the two apart:
    where nothing does, rounding brought the vertex, and nothing is done.
    """
    shares = room[0]
    apart = counts[: metric.shape[0]].copy()
    for k in range(n):
        for j in range(lengths[k]):
            apart[parts[k, j]] -= shares[k]
    if np.abs(apart).max() < SAME:
        return n, False
    step = np.inf
    leaving = -1
    for k in range(n):
        if shares[k] > 0.0 and weights[k] < step * shares[k]:
            step = weights[k] / shares[k]
            leaving = k
    if leaving < 0:
        return n, False
    for k in range(n):
        weights[k] = max(weights[k] - step * shares[k], 0.0)
    drop(parts, lengths, weights, factor, n, leaving, spares)
    n -= 1
    grown = add(parts, lengths, weights, factor, n, vertex, counts, metric, room)
    if grown:
        weights[n] = step if n else 1.0
        n += 1
    normalise(weights, n)
    return n, grown


@njit(cache=True, nogil=True)
def best_spare(parts, lengths, spares, mu, residual, tol):
    """The spare vertex that promises most, <residual, v - mu>; -1 where none promises more than rounding."""
    half = parts.shape[0] // 2
    here, size = 0.0, 0.0
    for p in range(mu.shape[0]):
        here += residual[p] * mu[p]
        size += abs(residual[p]) * mu[p]
    most, found = 0.0, -1
    for j in range(spares[0]):
        there, total = 0.0, size
        for at in range(lengths[half + j]):
            there += residual[parts[half + j, at]]
            total += abs(residual[parts[half + j, at]])
        if there - here > most and there - here > tol * max(1.0, total):
            most, found = there - here, j
    return found


@njit(cache=True, nogil=True)
def take_back(parts, lengths, weights, factor, n, point, metric, mu, residual, room, spares, counts, tol):
    """Major cycles over the spare vertices, which cost no oracle call, until none promises anything; returns n.

    counts: zeros, a number a part. A vertex that brings nothing ends them: what is left is rounding.
    """
    half = parts.shape[0] // 2
    for _ in range(2 * half):
        j = best_spare(parts, lengths, spares, mu, residual, tol)
        if j < 0 or n == half:
            break
        vertex = parts[half + j, : lengths[half + j]].copy()
        forget(parts, lengths, spares, j)
        for at in vertex:
            counts[at] += 1.0
        grown = add(parts, lengths, weights, factor, n, vertex, counts, metric, room)
        if grown:
            n += 1
        else:
            n, grown = exchange(parts, lengths, weights, factor, n, vertex, counts, metric, room, spares)
        n, kept = minimise(parts, lengths, weights, factor, n, point, metric, mu, residual, room, spares)
        for at in vertex:
            counts[at] = 0.0
        if not (grown and kept):
            break
    return n
