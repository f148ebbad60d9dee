# mypy: ignore-errors
"""What inference in pairwise MRFs shares: hard constraints and their consequences, and local search.

`allowed` is (n, K) bool: the states that a node may still have. first, other, edge: the links of `links_of`.
"""

import numpy as np

from structpred.oracles.mrf import NOT_FINITE, OK
from structpred.runtime.jit import njit

LOWEST = -0.5e30  # what is not above it is forbidden


@njit(cache=True, nogil=True)
def look(scores):
    """(status, whether anything is forbidden): NOT_FINITE where a score is NaN or infinite, or sums of scores would be."""
    limit = 1.7e308 / max(1, len(scores))  # sums of scores below it are finite, too
    finite = True
    forbids = False
    for score in scores:
        finite &= abs(score) < limit
        forbids |= score <= LOWEST
    return (OK if finite else NOT_FINITE), forbids


@njit(cache=True, nogil=True)
def propagate(scores, n, k, first, other, edge, allowed, queue, queued, waiting):
    """Take away the states without an allowed partner at some neighbour (arc consistency), from the `waiting` queued nodes on.

    False where a node is left without states; then the queue is left as it is, and `queued` is cleared.
    """
    at = 0
    while waiting > 0:
        i = queue[at]
        at = (at + 1) % n
        waiting -= 1
        queued[i] = False
        for p in range(first[i], first[i + 1]):
            j = other[p]
            table = n * k + edge[p] * k * k
            step_i, step_j = (k, 1) if i < j else (1, k)
            left = False
            lost = False
            for b in range(k):
                if not allowed[j, b]:
                    continue
                supported = False
                for a in range(k):
                    if allowed[i, a] and scores[table + a * step_i + b * step_j] > LOWEST:
                        supported = True
                        break
                if supported:
                    left = True
                else:
                    allowed[j, b] = False
                    lost = True
            if not left:
                queued[:] = False
                return False
            if lost and not queued[j]:
                queued[j] = True
                queue[(at + waiting) % n] = j
                waiting += 1
    return True


@njit(cache=True, nogil=True)
def allow(scores, n, k, first, other, edge, allowed):
    """Fill `allowed` from the scores of the nodes, then propagate. False where nothing is left."""
    queue = np.arange(n)
    queued = np.ones(n, np.bool_)
    for i in range(n):
        left = False
        for a in range(k):
            allowed[i, a] = scores[i * k + a] > LOWEST
            left |= allowed[i, a]
        if not left:
            return False
    return propagate(scores, n, k, first, other, edge, allowed, queue, queued, n)


@njit(cache=True, nogil=True)
def fix(scores, n, k, first, other, edge, allowed, i, a):
    """Leave node i the state a only, with all consequences. False, and `allowed` as it was, where that is impossible."""
    before = allowed.copy()
    allowed[i] = False
    allowed[i, a] = True
    queue = np.empty(n, np.int64)
    queued = np.zeros(n, np.bool_)
    queue[0] = i
    queued[i] = True
    if propagate(scores, n, k, first, other, edge, allowed, queue, queued, 1):
        return True
    for j in range(n):  # as loops: numba takes seconds to compile the copy of a slice, with its error about shapes
        for b in range(k):
            allowed[j, b] = before[j, b]
    return False


@njit(cache=True, nogil=True)
def local_scores(scores, n, k, first, other, edge, labels, i, out):
    """out[a] = the score of state a at node i, with the neighbours that have a label (>= 0)."""
    for a in range(k):
        out[a] = scores[i * k + a]
    for p in range(first[i], first[i + 1]):
        j = other[p]
        if labels[j] < 0:
            continue
        table = n * k + edge[p] * k * k
        if i < j:
            for a in range(k):
                out[a] += scores[table + a * k + labels[j]]
        else:
            for a in range(k):
                out[a] += scores[table + labels[j] * k + a]


@njit(cache=True, nogil=True)
def improve(scores, n, k, first, other, edge, labels, sweeps):
    """Move one node after the other to its best state given its neighbours, until nothing changes."""
    local = np.empty(k)
    for _ in range(sweeps):
        changed = False
        for i in range(n):
            local_scores(scores, n, k, first, other, edge, labels, i, local)
            best = labels[i]
            for a in range(k):
                if local[a] > local[best]:
                    best = a
            changed |= best != labels[i]
            labels[i] = best
        if not changed:
            return


@njit(cache=True, nogil=True)
def score_of(scores, n, k, edges, labels):
    """The score of an output."""
    total = 0.0
    for i in range(n):
        total += scores[i * k + labels[i]]
    for e in range(len(edges)):
        total += scores[n * k + (e * k + labels[edges[e, 0]]) * k + labels[edges[e, 1]]]
    return total
