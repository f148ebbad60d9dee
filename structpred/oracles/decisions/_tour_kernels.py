# mypy: ignore-errors
"""Compiled dynamic programme for the best tour of a few nodes (Held & Karp 1962), and with log-sum-exp for max over all tours."""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def best_tours(scores, offsets, rows, edge_of, tours):
    """Write the best tour of each of these rows, from node 0 on, flat: tours[row] has the nodes in their order.

    edge_of: (n, n), the part of each pair of nodes. best[s, j]: of the paths from node 0 through the set s of the nodes
    1..n-1 that end at node j + 1. The direction is the one whose second node is smaller than the last.
    """
    n = edge_of.shape[0]
    m = n - 1
    best, before = np.empty((1 << m, m)), np.empty((1 << m, m), np.int64)
    for r in rows:
        own = scores[offsets[r] : offsets[r + 1]]
        for s in range(1, 1 << m):
            for j in range(m):
                if not (s >> j) & 1:
                    continue
                rest = s ^ (1 << j)
                if rest == 0:
                    best[s, j], before[s, j] = own[edge_of[0, j + 1]], -1
                    continue
                top, at = -np.inf, -1
                for i in range(m):
                    if (rest >> i) & 1:
                        x = best[rest, i] + own[edge_of[i + 1, j + 1]]
                        if x > top or at < 0:
                            top, at = x, i
                best[s, j], before[s, j] = top, at
        s = (1 << m) - 1
        top, j = -np.inf, -1
        for i in range(m):
            x = best[s, i] + own[edge_of[0, i + 1]]
            if x > top or j < 0:
                top, j = x, i
        tours[r, 0] = 0
        for place in range(m, 0, -1):
            tours[r, place] = j + 1
            i = before[s, j]
            s ^= 1 << j
            j = i
        if tours[r, 1] > tours[r, m]:
            tours[r, 1:] = tours[r, 1:][::-1].copy()


@njit(cache=True, nogil=True)
def way_sums(edges, ways):
    """ways[s, j] = log of the sum over paths from node 0 through the set s of the nodes 1..n-1 that end at node j + 1.

    edges: (n, n), -inf where an edge is forbidden. ways: (2^(n-1), n-1).
    """
    m = edges.shape[0] - 1
    for s in range(1, 1 << m):
        for j in range(m):
            if not (s >> j) & 1:
                continue
            rest = s ^ (1 << j)
            if rest == 0:
                ways[s, j] = edges[0, j + 1]
                continue
            top = -np.inf
            for i in range(m):
                if (rest >> i) & 1:
                    top = max(top, ways[rest, i] + edges[i + 1, j + 1])
            ways[s, j] = top
            if top == -np.inf:
                continue
            total = 0.0
            for i in range(m):
                if (rest >> i) & 1:
                    total += np.exp(ways[rest, i] + edges[i + 1, j + 1] - top)
            ways[s, j] = top + np.log(total)


@njit(cache=True, nogil=True)
def tour_sums(scores, offsets, rows, edge_of, least, log_zs, mu):
    """log Z and the probability of each edge, of these rows; mu must hold zeros. Edges that score at most `least` are left out.

    Every tour is met in both directions, so that 2 Z = sum_j exp(ways[all, j] + edge j 0). A tour that goes from i to j is a path
    from 0 through a set s to i, the edge, and, read backwards, a path from 0 through all other nodes to j: no second sweep.
    """
    n = edge_of.shape[0]
    m = n - 1
    every = (1 << m) - 1
    ways, edges = np.empty((1 << m, m)), np.empty((n, n))
    for r in rows:
        first = offsets[r]
        for i in range(n):
            for j in range(n):
                x = scores[first + edge_of[i, j]] if i != j else -np.inf
                edges[i, j] = x if x > least else -np.inf
        way_sums(edges, ways)
        top = -np.inf
        for j in range(m):
            top = max(top, ways[every, j] + edges[0, j + 1])
        log_zs[r] = top
        if top == -np.inf:
            continue
        total = 0.0
        for j in range(m):
            total += np.exp(ways[every, j] + edges[0, j + 1] - top)
        log_z = top + np.log(total) - np.log(2.0)
        log_zs[r] = log_z
        for j in range(m):
            mu[first + edge_of[0, j + 1]] = np.exp(ways[every, j] + edges[0, j + 1] - log_z)
        for s in range(1, every):
            others = every ^ s
            for i in range(m):
                if not (s >> i) & 1 or ways[s, i] == -np.inf:
                    continue
                for j in range(i + 1, m):
                    if (others >> j) & 1:
                        x = ways[s, i] + edges[i + 1, j + 1] + ways[others, j] - log_z
                        mu[first + edge_of[i + 1, j + 1]] += np.exp(x)
