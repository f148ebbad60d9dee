"""Pairwise MRFs without cycles: max-product and sum-product dynamic programming (Pearl 1988, chapters 4 and 5)."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from structpred.core.oracle import Labels, Scores, Shape
from structpred.core.scores import runs_of
from structpred.core.types import Floats, Integers
from structpred.oracles.fields._tree_losses import best_per_loss
from structpred.oracles.mrf import PairwiseOracle, graph_of, graph_shape, pairwise_batch, pairwise_scores, refuse
from structpred.projections.tree_marginals import Forest, plan_of, project_forests
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits

_kernels = later("structpred.oracles.fields._tree_mrf_kernels")


@lru_cache(maxsize=1024)
def tree_plan(shape: Shape) -> Integers:
    """(n, 5): node, parent, table, step of the node, step of the parent; children before parents, as the kernels' file says."""
    graph = graph_of(shape)
    n, k = graph.n, graph.n_states
    parent, node, edge, transposed = plan_of(n, graph.edges).T
    below = np.stack((node, parent, n * k + edge * k**2, np.where(transposed, k, 1), np.where(transposed, 1, k)), axis=1)
    roots = np.setdiff1d(np.arange(1, n), node)  # of the other trees: they hang below node 0 by edges without a table
    hung = np.zeros((len(roots) + 1, 5), np.int64)
    hung[1:, 0], hung[:, 2], hung[0, 1] = roots, -1, -1
    first = int(np.append(np.isin(parent, roots), True).argmax())  # where the tree of node 0 ends
    plan = np.concatenate((hung[:1], below[:first], hung[1:], below[first:]))[::-1].copy()
    plan.flags.writeable = False
    return plan


@lru_cache(maxsize=1024)
def _forest(shape: Shape) -> Forest:
    """The same graph for projections."""
    n, k = shape[:2]
    return Forest(n, k, True, plan_of(n, graph_of(shape).edges))


class TreeMRF(PairwiseOracle):
    """Pairwise MRFs on trees and forests. O(n K^2).

    Raises DataError for a graph with a cycle, naming the edge that closes it, and for scores that are not finite; InfeasibleError
    where every output is forbidden. Ties always go to the same output.

    >>> import numpy as np
    >>> from structpred.oracles.mrf import graph_shape
    >>> scores = np.array([0.0, 1.0] + [0.0] * 4 + [2.0, 0.0, 0.0, 2.0] * 2)  # a chain of three; neighbours agree
    >>> TreeMRF().argmax(scores, graph_shape(3, 2, [(0, 1), (1, 2)])).tolist()
    [1, 1, 1]
    """

    expensive = False

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The best output."""
        scores, (n, k) = pairwise_scores(scores, shape), shape[:2]
        plan, labels = tree_plan(shape), np.empty(n, np.int64)
        scratch = np.empty((n, k)), np.empty((n, k), np.int32)
        if status := _kernels().best_states(scores, plan, k, *scratch, labels):
            refuse(status, shape)
        return labels

    def argmax_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers]:
        """The best output of each instance; neighbours of one shape are done in one compiled call."""
        scores, offsets = pairwise_batch(scores, offsets, shapes)
        ends = np.cumsum([0, *(shape[0] for shape in shapes)], dtype=np.int64)
        out = np.empty(int(ends[-1]), np.int64)
        for shape, first, last in runs_of(shapes):
            places, rows = offsets[first : last + 1], out[ends[first] : ends[last]].reshape(-1, shape[0])
            status, i = _kernels().best_states_of_each(scores, places, tree_plan(shape), shape[1], rows)
            if status:
                refuse(status, shape, f"instance {first + i} of the batch: ")
        return out, ends

    def marginals(self, scores: Scores, shape: Shape) -> tuple[float, Floats]:
        """(log of the sum of exp(score), expected part counts), stable for scores of any size."""
        scores = pairwise_scores(scores, shape)
        mu = np.zeros(len(scores))
        status, log_z = _kernels().part_marginals(scores, tree_plan(shape), shape[1], mu)
        if status:
            refuse(status, shape)
        return float(log_z), mu

    def kbest(self, scores: Scores, shape: Shape, k: int) -> list[Labels]:
        """The k best outputs, best first; O(n K k (K + k)) at most."""
        scores, plan = pairwise_scores(scores, shape), tree_plan(shape)
        n, n_states = shape[:2]
        check_fits(20 * n * n_states * k, f"the {k} best of {n:,} nodes with {n_states} states")
        return list(_kernels().best_outputs(scores, plan, n_states, max(k, 1))[: max(k, 0)])

    def argmax_per_loss(self, scores: Scores, costs: Floats, shape: Shape) -> tuple[Floats, Floats, list[Labels]]:
        """The best output for each value of a whole-number loss, by counting it in the state of the dynamic program.

        O(n^2 K^2) for Hamming losses. Raises DataError for costs that are not whole numbers.
        """
        scores, costs = pairwise_scores(scores, shape), pairwise_scores(costs, shape)
        return best_per_loss(scores, costs, tree_plan(shape), shape[1])

    def project(self, point: Scores, shape: Shape) -> Floats:
        """The nearest node and edge marginals, by their dual in the separators; accuracy as `project_forests` says."""
        point = pairwise_scores(point, shape)
        return project_forests(point, np.array([0, len(point)]), [_forest(shape)])[0]

    def project_batch(self, points: Scores, offsets: Integers, shapes: Sequence[Shape]) -> Floats:
        """The nearest marginals of each instance, in one compiled call."""
        return self.project_cliques(points, offsets, shapes)[0]

    def clique_parts(self, shape: Shape) -> tuple[Integers, Integers]:
        """The clique marginals are the part counts themselves."""
        n_parts = graph_of(shape).n_parts
        return np.arange(n_parts + 1), np.arange(n_parts)

    def project_cliques(
        self, points: Scores, offsets: Integers, shapes: Sequence[Shape], start: Floats | None = None, n_jobs: int = 1
    ) -> tuple[Floats, Floats]:
        """The same on n_jobs threads, with the multipliers that start the next call."""
        points, offsets = pairwise_batch(points, offsets, shapes)
        return project_forests(points, offsets, [_forest(shape) for shape in shapes], start, n_jobs=n_jobs)

    @staticmethod
    def example_shapes() -> list[Shape]:
        """One node, no edges, chains, a star, trees whose edges run both ways, two trees; one to four states."""
        return [
            *PairwiseOracle.example_shapes()[:5],
            graph_shape(5, 2, [(0, 4), (1, 4), (2, 4), (3, 4)]),
            graph_shape(5, 3, [(0, 2), (1, 2), (2, 3), (0, 4)]),
            graph_shape(6, 2, [(0, 5), (1, 3), (3, 4)]),
            graph_shape(4, 3, [(2, 3), (0, 2), (0, 1)]),
        ]
