# mypy: ignore-errors
"""Compiled searches: the threshold of the squared, weighted l1 norm; roots of x + c x^e = y, also where c depends on all x."""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def threshold(point, weights, step):
    """The tau of argmin_z |z - point|^2 / 2 + step/2 (sum_i d_i |z_i|)^2, which is z_i = soft(point_i, d_i tau).

    weights: d >= 0, (n,), or (1,) for one that holds for all. tau is the root of  step sum_i d_i (|x_i| - d_i tau)_+ = tau,
    whose left side is convex: the root of any of its terms alone, T = S / (1 / step + A) with S = sum d_i |x_i| and
    A = sum d_i^2, is at most tau. So entries with |x_i| <= d_i T are zero. One pass keeps what is above the T of what has been
    kept. Then, in turn, what is not above the largest T so far is left out, and a random pivot splits the rest into entries that
    are known to be nonzero and others, or leaves out what is below: expected linear time, a few passes for most points.
    step > 0. NaN where the sums overflow.
    """
    sizes = np.empty(len(point))
    ratios = np.empty(1 if len(weights) == 1 else len(point))
    inverse = 1.0 / step
    n, s, a = _candidates(point, weights, inverse, sizes, ratios)
    if not (s < np.inf and a < np.inf):
        return np.nan
    seed = np.uint64(88172645463325252)
    base_s = 0.0  # the sums of the entries that are known to be nonzero
    base_a = 0.0
    best = 0.0  # the largest T so far
    while n > 0:
        before = n
        n, s, a = _above(sizes, ratios, n, best)
        tau = (base_s + s) / (inverse + base_a + a)
        if n == before and tau <= best:
            return tau
        best = max(best, tau)
        if n == 0:
            break
        seed ^= seed << np.uint64(13)
        seed ^= seed >> np.uint64(7)
        seed ^= seed << np.uint64(17)
        k = np.int64(seed % np.uint64(n))
        top = sizes[k]
        d = ratios[0 if len(ratios) == 1 else k]
        high, s, a = _split(sizes, ratios, n, k)
        s += base_s
        a += base_a
        tau = s / (inverse + a)
        best = max(best, tau)
        if top <= d * tau:
            n = high  # the pivot itself is then left out by the next pass
            continue
        base_s = s
        base_a = a
        for i in range(high, n):
            sizes[i - high] = sizes[i]
            if len(ratios) > 1:
                ratios[i - high] = ratios[i]
        n -= high
    return max(best, base_s / (inverse + base_a))  # best where rounding has left out the last entry


@njit(cache=True, nogil=True)
def _candidates(point, weights, inverse, sizes, ratios):
    """Fill in the entries that are above the T of those before them: (how many, S, A)."""
    n = 0
    s = 0.0
    a = 0.0
    best = 0.0
    d = weights[0]
    ratios[0] = d
    for i in range(len(point)):
        size = abs(point[i])
        if len(weights) > 1:
            d = weights[i]
        if size > d * best and d > 0.0:
            sizes[n] = size
            if len(weights) > 1:
                ratios[n] = d
            n += 1
            s += d * size
            a += d * d
            best = s / (inverse + a)
    return n, s, a


@njit(cache=True, nogil=True)
def _above(sizes, ratios, n, best):
    """Move what is above its share of `best` to the front: (how many, S, A)."""
    s = 0.0
    a = 0.0
    kept = 0
    d = ratios[0]
    for i in range(n):
        if len(ratios) > 1:
            d = ratios[i]
        if sizes[i] > d * best:
            sizes[kept] = sizes[i]
            if len(ratios) > 1:
                ratios[kept] = d
            kept += 1
            s += d * sizes[i]
            a += d * d
    return kept, s, a


@njit(cache=True, nogil=True)
def _split(sizes, ratios, n, k):
    """Move the entry k, and those that are not below it in proportion to their weights, to the front: (how many, S, A)."""
    s = 0.0
    a = 0.0
    high = 0
    d = ratios[0]
    pivot = sizes[k] / (ratios[k] if len(ratios) > 1 else d)
    for i in range(n):
        if len(ratios) > 1:
            d = ratios[i]
        size = sizes[i]
        if size >= d * pivot or i == k:
            s += d * size
            a += d * d
            sizes[i] = sizes[high]
            sizes[high] = size
            if len(ratios) > 1:
                ratios[i] = ratios[high]
                ratios[high] = d
            high += 1
    return high, s, a


@njit(cache=True, nogil=True)
def _log_root(log_y, log_c, e, t):
    """(log x, d log x / d log c) where x + c x^e = y, from the start t.

    In t = log x, log(x + c x^e) is convex with slopes between 1 and e: Newton's method never stops short of the root, but comes
    to its right side in one step and then goes left without passing it.
    """
    for _ in range(100):
        d = log_c + (e - 1.0) * t
        if d > 0.0:
            small = np.exp(-d)
            above = t + d + np.log1p(small) - log_y
            share = 1.0 / (1.0 + small)
        else:
            small = np.exp(d)
            above = t + np.log1p(small) - log_y
            share = small / (1.0 + small)
        move = above / (1.0 + (e - 1.0) * share)
        t -= move
        if abs(move) <= 1e-15 * max(1.0, abs(t)):
            break
    return t, -share / (1.0 + (e - 1.0) * share)


@njit(cache=True, nogil=True)
def _start(log_y, log_c, e):
    """Right of the root: both terms are at most y there, and one is y."""
    return min(log_y, (log_y - log_c) / e)


@njit(cache=True, nogil=True)
def roots(log_sizes, log_c, e):
    """The x > 0 with x + c x^e = y for each y."""
    out = np.empty(len(log_sizes))
    for k in range(len(out)):
        t, _ = _log_root(log_sizes[k], log_c, e, _start(log_sizes[k], log_c, e))
        out[k] = np.exp(t)
    return out


@njit(cache=True, nogil=True)
def _off(log_sizes, log_step, p, g, t):
    """(g - log(step |x|_p^(2-p)), its slope in g) for c = e^g; t: log x, from where the search starts and where it ended."""
    top = -np.inf
    slopes = np.empty(len(t))
    for k in range(len(t)):
        t[k], slopes[k] = _log_root(log_sizes[k], g, p - 1.0, t[k])
        top = max(top, t[k])
    total = 0.0
    slope = 0.0
    for k in range(len(t)):
        power = np.exp(p * (t[k] - top))
        total += power
        slope += power * slopes[k]
    return g - log_step - (2.0 - p) * (top + np.log(total) / p), 1.0 - (2.0 - p) * slope / total


@njit(cache=True, nogil=True)
def sizes_of_squared_norm(log_sizes, log_step, p):
    """The x > 0 with x + c x^(p-1) = y for each y, c = step |x|_p^(2-p).

    |x|_p <= |y|_p gives one end of a bracket for g = log c. What is left of g rises with a slope of at least 1, or 1 / (p - 1)
    for p > 2, which gives the other end. Newton's method, halving where it leaves the bracket.
    """
    n = len(log_sizes)
    top = log_sizes.max()
    total = 0.0
    for k in range(n):
        total += np.exp(p * (log_sizes[k] - top))
    g = log_step + (2.0 - p) * (top + np.log(total) / p)
    t = np.empty(n)
    for k in range(n):
        t[k] = _start(log_sizes[k], g, p - 1.0)
    off, slope = _off(log_sizes, log_step, p, g, t)
    other = g - off * max(1.0, p - 1.0)
    low = min(g, other)
    high = max(g, other)
    for _ in range(100):
        step = off / slope
        if abs(step) <= 4e-16 * max(1.0, abs(g)):
            break
        if off > 0.0:
            high = min(high, g)
        else:
            low = max(low, g)
        g -= step
        if not low <= g <= high:
            g = 0.5 * (low + high)
        off, slope = _off(log_sizes, log_step, p, g, t)
    return np.exp(t)
