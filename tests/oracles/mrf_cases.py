"""Random graphs and scores, and exact answers by NumPy alone: a table of all outputs, and elimination for larger graphs."""

from collections.abc import Callable
from functools import reduce

import numpy as np
from scipy.special import logsumexp

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Shape
from structpred.oracles.mrf import graph_of, graph_shape

Factor = tuple[tuple[int, ...], np.ndarray]


def random_forest(rng: np.random.Generator, n: int, n_states: int, p_edge: float = 0.8) -> Shape:
    """A forest with the nodes in random order: each but the first joined to one before it, with probability p_edge."""
    order = rng.permutation(n)
    edges = [(order[i], order[rng.integers(i)]) for i in range(1, n) if rng.random() < p_edge]
    return graph_shape(n, n_states, [edges[e] for e in rng.permutation(len(edges))])


def random_graph(rng: np.random.Generator, n: int, n_states: int, p_edge: float) -> Shape:
    """Each pair of nodes is joined with probability p_edge; the edges come in random order."""
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < p_edge]
    return graph_shape(n, n_states, [pairs[e] for e in rng.permutation(len(pairs))])


def forbid_some(rng: np.random.Generator, scores: np.ndarray, share: float) -> np.ndarray:
    """The scores with a share of them forbidden."""
    return np.where(rng.random(len(scores)) < share, FORBIDDEN, scores)


def factors_of(shape: Shape, scores: np.ndarray) -> list[Factor]:
    """The node and edge tables of a problem; what is forbidden is -inf."""
    graph = graph_of(shape)
    n, k = graph.n, graph.n_states
    logs = np.where(scores > 0.5 * FORBIDDEN, scores, -np.inf)
    nodes = [((i,), logs[i * k : i * k + k]) for i in range(n)]
    pairs = logs[n * k :].reshape(-1, k, k)
    return [*nodes, *((tuple(edge), table) for edge, table in zip(graph.edges.tolist(), pairs, strict=True))]


def _spread(factor: Factor, scope: tuple[int, ...]) -> np.ndarray:
    """The table with an axis for each variable of a sorted larger scope."""
    own, table = factor
    return table.reshape([table.shape[own.index(i)] if i in own else 1 for i in scope])


def all_scores(shape: Shape, scores: np.ndarray) -> np.ndarray:
    """The score of every output, an axis a node; -inf where it is forbidden."""
    graph = graph_of(shape)
    total = np.zeros((graph.n_states,) * graph.n)
    for factor in factors_of(shape, scores):
        total = total + _spread(factor, tuple(range(graph.n)))
    return total


def exact_marginals(shape: Shape, scores: np.ndarray) -> tuple[float, np.ndarray]:
    """log Z and the expected part counts, from the table of all outputs."""
    table = all_scores(shape, scores)
    log_z = float(logsumexp(table))
    shares = np.exp(table - log_z)
    tables = [shares.sum(axis=tuple(a for a in range(table.ndim) if a not in scope)) for scope, _ in factors_of(shape, scores)]
    return log_z, np.concatenate([t.ravel() for t in tables])


def eliminated(shape: Shape, scores: np.ndarray, combine: Callable[..., np.ndarray]) -> float:
    """The best score (combine = np.max) or log Z (combine = logsumexp) by elimination, always of the node with least neighbours.

    States that are forbidden at a node are dropped first; exponential in the width of the graph.
    """
    factors = factors_of(shape, scores)
    n = shape[0]
    kept = [np.flatnonzero(table > -np.inf) for _, table in factors[:n]]
    factors = [(scope, table[np.ix_(*(kept[i] for i in scope))]) for scope, table in factors]
    near = {i: {j for scope, _ in factors if i in scope for j in scope} - {i} for i in range(n)}
    constant = 0.0
    while near:
        node = min(near, key=lambda i: len(near[i]))
        mine = [f for f in factors if node in f[0]]
        factors = [f for f in factors if node not in f[0]]
        scope = tuple(sorted({i for own, _ in mine for i in own}))
        table = reduce(np.add, (_spread(f, scope) for f in mine))
        table, rest = combine(table, axis=scope.index(node)), tuple(i for i in scope if i != node)
        for i in near.pop(node):
            near[i] = (near[i] | set(rest)) - {i, node}
        if rest:
            factors.append((rest, table))
        else:
            constant += float(table)
    return constant
