# mypy: ignore-errors
"""Visits of blocks of corners over graphs: those of task/fast/_corner_visit_kernels.py with the features of graphs.

corpus: what score_graphs takes beside the weights (where, table, node_side, edge_side).
"""

import numpy as np

from structpred.core._sparse_kernels import dot
from structpred.features._graph_kernels import combine_graph, score_graph, sides_of
from structpred.runtime.jit import family, njit
from structpred.task.fast._corner_kernels import corner_of
from structpred.task.fast._corner_visit_kernels import VISITS


@njit(cache=True, nogil=True)
def size_of(i, corpus):
    """The number of parts of graph i."""
    where, table, _, _ = corpus
    pattern, node_at, edge_at, _, _ = where
    p = pattern[i]
    return (node_at[p + 1] - node_at[p]) * table[0] + (edge_at[p + 1] - edge_at[p]) * table[0] * table[0]


@njit(cache=True, nogil=True)
def lift(w, i, parts, counts, corpus):
    """The joint features of part counts of graph i, which ascend, as sorted unique pairs; w: as long as the weights."""
    where, table, node_side, edge_side = corpus
    nodes, edges = sides_of(i, where, node_side, edge_side)
    _, idx, val = combine_graph(parts, counts, w.shape[0], table, nodes, edges)
    return idx, val


@njit(cache=True, nogil=True)
def dots(w, i, arena, first_slot, n, corpus):
    """The inner products of w with the joint features of corners first_slot..first_slot + n - 1, which are of graph i."""
    where, table, node_side, edge_side = corpus
    nodes, edges = sides_of(i, where, node_side, edge_side)
    scores = np.empty(size_of(i, corpus))
    score_graph(w, table, nodes, edges, scores)
    out = np.empty(n)
    for k in range(n):
        parts, counts = corner_of(arena, first_slot + k)
        out[k] = dot(scores, parts, counts)
    return out


*_, visit, cached_pass = family(__name__, VISITS, lift, dots, size_of)
