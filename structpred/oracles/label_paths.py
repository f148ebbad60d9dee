"""One path in a forest of labels: a leaf and all labels above it."""

from collections.abc import Sequence

import numpy as np

from structpred.core.oracle import Labels, Scores, Shape
from structpred.core.scores import checked_scores
from structpred.core.types import Floats
from structpred.errors import InfeasibleError
from structpred.oracles.fields._label_forest import ForestOracle, Gains, LabelForest, Truths, forest_of
from structpred.runtime.lazy_names import later

_kernels = later("structpred.oracles.fields._label_paths_kernels")


class LabelPaths(ForestOracle):
    """Sets of labels that are one path, from a root of the forest down to a leaf. O(n).

    >>> LabelPaths().argmax(np.array([0.0, 1.0, 0.0, -3.0, 0.0, -2.0]), (-1, 0, 0)).tolist()
    [1, 0, 1]
    """

    def _best(self, gains: Gains, forest: LabelForest) -> tuple[Labels, Truths]:
        labels, feasible = np.empty(gains.gains.shape, np.int64), np.empty(len(gains.gains), np.bool_)
        _kernels().best_paths(gains.gains, gains.must, gains.never, forest.parents, forest.leaves, labels, feasible)
        return labels, feasible

    def _allowed(self, rows: Labels, forest: LabelForest) -> Truths:
        leaves = rows[:, forest.leaves]
        return np.asarray((leaves.sum(axis=1) == 1) & (rows.sum(axis=1) == (leaves @ forest.paths).sum(axis=1)))

    def argmax_product(self, scores: Scores, costs: Floats, offsets: Sequence[float] | Floats, shape: Shape) -> Labels:
        """The path with the largest max(0, offsets[0] + scores . mu) * (offsets[1] + costs . mu), by looking at all of them."""
        forest, (first, second) = forest_of(shape), offsets
        tables = [Gains(checked_scores(given, self.n_parts(shape), shape).reshape(1, -1, 2)) for given in (scores, costs)]
        values, fees = ((gains.base + _path_sums(gains, forest))[0] for gains in tables)
        if not (allowed := np.isfinite(values)).any():
            raise InfeasibleError("every output uses a forbidden part (a score of -1e30)")
        products = np.where(allowed, np.maximum(first + values, 0.0) * (second + fees), -np.inf)
        best: Labels = forest.paths[int(products.argmax())].copy()
        return best

    def marginals(self, scores: Scores, shape: Shape) -> tuple[float, Floats]:
        """(log of the sum of exp(score) over all paths, expected part counts)."""
        flat, forest = checked_scores(scores, self.n_parts(shape), shape), forest_of(shape)
        gains = Gains(flat.reshape(1, -1, 2))
        sums = _path_sums(gains, forest)[0]
        top = sums.max()
        if top == -np.inf:
            raise InfeasibleError("every output uses a forbidden part (a score of -1e30)")
        weights = np.exp(sums - top)
        total = weights.sum()
        on = (weights / total) @ forest.paths
        return float(gains.base[0] + top + np.log(total)), np.stack((1.0 - on, on), axis=1).ravel()


def _path_sums(gains: Gains, forest: LabelForest) -> Floats:
    """(B, leaves): what each path gains, -inf where it is forbidden: a label on it, or one that is off but must be on."""
    own = np.concatenate((np.where(gains.never, -np.inf, gains.gains), np.zeros((len(gains.gains), 1))), axis=1)
    sums = np.zeros((len(own), len(forest.leaves)))
    for step in forest.ladders:
        sums += own[:, step]
    if gains.must.any():
        sums[gains.must @ forest.paths.T < gains.must.sum(axis=1)[:, None]] = -np.inf
    return sums
