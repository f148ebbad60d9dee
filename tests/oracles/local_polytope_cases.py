"""The linear program over the local polytope, written down anew and given to scipy's HiGHS: what relaxations are held to."""

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Shape
from structpred.oracles.mrf import graph_of, graph_shape


def lp_value(scores: np.ndarray, shape: Shape) -> float | None:
    """The largest scores . mu over the local polytope, what is forbidden being zero; None where nothing is left."""
    graph = graph_of(shape)
    n, k = graph.n, graph.n_states
    entries = [(i, i * k + a, 1.0) for i in range(n) for a in range(k)]
    row = n
    for e, (i, j) in enumerate(graph.edges.tolist()):
        table = n * k + e * k * k
        for a in range(k):
            entries += [(row, table + a * k + b, 1.0) for b in range(k)] + [(row, i * k + a, -1.0)]
            entries += [(row + 1, table + b * k + a, 1.0) for b in range(k)] + [(row + 1, j * k + a, -1.0)]
            row += 2
    rows, columns, values = zip(*entries, strict=True)
    matrix = coo_array((values, (rows, columns)), shape=(row, graph.n_parts)).tocsr()
    right = np.zeros(row)
    right[:n] = 1.0
    allowed = scores > 0.5 * FORBIDDEN
    bounds = np.column_stack((np.zeros(graph.n_parts), allowed.astype(float)))
    found = linprog(-np.where(allowed, scores, 0.0), A_eq=matrix, b_eq=right, bounds=bounds, method="highs-ds")
    return None if found.status == 2 else -float(found.fun)


def grid(height: int, width: int, n_states: int) -> Shape:
    """Rows of nodes, each joined to the one on its right and the one below."""
    across = [(r * width + c, r * width + c + 1) for r in range(height) for c in range(width - 1)]
    down = [(r * width + c, r * width + width + c) for r in range(height - 1) for c in range(width)]
    return graph_shape(height * width, n_states, across + down)


def complete(n: int, n_states: int = 2) -> Shape:
    """All pairs of n nodes are joined."""
    return graph_shape(n, n_states, [(i, j) for i in range(n) for j in range(i + 1, n)])
