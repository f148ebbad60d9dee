# mypy: ignore-errors
"""Compiled search for the multiplier of one linear equality over a box.

Everywhere a_i(lam) = clip(m_i + t_i lam, l_i, u_i) with t_i = s_i / d_i^2, and f(lam) = sum_i s_i a_i(lam) - total, which does
not fall as lam grows and is linear between kinks. Sums run in LANES parallel ones, so that several entries are added at a time.
"""

import numpy as np

from structpred.runtime.jit import njit

LANES = 32
PIVOTS = 9  # the kink search continues from the median of this number of kinks
TINY = 1e-300


@njit(cache=True, nogil=True)
def evaluate(m, s, t, low, high, stride, lam, lanes):
    """(sum s_i a_i, its slope, the size of the numbers that rounding is in proportion to), over every stride-th entry."""
    lanes[:] = 0.0
    n = m.shape[0] // stride
    whole = n - n % LANES if stride == 1 else 0
    for first in range(0, whole, LANES):
        for k in range(LANES):
            i = first + k
            x = m[i] + t[i] * lam
            a = low[i] if x < low[i] else x
            a = high[i] if a > high[i] else a
            product = s[i] * a
            lanes[0, k] += product
            lanes[1, k] += s[i] * t[i] if a == x else 0.0
            lanes[2, k] += abs(product) + (abs(s[i] * m[i]) if a == x else 0.0)
    for j in range(whole, n):
        i = j * stride
        x = m[i] + t[i] * lam
        a = low[i] if x < low[i] else x
        a = high[i] if a > high[i] else a
        lanes[0, 0] += s[i] * a
        lanes[1, 0] += s[i] * t[i] if a == x else 0.0
        lanes[2, 0] += abs(s[i] * a) + (abs(s[i] * m[i]) if a == x else 0.0)
    return lanes[0].sum(), lanes[1].sum(), lanes[2].sum()


@njit(cache=True, nogil=True)
def newton(m, s, t, low, high, total, stride, lam, max_iter, tol):
    """Newton's method within a shrinking bracket, until |f| is tol of its terms: (the best lam, |f| in proportion to them)."""
    lanes = np.empty((3, LANES))
    left, right, best, least = -np.inf, np.inf, lam, np.inf
    for _ in range(max_iter):
        value, slope, size = evaluate(m, s, t, low, high, stride, lam, lanes)
        f = value - total
        if abs(f) < least * (size + abs(total)) or f == 0.0:
            best, least = lam, abs(f) / max(size + abs(total), TINY)
        if least <= tol:
            break
        if f > 0.0:
            right = lam
        else:
            left = lam
        if not slope > 0.0:
            break
        lam = lam - f / slope
        if not left < lam < right:
            lam = 0.5 * (left + right)
        if not left < lam < right:
            break
    return best, least


@njit(cache=True, nogil=True)
def by_kinks(m, s, t, low, high, total):
    """The root by halving the kinks that are left: (lam, 0), or (where f comes nearest to 0, f) where it has no root."""
    n = m.shape[0]
    active, firsts, seconds = np.empty(n, np.int64), np.empty(n), np.empty(n)
    count = 0
    constant = -total
    slope = 0.0
    for i in range(n):
        if t[i] == 0.0:
            constant += s[i] * min(max(m[i], low[i]), high[i])
            continue
        one = (low[i] - m[i]) / t[i]
        two = (high[i] - m[i]) / t[i]
        active[count], firsts[count], seconds[count] = i, min(one, two), max(one, two)
        count += 1
    left, right = -np.inf, np.inf
    kinks = np.empty(2 * count)
    few = np.empty(PIVOTS)
    while True:
        kept = 0
        for k in range(count):
            i = active[k]
            if seconds[k] <= left:
                constant += s[i] * (high[i] if t[i] > 0.0 else low[i])
            elif firsts[k] >= right:
                constant += s[i] * (low[i] if t[i] > 0.0 else high[i])
            elif firsts[k] <= left and seconds[k] >= right:
                constant += s[i] * m[i]
                slope += s[i] * t[i]
            else:
                active[kept], firsts[kept], seconds[kept] = i, firsts[k], seconds[k]
                kept += 1
        count = kept
        n_kinks = 0
        for k in range(count):
            if left < firsts[k] < right:
                kinks[n_kinks] = firsts[k]
                n_kinks += 1
            if left < seconds[k] < right:
                kinks[n_kinks] = seconds[k]
                n_kinks += 1
        if n_kinks == 0:
            break
        for k in range(PIVOTS):
            few[k] = kinks[(n_kinks - 1) * k // (PIVOTS - 1)]
        pivot = np.sort(few)[PIVOTS // 2]
        f = constant + slope * pivot
        for k in range(count):
            i = active[k]
            f += s[i] * min(max(m[i] + t[i] * pivot, low[i]), high[i])
        if f == 0.0:
            return pivot, 0.0
        if f > 0.0:
            right = pivot
        else:
            left = pivot
    if slope > 0.0:
        return min(max(-constant / slope, left), right), 0.0
    if right == np.inf and left == -np.inf:
        return 0.0, constant
    return (left if left > -np.inf else right), constant


@njit(cache=True, nogil=True)
def prepare(m, s, d, low, high, t):
    """t = s / d^2; the first entry that is no box's, or -1."""
    for i in range(m.shape[0]):
        t[i] = s[i] / (d[i] * d[i]) if d[i] > 0.0 else np.nan
        fine = m[i] - m[i] == 0.0 and t[i] - t[i] == 0.0 and s[i] - s[i] == 0.0
        if not (fine and low[i] <= high[i] and low[i] < np.inf and high[i] > -np.inf):
            return i
    return -1


@njit(cache=True, nogil=True)
def fill(m, s, t, low, high, lam, out):
    """out = a(lam)."""
    for i in range(m.shape[0]):
        x = m[i] + t[i] * lam
        a = low[i] if x < low[i] else x
        out[i] = high[i] if a > high[i] else a
