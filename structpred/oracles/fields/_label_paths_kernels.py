# mypy: ignore-errors
"""The best path in a forest of labels, compiled. gains, must and never are those of `Gains`; labels is the output."""

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.oracles.mrf import NOTHING_LEFT, OK
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def best_path(gains, must, never, parents, leaves, labels):
    """The path that gains most, the first of equal ones; returns whether there is one that is not forbidden."""
    needed = 0
    for v in range(must.shape[0]):
        needed += must[v]
    best = -np.inf
    end = np.int64(-1)
    for leaf in leaves:
        total = 0.0
        seen = 0
        v = leaf
        while v >= 0:
            total += -np.inf if never[v] else gains[v]
            seen += must[v]
            v = parents[v]
        if seen == needed and total > best:
            best = total
            end = leaf
    labels[:] = 0
    v = end
    while v >= 0:
        labels[v] = 1
        v = parents[v]
    return end >= 0


@njit(cache=True, nogil=True)
def best_paths(gains, must, never, parents, leaves, labels, feasible):
    """`best_path` for each row."""
    for i in range(feasible.shape[0]):
        feasible[i] = best_path(gains[i], must[i], never[i], parents, leaves, labels[i])


@njit(cache=True, nogil=True)
def best_path_at(scores, parents, leaves, labels):
    """The best path at these scores of labels that are off and on; returns a status. Gains are reckoned as `Gains` does."""
    n = labels.shape[0]
    gains = np.empty(n)
    must = np.empty(n, np.bool_)
    never = np.empty(n, np.bool_)
    for v in range(n):
        off = scores[2 * v]
        on = scores[2 * v + 1]
        must[v] = off <= 0.5 * FORBIDDEN
        never[v] = on <= 0.5 * FORBIDDEN
        gains[v] = (0.0 if never[v] else on) - (0.0 if must[v] else off)
    return OK if best_path(gains, must, never, parents, leaves, labels) else NOTHING_LEFT
