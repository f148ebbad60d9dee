# mypy: ignore-errors
"""Compiled sums over noisy outputs: each instance is summed sample by sample, so it gets the same bits in any batch.

Output j = k n + i is that of sample k of instance i; `mask` is empty, or says which scores are fixed.
"""

import numpy as np

from structpred.layers._noise_kernels import normals
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def add_noise(theta, mask, sigma, z):
    """z becomes theta + sigma z, and theta where scores are fixed."""
    for k in range(z.shape[0]):
        for p in range(theta.shape[0]):
            if mask.shape[0] and mask[p]:
                z[k, p] = theta[p]
            else:
                z[k, p] = theta[p] + sigma * z[k, p]


@njit(cache=True, nogil=True)
def noise_factors(mask, sigma, z):
    """z becomes exp(sigma z - sigma^2 / 2), whose mean is 1, and 1 where scores are fixed."""
    half = 0.5 * sigma * sigma
    for k in range(z.shape[0]):
        for p in range(z.shape[1]):
            z[k, p] = 1.0 if mask.shape[0] and mask[p] else np.exp(sigma * z[k, p] - half)


@njit(cache=True, nogil=True)
def count_flips(labels, ends, plain, plain_ends):
    """How many of the noisy outputs have other labels than the plain one of their instance."""
    n = plain_ends.shape[0] - 1
    flips = 0
    for j in range(ends.shape[0] - 1):
        i = j % n
        start, length = ends[j], ends[j + 1] - ends[j]
        same = length == plain_ends[i + 1] - plain_ends[i]
        if same:
            for t in range(length):
                if labels[start + t] != plain[plain_ends[i] + t]:
                    same = False
                    break
        if not same:
            flips += 1
    return flips


@njit(cache=True, nogil=True)
def mean_numbers(numbers, out):
    """out[i] = the mean of numbers[k n + i] over samples k."""
    n = out.shape[0]
    m = numbers.shape[0] // n if n else 0
    for i in range(n):
        total = 0.0
        for k in range(m):
            total += numbers[k * n + i]
        out[i] = total / m


@njit(cache=True, nogil=True)
def mean_counts(parts, part_ends, offsets, factors, out):
    """out += the mean of f_k mu(y_k) over the samples; factors is (samples, size), or empty for f = 1."""
    n = offsets.shape[0] - 1
    m = (part_ends.shape[0] - 1) // n if n else 0
    weight = 1.0 / m if m else 0.0
    for i in range(n):
        for k in range(m):
            j = k * n + i
            for at in range(part_ends[j], part_ends[j + 1]):
                place = offsets[i] + parts[at]
                out[place] += weight * factors[k, place] if factors.shape[0] else weight


@njit(cache=True, nogil=True)
def mean_dots(noisy, point, offsets, out):
    """out[i] = the mean of theta_k . point over the samples."""
    m = noisy.shape[0]
    for i in range(offsets.shape[0] - 1):
        total = 0.0
        for k in range(m):
            for at in range(offsets[i], offsets[i + 1]):
                total += noisy[k, at] * point[at]
        out[i] = total / m


@njit(cache=True, nogil=True)
def score_function(numbers, offsets, names, seed, step, antithetic, m, out):
    """out += the mean of z_k f_k, less a baseline: the score-function estimate for numbers f_k = numbers[k n + i].

    Pairs z, -z need no baseline. Otherwise each sample has the mean of the others, so the estimate stays unbiased; one sample
    alone has none. The normals are drawn again.
    """
    n = offsets.shape[0] - 1
    for i in range(n):
        size = offsets[i + 1] - offsets[i]
        z = np.empty((m, size))
        normals(np.array([0, size]), names[i : i + 1], seed, step, antithetic, 0, 1, z)
        mean = 0.0
        for k in range(m):
            mean += numbers[k * n + i] / m
        for k in range(m):
            weight = numbers[k * n + i] / m
            if not antithetic and m > 1:
                weight = (numbers[k * n + i] - mean) / (m - 1)
            for p in range(size):
                out[offsets[i] + p] += weight * z[k, p]
