# mypy: ignore-errors
"""The best paths in a forest of labels, compiled. Scores are of labels that are off and on; labels is the output."""

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.oracles.mrf import NOTHING_LEFT, OK
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def best_path(scores, parents, ends, labels):
    """Of each run of `PathEnds` the path that gains most, as `Gains` says, the first of equal ones; returns a status."""
    n = labels.shape[0]
    left = (scores[: 2 * n : 2] <= 0.5 * FORBIDDEN).sum()  # labels that must be on
    labels[:] = 0
    best, most, found = -np.inf, -1, -1
    for k in range(ends.shape[0] + 1):
        if k == ends.shape[0] or (k > 0 and ends[k] == n):
            if found < 0:
                return NOTHING_LEFT
            while 0 <= found < n:
                labels[found] = 1
                found = parents[found]
            left -= most
            best, most, found = -np.inf, -1, -1
        if k < ends.shape[0]:
            total, seen, v = 0.0, 0, ends[k]
            while 0 <= v < n:
                off, on = scores[2 * v], scores[2 * v + 1]
                must = off <= 0.5 * FORBIDDEN
                total += (-np.inf if on <= 0.5 * FORBIDDEN else on) - (0.0 if must else off)
                seen += must
                v = parents[v]
            if total > -np.inf and (seen > most or (seen == most and total > best)):
                best, most, found = total, seen, ends[k]
    return OK if left == 0 else NOTHING_LEFT


@njit(cache=True, nogil=True)
def best_paths(scores, parents, ends, labels, feasible):
    """`best_path` for each row."""
    for i in range(feasible.shape[0]):
        feasible[i] = best_path(scores[i], parents, ends, labels[i]) == OK
