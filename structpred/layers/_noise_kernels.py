# mypy: ignore-errors
"""Counter-based noise: each number is a function of (seed, step, id, sample, part), so nothing is stored and no order matters.

A stream is keyed by mixing seed, step, id and sample one after the other; its numbers are those of SplitMix64 (Steele, Lea &
Flood 2014, the mixer of Stafford). Normals are the inverse distribution function at a uniform number (Wichura 1988, AS 241,
PPND16: relative error about 1e-16), so that -z belongs to 1 - u.

Then sums over noisy outputs: each instance is summed sample by sample, so it gets the same bits in any batch. Output j = k n + i
is that of sample k of instance i; `mask` is empty, or says which scores are fixed.
"""

import numpy as np

from structpred.runtime.jit import njit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S12 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(12)
_UNIT = 2.0**-52


@njit(cache=True, nogil=True, inline="always")
def _mixed(z):
    z = (z ^ (z >> _S30)) * _FIRST
    z = (z ^ (z >> _S27)) * _SECOND
    return z ^ (z >> _S31)


@njit(cache=True, nogil=True)
def stream_key(seed, step, name, sample):
    """The key of a stream: numbers that differ in one place alone never give the same one."""
    key = _mixed(np.uint64(seed) + _GOLDEN)
    key = _mixed((key ^ np.uint64(step)) + _GOLDEN)
    key = _mixed((key ^ np.uint64(name)) + _GOLDEN)
    return _mixed((key ^ np.uint64(sample)) + _GOLDEN)


@njit(cache=True, nogil=True, inline="always")
def _uniform(key, part):
    """In (0, 1), never 0 or 1: the middle of one of 2^52 intervals of the same length."""
    return (np.float64(np.int64(_mixed(key + np.uint64(part + 1) * _GOLDEN) >> _S12)) + 0.5) * _UNIT


@njit(cache=True, nogil=True)
def _tail(q):
    r = np.sqrt(-np.log(0.5 - np.abs(q)))
    if r <= 5.0:
        r -= 1.6
        top = (((((((7.74545014278341407640e-4 * r + 2.27238449892691845833e-2) * r + 2.41780725177450611770e-1) * r
                   + 1.27045825245236838258) * r + 3.64784832476320460504) * r + 5.76949722146069140550) * r
                + 4.63033784615654529590) * r + 1.42343711074968357734)  # fmt: skip
        low = (((((((1.05075007164441684324e-9 * r + 5.47593808499534494600e-4) * r + 1.51986665636164571966e-2) * r
                   + 1.48103976427480074590e-1) * r + 6.89767334985100004550e-1) * r + 1.67638483018380384940) * r
                + 2.05319162663775882187) * r + 1.0)  # fmt: skip
    else:
        r -= 5.0
        top = (((((((2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r + 1.24266094738807843860e-3) * r
                   + 2.65321895265761230930e-2) * r + 2.96560571828504891230e-1) * r + 1.78482653991729133580) * r
                + 5.46378491116411436990) * r + 6.65790464350110377720)  # fmt: skip
        low = (((((((2.04426310338993978564e-15 * r + 1.42151175831644588870e-7) * r + 1.84631831751005468180e-5) * r
                   + 7.86869131145613259100e-4) * r + 1.48753612908506148525e-2) * r + 1.36929880922735805310e-1) * r
                + 5.99832206555887937690e-1) * r + 1.0)  # fmt: skip
    found = top / low
    return -found if q < 0.0 else found


@njit(cache=True, nogil=True, inline="always")
def _central(q):
    r = 0.180625 - q * q
    top = (((((((2.5090809287301226727e3 * r + 3.3430575583588128105e4) * r + 6.7265770927008700853e4) * r
               + 4.5921953931549871457e4) * r + 1.3731693765509461125e4) * r + 1.9715909503065514427e3) * r
            + 1.3314166789178437745e2) * r + 3.3871328727963666080)  # fmt: skip
    low = (((((((5.2264952788528545610e3 * r + 2.8729085735721942674e4) * r + 3.9307895800092710610e4) * r
               + 2.1213794301586595867e4) * r + 5.3941960214247511077e3) * r + 6.8718700749205790830e2) * r
            + 4.2313330701600911252e1) * r + 1.0)  # fmt: skip
    return np.divide(q * top, low)  # which asks not for zeros, so that several are divided at once


@njit(cache=True, nogil=True)
def normals_of(q, out):
    """out = the inverse distribution function of the standard normal distribution at q + 1/2, for q in (-1/2, 1/2).

    The first loop has no branches, so that the processor takes several numbers at once; 15 of 100 are made anew in the second.
    """
    for p in range(q.shape[0]):
        out[p] = _central(q[p])
    for p in range(q.shape[0]):
        if np.abs(q[p]) > 0.425:
            out[p] = _tail(q[p])


@njit(cache=True, nogil=True)
def normals(offsets, names, seed, step, antithetic, first, last, out):
    """out[k, offsets[i] + p] = the normal of (seed, step, names[i], k, p) for instances first..last-1.

    antithetic: samples 2 j and 2 j + 1 are z and -z.
    """
    most = 0
    for i in range(first, last):
        most = max(most, offsets[i + 1] - offsets[i])
    q = np.empty(most)
    for i in range(first, last):
        size = offsets[i + 1] - offsets[i]
        for k in range(out.shape[0]):
            own = out[k, offsets[i] : offsets[i + 1]]
            if antithetic and k % 2 == 1:
                own[:] = -out[k - 1, offsets[i] : offsets[i + 1]]
                continue
            key = stream_key(seed, step, names[i], k)
            for p in range(size):
                q[p] = _uniform(key, p) - 0.5
            normals_of(q[:size], own)


@njit(cache=True, nogil=True)
def noise_factors(mask, sigma, z):
    """z becomes exp(sigma z - sigma^2 / 2), whose mean is 1, and 1 where scores are fixed."""
    half = 0.5 * sigma * sigma
    for k in range(z.shape[0]):
        for p in range(z.shape[1]):
            z[k, p] = 1.0 if mask.shape[0] and mask[p] else np.exp(sigma * z[k, p] - half)


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
