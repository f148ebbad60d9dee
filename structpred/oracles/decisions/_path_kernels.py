# mypy: ignore-errors
"""Compiled sweeps over the nodes of a directed acyclic graph in topological order: the source is node 0, the target the last.

The edges into node v are edges[k] for k from starts[v] to starts[v + 1]; edge edges[k] comes from node tails[k].
"""

import numpy as np

from structpred.oracles.fields._tree_mrf_kernels import merge_states
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def best_paths(scores, offsets, rows, starts, edges, tails, room, labels, stops):
    """Write the best path of each of these rows, as edges, from room[row] on to stops[row + 1]. Ties go to the first edge.

    Where `stops` is `room`, and the rows are all in their order, the paths come one behind the other.
    """
    n = starts.shape[0] - 1
    best, back = np.empty(n), np.empty(n, np.int64)
    best[0] = 0.0
    for r in rows:
        own = scores[offsets[r] : offsets[r + 1]]
        k = 0
        for v in range(1, n):
            top, at = best[tails[k]] + own[edges[k]], k
            k += 1
            while k < starts[v + 1]:
                x = best[tails[k]] + own[edges[k]]
                if x > top:
                    top, at = x, k
                k += 1
            best[v], back[v] = top, at
        length, v = 0, n - 1
        while v > 0:
            v = tails[back[v]]
            length += 1
        place, v = room[r] + length, n - 1
        stops[r + 1] = place
        while v > 0:
            place -= 1
            labels[place] = edges[back[v]]
            v = tails[back[v]]


@njit(cache=True, nogil=True)
def is_path(labels, ends, source, target):
    """Whether these edges lead from the source to the target; edge e goes from ends[e, 0] to ends[e, 1]."""
    at = source
    for e in labels:
        if e < 0 or e >= ends.shape[0] or ends[e, 0] != at:
            return False
        at = ends[e, 1]
    return at == target


@njit(cache=True, nogil=True)
def path_sums(scores, offsets, rows, starts, edges, tails, least, log_zs, mu):
    """log Z and the probability of each edge, of these rows; mu must hold zeros. Edges that score at most `least` are left out.

    Forward: log of the sum over all paths to a node. Backward: a node's probability goes to the edges into it by their shares.
    """
    n = starts.shape[0] - 1
    ways, share = np.empty(n), np.empty(n)
    ways[0] = 0.0
    for r in rows:
        first = offsets[r]
        for v in range(1, n):
            top = -np.inf
            for k in range(starts[v], starts[v + 1]):
                if scores[first + edges[k]] > least:
                    top = max(top, ways[tails[k]] + scores[first + edges[k]])
            ways[v] = top
            if top == -np.inf:
                continue
            total = 0.0
            for k in range(starts[v], starts[v + 1]):
                if scores[first + edges[k]] > least:
                    total += np.exp(ways[tails[k]] + scores[first + edges[k]] - top)
            ways[v] = top + np.log(total)
        log_zs[r] = ways[n - 1]
        share[:] = 0.0
        share[n - 1] = 1.0
        for v in range(n - 1, 0, -1):
            if share[v] == 0.0:
                continue
            for k in range(starts[v], starts[v + 1]):
                if scores[first + edges[k]] > least:
                    p = share[v] * np.exp(ways[tails[k]] + scores[first + edges[k]] - ways[v])
                    mu[first + edges[k]] = p
                    share[tails[k]] += p


@njit(cache=True, nogil=True)
def best_ways(scores, starts, edges, tails, k_best, least, values, froms, ranks):
    """The k best paths to each node: values, the edge they end with (its place in `edges`), their rank at the node before.

    values, froms, ranks: (n, k_best), the first two -inf and zeros. Edges that score at most `least` are left out.
    """
    values[0, 0] = 0.0
    for v in range(1, starts.shape[0] - 1):
        into = slice(starts[v], starts[v + 1])
        own = scores[edges[into]]
        own[own <= least] = -np.inf
        merge_states(values[tails[into]], own, np.empty_like(tails[into]), k_best, values[v], froms[v], ranks[v])
        froms[v] += starts[v]
