# mypy: ignore-errors
"""Compiled searches: roots of x + c x^e = y, also where c depends on all x."""

import numpy as np

from structpred.runtime.jit import njit


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
