"""The local polytope of a pairwise MRF: its rows, its compact form, bounds by reparametrisation, labels.

A point mu holds a row of K numbers for each node and a table for each edge. It lies in the polytope when nothing is negative,
each node's row sums to one, and each edge's table sums to its two nodes' rows (Wainwright & Jordan 2008, eq. 4.7).
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels, Scores, Shape
from structpred.core.types import Flags, Floats, Integers
from structpred.errors import ConvergenceError
from structpred.oracles.mrf import Graph, graph_of, links_of, pairwise_scores
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits

_kernels = later("structpred.oracles.fields._pairwise_kernels")

#: choices that are undone in a search for allowed labels, at most
LIMIT = 10_000
#: sums over single nodes are repeated until nothing changes, this often at most
_SWEEPS = 20


class Compact(NamedTuple):
    """mu = start + matrix z: the last state of each node, the last row and column of each table are left out of z.

    kept: the parts that z holds. dropped: the others; each is a row of the linear program, start + matrix z >= 0.
    matrix: CSR (n_parts, len(kept)).
    """

    kept: Integers
    dropped: Integers
    start: Floats
    matrix: Any


def allowed_parts(scores: Scores, shape: Shape) -> tuple[Floats, Flags]:
    """The scores with zeros for those that forbid, and which parts are allowed. Raises DataError as `pairwise_scores`."""
    scores = pairwise_scores(scores, shape)
    allowed = scores > 0.5 * FORBIDDEN
    return np.where(allowed, scores, 0.0), allowed


@lru_cache(maxsize=64)
def compact_form(shape: Shape) -> Compact:
    """The polytope without redundant numbers; for two states the well-known form with one number per node and one per edge."""
    from scipy import sparse

    graph = graph_of(shape)
    k = graph.n_states - 1
    nodes = np.arange(graph.n * (k + 1)).reshape(graph.n, k + 1)
    tables = graph.n * (k + 1) + np.arange(len(graph.edges) * (k + 1) ** 2).reshape(-1, k + 1, k + 1)
    x, w = nodes[:, :k], tables[:, :k, :k]
    first, second = x[graph.edges[:, 0]], x[graph.edges[:, 1]]
    entries = [
        (nodes[:, k:], x, -1.0),  # the last state: 1 - sum of the others
        (tables[:, :k, k], first, 1.0),  # the last column: what is left of the first node's state
        (tables[:, :k, k, None], w, -1.0),
        (tables[:, k, :k], second, 1.0),
        (tables[:, k, :k, None], w.transpose(0, 2, 1), -1.0),
        (tables[:, k, k, None], first, -1.0),
        (tables[:, k, k, None], second, -1.0),
        (tables[:, k, k, None, None], w, 1.0),
    ]
    kept = np.concatenate((x.ravel(), w.ravel()))
    place = np.empty(graph.n_parts, np.int64)
    place[kept] = np.arange(len(kept))
    rows = np.concatenate([kept, *(np.broadcast_to(p, q.shape).ravel() for p, q, _ in entries)])
    columns = place[np.concatenate([kept, *(q.ravel() for _, q, _ in entries)])]
    values = np.concatenate([np.ones(len(kept)), *(np.full(q.size, value) for _, q, value in entries)])
    start = np.zeros(graph.n_parts)
    start[nodes[:, k]] = start[tables[:, k, k]] = 1.0
    dropped = np.setdiff1d(np.arange(graph.n_parts), kept)
    return Compact(kept, dropped, start, sparse.csr_array((values, (rows, columns)), shape=(graph.n_parts, len(kept))))


@lru_cache(maxsize=64)
def marginal_rows(shape: Shape) -> tuple[Any, Floats]:
    """CSR rows and right-hand sides of the equations: n sums of nodes, then for each edge K row sums and K column sums."""
    from scipy import sparse

    graph = graph_of(shape)
    n, k, n_edges = graph.n, graph.n_states, len(graph.edges)
    check_fits(64 * graph.n_parts, f"the rows of the local polytope of {n:,} nodes")
    states, e = np.arange(k), np.arange(n_edges)[:, None]
    tables = n * k + np.arange(n_edges * k * k).reshape(n_edges, k, k)
    by_row = np.broadcast_to((n + 2 * k * e + states)[:, :, None], tables.shape)
    by_column = np.broadcast_to((n + 2 * k * e + k + states)[:, None, :], tables.shape)
    ends = n + 2 * k * e + states, n + 2 * k * e + k + states
    rows = np.concatenate((np.repeat(np.arange(n), k), *(r.ravel() for r in (by_row, by_column, *ends))))
    nodes = [graph.edges[:, side, None] * k + states for side in (0, 1)]
    columns = np.concatenate((np.arange(n * k), tables.ravel(), tables.ravel(), *(c.ravel() for c in nodes)))
    values = np.concatenate((np.ones(n * k + 2 * tables.size), -np.ones(2 * n_edges * k)))
    right = np.zeros(n + 2 * k * n_edges)
    right[:n] = 1.0
    return sparse.csr_array((values, (rows, columns)), shape=(len(right), graph.n_parts)), right


def message_bound(graph: Graph, scores: Floats, allowed: Flags, messages: Floats, sizes: Floats | None = None) -> float:
    """What no output scores above, for any messages (E, 2, K): tables give them to their nodes, and each takes its own best.

    -inf: nothing is left. The bound holds in spite of rounding. sizes: of the numbers that the scores were computed from.
    """
    nodes, tables = _shifted(graph, scores, messages, messages)
    split = nodes.size
    nodes[~allowed[:split].reshape(nodes.shape)] = -np.inf
    tables[~allowed[split:].reshape(tables.shape)] = -np.inf
    bound = float(nodes.max(axis=1).sum() + tables.max(axis=(1, 2)).sum())
    nodes, tables = _shifted(graph, np.abs(scores) if sizes is None else sizes, np.abs(messages), -np.abs(messages))
    degree = int(np.bincount(graph.edges.ravel(), minlength=1).max())
    rounding = 4.0 * float(np.finfo(np.float64).eps) * (graph.n + len(tables) + degree)
    return bound + rounding * float(nodes.max(axis=1).sum() + tables.max(axis=(1, 2)).sum())


def _shifted(graph: Graph, values: Floats, to_nodes: Floats, from_tables: Floats) -> tuple[Floats, Floats]:
    k = graph.n_states
    nodes = values[: graph.n * k].reshape(graph.n, k).copy()
    for side in (0, 1):
        np.add.at(nodes, graph.edges[:, side], to_nodes[:, side])
    tables = values[graph.n * k :].reshape(-1, k, k)
    return nodes, tables - from_tables[:, 0, :, None] - from_tables[:, 1, None, :]


def rounded(graph: Graph, scores: Floats, allowed: Flags, mu: Floats) -> Labels:
    """Each node's largest state, then improved; what is forbidden is avoided first, but may be left."""
    nodes = mu[: graph.n * graph.n_states].reshape(graph.n, graph.n_states)
    return improved(graph, scores, allowed, np.round(nodes, 6).argmax(axis=1).astype(np.int64))


def improved(graph: Graph, scores: Floats, allowed: Flags, start: Labels) -> Labels:
    """Labels with better single states than `start`, while there are any (a forbidden part is worth -1e30)."""
    n, k, labels = graph.n, graph.n_states, start.copy()
    links = links_of((n, k, *graph.edges.ravel().tolist()))
    costly = np.where(allowed, scores, FORBIDDEN)
    _kernels().improve(costly, n, k, links.first, links.other, links.edge, labels, _SWEEPS)
    return labels


def repaired(graph: Graph, allowed: Flags, mu: Floats) -> Floats:
    """A nearby point whose sums are right to rounding (Altschuler, Weed & Rigollet 2017, algorithm 2, for every table)."""
    k, split = graph.n_states, graph.n * graph.n_states
    nodes = np.maximum(mu[:split], 0.0).reshape(graph.n, k)
    nodes /= nodes.sum(axis=1, keepdims=True)
    tables = np.maximum(mu[split:], 0.0).reshape(-1, k, k)
    tiny = np.finfo(np.float64).tiny
    for side, axis in ((0, 2), (1, 1)):
        wanted = nodes[graph.edges[:, side]]
        share = np.minimum(1.0, wanted / np.maximum(tables.sum(axis=axis), tiny))
        tables = tables * np.expand_dims(share, axis)
    missing = [np.maximum(nodes[graph.edges[:, side]] - tables.sum(axis=axis), 0.0) for side, axis in ((0, 2), (1, 1))]
    total = np.maximum(missing[0].sum(axis=1), tiny)[:, None, None]
    tables = tables + missing[0][:, :, None] * missing[1][:, None, :] / total
    return np.where(allowed, np.concatenate((nodes.ravel(), tables.ravel())), 0.0)


def allowed_labels(graph: Graph, allowed: Flags, wanted: Labels, limit: int = LIMIT) -> Labels | None:
    """Labels all of whose parts are allowed, the wanted state first at each node; None: proven that there are none.

    Each state that has no allowed partner at some neighbour is taken away, again and again (arc consistency, Mackworth 1977); a
    node is given a state, what follows is taken away, and where a node has no state left the last choice is undone (Sabin &
    Freuder 1994).
    Raises ConvergenceError once `limit` choices had to be undone. Nodes with the fewest states left come first.
    """
    n, k = graph.n, graph.n_states
    links = links_of((n, k, *graph.edges.ravel().tolist()))
    given = np.where(allowed, 0.0, FORBIDDEN), n, k, links.first, links.other, links.edge
    left = np.ones((n, k), np.bool_)
    if not _kernels().allow(*given, left):
        return None
    chosen: list[tuple[int, int, npt.NDArray[np.uint8]]] = []  # node, state, which states were left before, a bit each
    undone = 0
    while (node := _open_node(left)) >= 0:
        state = int(wanted[node]) if left[node, wanted[node]] else int(left[node].argmax())
        chosen.append((node, state, np.packbits(left)))
        consistent = _kernels().fix(*given, left, node, state)
        while not consistent:
            if not chosen:
                return None
            undone += 1
            if undone > limit:
                raise ConvergenceError(
                    f"no labels without forbidden parts were found after {limit:,} choices were undone; use CpSatMRF, which "
                    "finds some or proves that there are none"
                )
            node, state, before = chosen.pop()
            left[:] = np.unpackbits(before, count=n * k).reshape(n, k)
            left[node, state] = False
            queue, queued = np.full(n, node), np.arange(n) == node
            consistent = bool(left[node].any()) and _kernels().propagate(*given, left, queue, queued, 1)
    return left.argmax(axis=1).astype(np.int64)


def _open_node(left: Flags) -> int:
    """The node with the fewest states left, more than one; -1 if all have one."""
    counts = left.sum(axis=1)
    counts[counts == 1] = left.shape[1] + 1
    node = int(counts.argmin())
    return node if counts[node] <= left.shape[1] else -1
