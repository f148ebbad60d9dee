# mypy: ignore-errors
"""Compiled lists of candidate arcs: `core.head_lists` says what they hold."""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def list_heads(allowed):
    """The arrays of `HeadLists` for a table of candidates."""
    n = allowed.shape[0]
    sizes, ends, copies = np.zeros((n + 1, 3), np.int64), np.zeros(n + 2, np.int64), np.zeros(n + 2, np.int64)
    rows = np.zeros((n, n + 1), np.int64)
    n_arcs = 0
    for m in range(1, n + 1):
        for h in range(n + 1):
            if allowed[m - 1, h]:
                sizes[m, 0] += 1
                sizes[h, 1 + (m > h)] += 1
                rows[m - 1, h] = n_arcs
                n_arcs += 1
    for h in range(n + 1):
        heads, left, right = sizes[h]
        ends[h + 1] = ends[h] + heads + left + right
        siblings = (left + 1) * (left + 2) // 2 + (right + 1) * (right + 2) // 2
        copies[h + 1] = copies[h] + (left + right) * (1 + heads) + heads + siblings
    words, parts, pairs = np.empty(ends[-1], np.int64), np.empty(copies[-1], np.int64), np.full((n_arcs, 2), -1)
    after = n * (n + 1)
    for h in range(n + 1):
        w, c = ends[h], copies[h]
        for step in (-1, 1, 0):
            other = h + step if step else 0
            while 0 <= other <= n:
                m, g = (other, h) if step else (h, other)
                if m > 0 and allowed[m - 1, g]:
                    words[w], parts[c] = other, (m - 1) * (n + 1) + g
                    row = rows[m - 1, g]
                    pairs[row, int(pairs[row, 0] >= 0)] = c
                    w += 1
                    c += 1
                other += step if step else 1
        tail = copies[h + 1] - c
        parts[c : c + tail] = np.arange(after, after + tail)
        after += tail
    return sizes, words, ends, parts, copies, pairs
