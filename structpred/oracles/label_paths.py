"""One path in a forest of labels: a leaf and all labels above it."""

import numpy as np
import numpy.typing as npt

from structpred.core.oracle import Labels, Scores, Shape
from structpred.core.scores import checked_scores
from structpred.errors import InfeasibleError
from structpred.oracles.fields._label_forest import ForestOracle, Gains, LabelForest, Truths, forest_of

Floats = npt.NDArray[np.float64]


class LabelPaths(ForestOracle):
    """Sets of labels that are one path, from a root of the forest down to a leaf. O(n).

    >>> LabelPaths().argmax(np.array([0.0, 1.0, 0.0, -3.0, 0.0, -2.0]), (-1, 0, 0)).tolist()
    [1, 0, 1]
    """

    def _best(self, gains: Gains, forest: LabelForest) -> tuple[Labels, Truths]:
        sums = _path_sums(gains, forest)
        at = sums.argmax(axis=1)
        return forest.paths[at], sums[np.arange(len(sums)), at] > -np.inf

    def _allowed(self, rows: Labels, forest: LabelForest) -> Truths:
        leaves = rows[:, forest.leaves]
        return np.asarray((leaves.sum(axis=1) == 1) & (rows.sum(axis=1) == (leaves @ forest.paths).sum(axis=1)))

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
    sums, must = gains.gains.copy(), gains.must.astype(np.int64)
    sums[gains.never] = -np.inf
    for v in forest.order:
        if (parent := forest.parents[v]) >= 0:
            sums[:, v] += sums[:, parent]
            must[:, v] += must[:, parent]
    sums[must < gains.must.sum(axis=1)[:, None]] = -np.inf
    return sums[:, forest.leaves]
