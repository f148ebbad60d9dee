"""Pairwise MRFs of any size: a bound that comes down to (nearly) the LP relaxation's value, and labels, by message passing."""

import logging
from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from structpred.core.oracle import Labels, Scores, Shape
from structpred.core.scores import runs_of
from structpred.core.types import Integers
from structpred.errors import ConvergenceError, ParameterError
from structpred.oracles.mrf import Graph, PairwiseOracle, graph_of, links_of, pairwise_batch, pairwise_scores, refuse
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits
from structpred.runtime.ranges import ends_of
from structpred.runtime.settings import checked_whole

logger = logging.getLogger("structpred.oracles.dual_mrf")

_kernels = later("structpred.oracles.fields._trws_kernels")


class DualMRF(PairwiseOracle):
    """Pairwise MRFs by sequential tree-reweighted message passing: labels that may not be the best, and a bound for all.

    Maximises over messages the dual of the LP relaxation over the local polytope, so that the bound is never below the LP's value
    nor above that of any earlier sweep. Its limit may lie somewhat above the LP's value (a weak tree agreement); for two states,
    and on graphs without cycles, it does not. Takes time O(E K^2) a sweep and memory for 2 E K messages.

    n_iter: the most sweeps (forwards and backwards). tol: it stops once ten sweeps lower the bound by no more than tol times its
    size, or the labels' score is that near to the bound.

    Raises DataError for scores that are not finite, InfeasibleError where the forbidden parts are seen to leave no output,
    ConvergenceError where no allowed output was found.
    Kolmogorov, Convergent tree-reweighted message passing for energy minimization, PAMI 2006.

    >>> import numpy as np
    >>> from structpred.oracles.mrf import graph_shape
    >>> scores = np.array([1.0, 0.0, 0.0, 0.5] + [0.0, -2.0, -2.0, 0.0])  # two nodes that rather agree
    >>> labels, bound = DualMRF().argmax_bound(scores, graph_shape(2, 2, [(0, 1)]))
    >>> labels.tolist(), bound
    ([0, 0], 1.0)
    """

    exact = False

    def __init__(self, n_iter: int = 1000, tol: float = 1e-5) -> None:
        if not tol >= 0.0:
            raise ParameterError(f"tol must be a number >= 0, got {tol}")
        self.n_iter, self.tol = checked_whole(n_iter, "n_iter"), tol

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The labels of `argmax_bound`."""
        return self.argmax_bound(scores, shape)[0]

    def argmax_bound(self, scores: Scores, shape: Shape) -> tuple[Labels, float]:
        """Labels, and a bound that no output's score exceeds, nor the LP's value.

        The labels are the best of all sweeps, improved node by node.
        """
        flat, graph, labels = pairwise_scores(scores, shape), _fitting(shape), np.zeros(shape[0], np.int64)
        status, bound, sweeps = _kernels().trws(flat, graph.n_states, *links_of(shape), self.n_iter, self.tol, labels)
        if status:
            _refuse(status, shape, bound)
        logger.debug("%d nodes: bound %g after %d sweeps", graph.n, bound, sweeps)
        return labels, bound

    def argmax_bound_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers, Scores]:
        """`argmax_bound` of each instance; neighbours of one shape are done in one compiled call."""
        scores, offsets = pairwise_batch(scores, offsets, shapes)
        ends = ends_of(np.array([shape[0] for shape in shapes], dtype=np.int64))
        labels, bounds = np.zeros(int(ends[-1]), np.int64), np.empty(len(shapes))
        for shape, first, last in runs_of(shapes):
            graph = _fitting(shape)
            rows = labels[ends[first] : ends[last]].reshape(-1, graph.n)
            status, k = _kernels().trws_of_each(
                scores, offsets[first : last + 1], graph.n_states, *links_of(shape), self.n_iter, self.tol, rows,
                bounds[first:last],
            )  # fmt: skip
            if status:
                _refuse(status, shape, bounds[first + k], f"instance {first + k} of the batch: ")
        return labels, ends, bounds


def _fitting(shape: Shape) -> Graph:
    """The graph, if memory has room for its tables and messages."""
    graph = graph_of(shape)
    k, n_edges = graph.n_states, len(graph.edges)
    check_fits(8 * n_edges * (2 * k * (k + 3) + 2 * (k + 3)), f"messages along {n_edges:,} edges")
    return graph


def _refuse(status: int, shape: Shape, bound: float, where: str = "") -> NoReturn:
    if status == _kernels().STUCK:
        raise ConvergenceError(
            f"{where}no allowed output was found within the forbidden parts (none scores more than {bound:g}); use CpSatMRF, "
            "which finds one or proves that there is none"
        )
    refuse(status, shape, where)
