# mypy: ignore-errors
"""The best path in a forest of labels, compiled. gains and must are those of `Gains`; labels is the output."""

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.oracles.mrf import NOTHING_LEFT, OK
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def best_path(gains, must, parents, ends, labels):
    """Of each run of `PathEnds` the path that gains most, the first of equal ones; returns whether none of them is forbidden."""
    n = labels.shape[0]
    left = must.sum()
    labels[:] = 0
    best, most, found = -np.inf, -1, -1
    for k in range(ends.shape[0] + 1):
        if k == ends.shape[0] or (k > 0 and ends[k] == n):
            if found < 0:
                return False
            while 0 <= found < n:
                labels[found] = 1
                found = parents[found]
            left -= most
            best, most, found = -np.inf, -1, -1
        if k < ends.shape[0]:
            total = 0.0
            seen = 0
            v = ends[k]
            while 0 <= v < n:
                total += gains[v]
                seen += must[v]
                v = parents[v]
            if total > -np.inf and (seen > most or (seen == most and total > best)):
                best, most, found = total, seen, ends[k]
    return left == 0


@njit(cache=True, nogil=True)
def best_paths(gains, must, parents, ends, labels, feasible):
    """`best_path` for each row."""
    for i in range(feasible.shape[0]):
        feasible[i] = best_path(gains[i], must[i], parents, ends, labels[i])


@njit(cache=True, nogil=True)
def best_path_at(scores, parents, ends, labels):
    """The best path at these scores of labels that are off and on; returns a status. Gains are reckoned as `Gains` does."""
    n = labels.shape[0]
    gains = np.empty(n)
    must = np.empty(n, np.bool_)
    for v in range(n):
        off = scores[2 * v]
        on = scores[2 * v + 1]
        must[v] = off <= 0.5 * FORBIDDEN
        gains[v] = (-np.inf if on <= 0.5 * FORBIDDEN else on) - (0.0 if must[v] else off)
    return OK if best_path(gains, must, parents, ends, labels) else NOTHING_LEFT
