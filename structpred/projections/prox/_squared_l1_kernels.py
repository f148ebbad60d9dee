# mypy: ignore-errors
"""Compiled search for the threshold of the squared, weighted l1 norm."""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def threshold(point, weights, step):
    """The tau of argmin_z |z - point|^2 / 2 + step/2 (sum_i d_i |z_i|)^2, which is z_i = soft(point_i, d_i tau).

    weights: d >= 0, (n,), or (1,) for one that holds for all. tau is the root of  step sum_i d_i (|x_i| - d_i tau)_+ = tau,
    whose left side is convex: the root of any of its terms alone, T = step S / (1 + step A) with S = sum d_i |x_i| and
    A = sum d_i^2, is at most tau. So entries with |x_i| <= d_i T are zero. One pass keeps what is above the T of what has been
    kept; random pivots then split the rest, each at the cost of what is left: expected linear time.
    """
    one = len(weights) == 1
    sizes = np.empty(len(point))
    ratios = np.empty(len(point) if not one else 1)
    n = 0
    s = 0.0
    a = 0.0
    tau = 0.0
    d = weights[0]
    for i in range(len(point)):
        size = abs(point[i])
        if not one:
            d = weights[i]
        if size > d * tau and d > 0.0:
            sizes[n] = size
            if not one:
                ratios[n] = d
            n += 1
            s += d * size
            a += d * d
            tau = step * s / (1.0 + step * a)
    seed = np.uint64(88172645463325252)
    base_s = 0.0  # the sums of the entries that are known to be nonzero
    base_a = 0.0
    best = 0.0  # the largest T so far
    while n > 0:
        seed ^= seed << np.uint64(13)
        seed ^= seed >> np.uint64(7)
        seed ^= seed << np.uint64(17)
        k = int(seed % np.uint64(n))
        top = sizes[k]
        weight = d if one else ratios[k]
        pivot = top / weight
        s = base_s
        a = base_a
        high = 0  # the entries from the pivot up come first
        for i in range(n):
            if not one:
                d = ratios[i]
            size = sizes[i]
            if size >= d * pivot or i == k:
                s += d * size
                a += d * d
                sizes[i] = sizes[high]
                sizes[high] = size
                if not one:
                    ratios[i] = ratios[high]
                    ratios[high] = d
                high += 1
        tau = step * s / (1.0 + step * a)
        best = max(best, tau)
        first = 0
        if top > weight * tau:
            base_s = s
            base_a = a
            first = high
        else:
            n = high
        kept = 0
        for i in range(first, n):
            if not one:
                d = ratios[i]
            size = sizes[i]
            if size > d * best:
                sizes[kept] = size
                if not one:
                    ratios[kept] = d
                kept += 1
        n = kept
    return step * base_s / (1.0 + step * base_a)
