"""Tours through a few nodes (the travelling salesman's problem): exact, by dynamic programming over sets of nodes."""

from collections.abc import Sequence

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels, Scores, Shape
from structpred.core.scores import checked_scores
from structpred.core.types import Floats, Integers
from structpred.errors import DataError, InfeasibleError
from structpred.oracles.decisions._by_shape import by_shape, marginals_of_one
from structpred.oracles.decisions._tours import Pairs, TourOracle, pairs_of
from structpred.projections.lockstep import nearest_mixture
from structpred.runtime.lazy_names import later

_kernels = later("structpred.oracles.decisions._tour_kernels")

#: tables of 2^(n-1) (n-1) numbers
MOST_NODES = 20


def few_pairs_of(shape: Shape) -> Pairs:
    """The edges of a shape. Raises DataError for more than 20 nodes, and what `pairs_of` refuses."""
    pairs = pairs_of(shape)
    if pairs.n_nodes > MOST_NODES:
        raise DataError(
            f"tours of 3 to {MOST_NODES} nodes can be searched by dynamic programming, got {pairs.n_nodes}: "
            "CpSatTravellingSalesman takes more"
        )
    return pairs


class TravellingSalesmanOracle(TourOracle):
    """shape = (n,), 3 to 20 nodes; labels are the nodes in their order, from node 0 on, in the direction whose second node is
    smaller than the last. Parts are the edges between nodes j < k, sorted by j, then by k; those of the tour are on.

    Scores are maximised: give minus lengths. O(n^2 2^n), by Held & Karp (1962): 0.01 ms for 8 nodes, 0.6 ms for 12, 20 ms for 16.
    Sums over all tours by the same recursion with log-sum-exp for max, in about four times as long.
    `CpSatTravellingSalesman` takes more nodes.

    >>> lengths = np.array([1.0, 9.0, 1.0, 1.0, 9.0, 1.0])  # of the edges 01, 02, 03, 12, 13, 23: the diagonals are long
    >>> oracle = TravellingSalesmanOracle()
    >>> oracle.argmax(-lengths, (4,)).tolist()
    [0, 1, 2, 3]
    >>> log_z, mu = oracle.marginals(np.zeros(6), (4,))
    >>> round(float(np.exp(log_z)), 6), mu.round(6).tolist()  # three tours, each edge is in two of them
    (3.0, [0.666667, 0.666667, 0.666667, 0.666667, 0.666667, 0.666667])
    """

    def n_parts(self, shape: Shape) -> int:
        """n (n - 1) / 2."""
        return few_pairs_of(shape).n_parts

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The tour with the largest sum of scores."""
        given = checked_scores(scores, self.n_parts(shape), shape)
        return self.argmax_batch(given, np.array([0, len(given)]), [shape])[0]

    def argmax_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers]:
        """The best tour of each instance, in one compiled call for each shape."""
        scores, offsets, groups = by_shape(few_pairs_of, scores, offsets, shapes)
        sizes = np.zeros(len(shapes), np.int64)
        for pairs, rows in groups:
            sizes[rows] = pairs.n_nodes
        tours = np.empty((len(shapes), int(sizes.max(initial=0))), np.int64)
        for pairs, rows in groups:
            _kernels().best_tours(scores, offsets, rows, pairs.edge_of, tours[:, : pairs.n_nodes])
        return tours[np.arange(tours.shape[1]) < sizes[:, None]], np.concatenate(([0], np.cumsum(sizes)))

    marginals = marginals_of_one

    def marginals_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Floats, Floats]:
        """The marginals of each instance, in one compiled call for each shape.

        Raises InfeasibleError where every tour has a forbidden edge.
        """
        scores, offsets, groups = by_shape(few_pairs_of, scores, offsets, shapes)
        log_zs, mu = np.empty(len(shapes)), np.zeros(len(scores))
        for pairs, rows in groups:
            _kernels().tour_sums(scores, offsets, rows, pairs.edge_of, 0.5 * FORBIDDEN, log_zs, mu)
        if (log_zs == -np.inf).any():
            where = f"sample {int(log_zs.argmin())}: " if len(shapes) > 1 else ""
            raise InfeasibleError(f"{where}every tour uses a forbidden edge (a score of -1e30): no marginals exist")
        return log_zs, mu

    project = nearest_mixture
