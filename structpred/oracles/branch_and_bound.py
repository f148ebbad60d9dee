"""Pairwise MRFs exactly, by branch and bound: dense graphs with some tens of nodes, larger ones where the LP is nearly tight."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from structpred.core.oracle import Labels, Scores, Shape
from structpred.core.types import ArrayLike, Floats, Integers
from structpred.errors import ConvergenceError
from structpred.oracles.mrf import NOT_FINITE, NOTHING_LEFT, OK, PairwiseOracle, given, graph_of, links_of, refuse
from structpred.oracles.solvers._constraint_rows import checked_rows
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits
from structpred.runtime.settings import checked_whole

_kernels = later("structpred.oracles.fields._branch_kernels")
_pairwise = later("structpred.oracles.fields._pairwise_kernels")
_qpbo = later("structpred.oracles.fields._qpbo_kernels")
_products = later("structpred.oracles.fields._branch_product_kernels")
_trws = later("structpred.oracles.fields._trws_kernels")

#: sweeps of message passing that may prove an output best before any branching, on graphs with few edges
SWEEPS = 100
#: a bound that is nearer to a score than this, relative to its size, proves it
PROVEN = 1e-11


@lru_cache(maxsize=1024)
def _order(shape: Shape) -> Integers:
    """Each node's place in the order of branching, neighbours near each other; -1 in dense graphs, where the scores decide."""
    graph = graph_of(shape)
    if 4 * len(graph.edges) >= graph.n * (graph.n - 1):
        return np.full(graph.n, -1, np.int64)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    i, j = graph.edges.T
    links = coo_array((np.ones(len(i)), (i, j)), shape=(graph.n, graph.n)).tocsr()
    place = np.empty(graph.n, np.int64)
    place[reverse_cuthill_mckee(links + links.T, symmetric_mode=True)] = np.arange(graph.n)
    return place


class BranchAndBoundMRF(PairwiseOracle):
    """Pairwise MRFs exactly, by depth-first branch and bound with exact bounds of ever larger subgraphs (Russian doll search).

    On complete graphs of two states with normal scores: some microseconds for 14 nodes, under a millisecond for 30, 10 for 40.
    On graphs with few edges TRW-S is tried first: where its bound meets its labels' score (to 1e-11 of it) they are the answer.

    max_nodes: the most partial outputs that one call looks at. Where they do not suffice, ConvergenceError is raised: an answer
    that comes is the best. `argmax_bound`, which training and predictions ask, continues with two states: it gives the labels and
    the bound of roof duality then. Raises DataError for scores that are not finite, InfeasibleError where the forbidden parts
    leave no output.
    Verfaillie, Lemaitre & Schiex, Russian doll search for solving constraint optimization problems, AAAI 1996.

    >>> import numpy as np
    >>> from structpred.oracles.mrf import graph_shape
    >>> triangle = graph_shape(3, 2, [(0, 1), (1, 2), (0, 2)])
    >>> scores = np.concatenate((np.zeros(6), np.tile([0.0, 1.0, 1.0, 0.0], 3)))  # three that want to differ: only two can
    >>> scores[[1, 5]] = 0.1  # the first and the last would rather have state 1
    >>> BranchAndBoundMRF().argmax(scores, triangle).tolist()
    [1, 0, 1]
    """

    def __init__(self, max_nodes: int = 50_000_000) -> None:
        self.max_nodes = checked_whole(max_nodes, "max_nodes")

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The best output."""
        status, labels = self._search(given(scores, shape), shape)
        self._finish(status, shape)
        return labels

    def _search(self, flat: Floats, shape: Shape) -> tuple[int, Labels]:
        graph, k, links = graph_of(shape), shape[1], links_of(shape)
        labels, place = np.full(graph.n, -1, np.int64), _order(shape).copy()
        if place[0] >= 0:  # message passing, whose bound may prove its labels best; it leaves them there if they are allowed
            status, bound, _ = _trws().trws(flat, k, *links, SWEEPS, PROVEN, labels)
            if status != OK:
                labels[:] = -1
            elif bound - _pairwise().score_of(flat, len(labels), k, links.edges, labels) <= PROVEN * abs(bound):
                return OK, labels
        return _kernels().best_output(flat, graph.n_states, links.edges, place, self.max_nodes, labels), labels

    def argmax_bound(self, scores: Scores, shape: Shape) -> tuple[Labels, float]:
        """The best output and its score; where max_nodes do not suffice and there are two states, labels near the best point of
        the local polytope, and its value, which no output's score exceeds (as QPBO).
        """
        flat = given(scores, shape)
        status, labels = self._search(flat.copy(), shape)
        if status == _kernels().CUT_SHORT and shape[1] == 2:
            status, bound = _qpbo().round_off(flat, *links_of(shape), labels)
            self._finish(status, shape)
            return labels, float(bound)
        self._finish(status, shape)
        return labels, float(_pairwise().score_of(flat, len(labels), shape[1], links_of(shape).edges, labels))

    def argmax_bound_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers, Floats]:
        """`argmax_bound` of each instance."""
        found = [self.argmax_bound(scores[offsets[i] : offsets[i + 1]], shape) for i, shape in enumerate(shapes)]
        ends = np.cumsum([0, *(len(labels) for labels, _ in found)], dtype=np.int64)
        flat = np.concatenate([*(labels for labels, _ in found), np.empty(0, np.int64)])
        return flat, ends, np.array([bound for _, bound in found], dtype=np.float64)

    def argmax_product(self, scores: Scores, costs: Floats, offsets: Sequence[float] | Floats, shape: Shape) -> Labels:
        """The output with the largest max(0, offsets[0] + scores . mu) * (offsets[1] + costs . mu)."""
        tables = given(scores, shape), given(costs, shape)
        graph, links, labels = graph_of(shape), links_of(shape), np.zeros(shape[0], np.int64)
        ends = np.array(offsets, dtype=np.float64)
        status = _products().best_product(*tables, ends, graph.n_states, *links[:4], _order(shape).copy(), self.max_nodes, labels)
        self._finish(status, shape)
        return labels

    def argmax_constrained(self, scores: Scores, shape: Shape, A: ArrayLike, b: ArrayLike) -> Labels | None:
        """The best output with A mu <= b, None if there is none; A is (rows, n_parts)."""
        status, labels, _ = self._within(scores, shape, A, b)
        if status == NOTHING_LEFT:
            return None
        self._finish(status, shape)
        return labels

    def argmax_constrained_bound(self, scores: Scores, shape: Shape, A: ArrayLike, b: ArrayLike) -> tuple[Labels | None, float]:
        """(the best output found with A mu <= b or None, a bound on all of them: -inf where there is none).

        The search may be cut short by max_nodes; the bound is that of all outputs then, +inf where not even that was finished.
        """
        status, labels, bound = self._within(scores, shape, A, b)
        if status == NOTHING_LEFT:
            return None, -np.inf
        return (labels if labels[0] >= 0 else None), bound

    def _within(self, scores: Scores, shape: Shape, A: ArrayLike, b: ArrayLike) -> tuple[int, Labels, float]:
        flat, graph = given(scores, shape), graph_of(shape)
        labels, rows = np.full(graph.n, -1, np.int64), checked_rows(A, b, len(flat))
        if rows is None:
            return NOTHING_LEFT, labels, -np.inf
        check_fits(8 * rows[0].size * 2, f"bounds of {len(rows[0])} rows")
        status, bound = _kernels().best_within(
            flat, *rows, graph.n_states, links_of(shape).edges, _order(shape).copy(), self.max_nodes, labels
        )
        if status == NOT_FINITE:
            refuse(status, shape)
        return status, labels, bound

    def _finish(self, status: int, shape: Shape) -> None:
        if status == _kernels().CUT_SHORT:
            raise ConvergenceError(
                f"{shape[0]} nodes with {shape[1]} states: not finished after {self.max_nodes:,} partial outputs; raise "
                "max_nodes, or use CpSatMRF (exact) or DualMRF (a bound)"
            )
        if status != OK:
            refuse(status, shape)
