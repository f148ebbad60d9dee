# mypy: ignore-errors
"""Compiled local alignment of strings."""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def align(codes, ends, match, mismatch, gap, out):
    """The score of the best local alignment of each two strings (Smith and Waterman 1981), into out (n, n).

    codes: all strings one after the other; string i is codes[ends[i]:ends[i + 1]]. mismatch and gap cost.
    """
    n = len(ends) - 1
    row = np.empty(np.max(ends[1:] - ends[:-1]) + 1)
    for i in range(n):
        for j in range(i + 1):
            row[:] = 0.0
            best = 0.0
            for a in range(ends[i], ends[i + 1]):
                before, left = 0.0, 0.0
                for b in range(ends[j + 1] - ends[j]):
                    paired = before + (match if codes[a] == codes[ends[j] + b] else -mismatch)
                    before = row[b + 1]
                    left = max(0.0, paired, before - gap, left - gap)
                    row[b + 1] = left
                    best = max(best, left)
            out[i, j] = out[j, i] = best
