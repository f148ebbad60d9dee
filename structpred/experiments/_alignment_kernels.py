# mypy: ignore-errors
"""Compiled local alignment of strings."""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def align(codes, ends, match, mismatch, begin, extend, out):
    """The score of the best local alignment of each two strings (Smith and Waterman 1981; Gotoh 1982), into out (n, n).

    codes: all strings one after the other; string i is codes[ends[i]:ends[i + 1]]. mismatch costs; so does a gap: begin for its
    first letter, extend for each other one.
    """
    n = len(ends) - 1
    row, up = np.empty((2, np.max(ends[1:] - ends[:-1]) + 1))  # by position in the second string: best, best that ends in a gap
    for i in range(n):
        for j in range(i + 1):
            row[:], up[:] = 0.0, -np.inf
            best = 0.0
            for a in range(ends[i], ends[i + 1]):
                before, left, now = 0.0, -np.inf, 0.0
                for b in range(1, ends[j + 1] - ends[j] + 1):
                    paired = before + (match if codes[a] == codes[ends[j] + b - 1] else -mismatch)
                    before = row[b]
                    left, up[b] = max(now - begin, left - extend), max(before - begin, up[b] - extend)
                    row[b] = now = max(0.0, paired, left, up[b])
                    best = max(best, now)
            out[i, j] = out[j, i] = best
