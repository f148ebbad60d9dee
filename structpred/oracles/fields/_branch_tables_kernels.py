# mypy: ignore-errors
"""Scores of a pairwise MRF laid out for branch and bound: by the nodes' places in the order of branching, and by slots."""

import numpy as np

from structpred.oracles.fields._pairwise_kernels import LOWEST
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def center(table, k, u, v):
    """Take the means of rows and columns out of a table (k, k) and add them to the two nodes' scores u and v.

    Where pairs are forbidden, the largest allowed entries are taken out instead.
    """
    low = 0.0
    for a in range(k):
        for b in range(k):
            low = min(low, table[a, b])
    for side in range(2):
        for a in range(k):
            mean = 0.0
            top = -np.inf
            for b in range(k):
                x = table[a, b] if side == 0 else table[b, a]
                mean += x
                top = max(top, x)
            share = mean / k if low > LOWEST else top
            if share <= LOWEST:
                continue  # no partner is allowed: it stays as it is
            if side == 0:
                u[a] += share
            else:
                v[a] += share
            for b in range(k):
                if side == 0 and table[a, b] > LOWEST:
                    table[a, b] -= share
                elif side == 1 and table[b, a] > LOWEST:
                    table[b, a] -= share


@njit(cache=True, nogil=True)
def tables_of(scores, n, k, edges):
    """(node scores (n, k), edge tables (E, k, k), the size of all): the same scores with all that nodes can say moved to them."""
    own = scores[: n * k].copy().reshape(n, k)
    pair = scores[n * k :].copy().reshape(len(edges), k, k)
    for e in range(len(edges)):
        center(pair[e], k, own[edges[e, 0]], own[edges[e, 1]])
    size = 0.0
    for i in range(n):
        top = 0.0
        for a in range(k):
            if scores[i * k + a] <= LOWEST:
                own[i, a] = 2 * LOWEST
            else:
                top = max(top, abs(own[i, a]))
        size += top
    for e in range(len(edges)):
        top = 0.0
        for a in range(k):
            for b in range(k):
                if pair[e, a, b] > LOWEST:
                    top = max(top, abs(pair[e, a, b]))
        size += top
    return own, pair, size


@njit(cache=True, nogil=True)
def decided_first(own, pair, edges, place):
    """place[i] = node i's place in an order for dense graphs: clear nodes and strong edges first."""
    n, k = own.shape
    strength = np.zeros(n)
    for i in range(n):
        low = np.inf
        high = -np.inf
        for a in range(k):
            if own[i, a] > LOWEST:
                low = min(low, own[i, a])
                high = max(high, own[i, a])
        strength[i] = low - high
    for e in range(len(edges)):
        top = 0.0
        for a in range(k):
            for b in range(k):
                if pair[e, a, b] > LOWEST:
                    top = max(top, abs(pair[e, a, b]))
        strength[edges[e, 0]] -= 0.2 * top
        strength[edges[e, 1]] -= 0.2 * top
    order = np.argsort(strength, kind="mergesort")
    for d in range(n):
        place[order[d]] = d


@njit(cache=True, nogil=True)
def slots_of(n, edges, place):
    """(ptr, later, prev, last, edge of each slot): which tables are met in which order; nothing of the scores."""
    m = len(edges)
    ptr = np.zeros(n + 1, np.int64)
    for e in range(m):
        ptr[min(place[edges[e, 0]], place[edges[e, 1]]) + 1] += 1
    for d in range(n):
        ptr[d + 1] += ptr[d]
    free = ptr[:n].copy()
    later = np.empty(m, np.int64)
    prev = np.empty(m, np.int64)
    edge = np.empty(m, np.int64)
    last = m + np.arange(n)
    for e in range(m):
        i = place[edges[e, 0]]
        j = place[edges[e, 1]]
        q = free[min(i, j)]
        free[min(i, j)] += 1
        later[q] = max(i, j)
        edge[q] = e
    for q in range(m):
        prev[q] = last[later[q]]
        last[later[q]] = q
    return ptr, later, prev, last, edge


@njit(cache=True, nogil=True)
def in_order(own, pair, edges, place, edge):
    """The node scores and tables by place and slot, the earlier node's states as rows."""
    n, k = own.shape
    own2 = np.empty((n, k))
    pair2 = np.empty((len(edge), k, k))
    for i in range(n):
        for a in range(k):
            own2[place[i], a] = own[i, a]
    for q in range(len(edge)):
        e = edge[q]
        turned = place[edges[e, 0]] > place[edges[e, 1]]
        for a in range(k):
            for b in range(k):
                pair2[q, a, b] = pair[e, b, a] if turned else pair[e, a, b]
    return own2, pair2


@njit(cache=True, nogil=True)
def reach_of(ptr, pair, n, k):
    """reach[d, a] = the most that the slots from node d in state a can add to the fields of later nodes."""
    reach = np.zeros((n, k))
    for d in range(n):
        for q in range(ptr[d], ptr[d + 1]):
            for a in range(k):
                top = pair[q, a, 0]
                for b in range(1, k):
                    top = max(top, pair[q, a, b])
                reach[d, a] += top
    return reach
