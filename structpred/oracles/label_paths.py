"""One path in a forest of labels, or one in each of its trees: a label and all labels above it."""

from collections.abc import Sequence

import numpy as np

from structpred.core.oracle import Labels, Scores, Shape
from structpred.core.scores import checked_scores
from structpred.core.types import Floats
from structpred.errors import InfeasibleError
from structpred.oracles.fields._label_forest import ForestOracle, Gains, LabelForest, PathEnds, Truths, forest_of
from structpred.runtime.lazy_names import later

_kernels = later("structpred.oracles.fields._label_paths_kernels")


class LabelPaths(ForestOracle):
    """Sets of labels that are one path from a root of the forest down, or one in each of its trees. O(n).

    to: "leaf": the path ends in a leaf; "label": in any label; "tree": each tree has a path to any of its labels, or none.

    >>> LabelPaths().argmax(np.array([0.0, 1.0, 0.0, -3.0, 0.0, -2.0]), (-1, 0, 0)).tolist()
    [1, 0, 1]
    """

    def __init__(self, to: str = "leaf") -> None:
        self.to = to
        if to == "tree":  # the paths of several trees are too many to look at
            self.argmax_product = None  # type: ignore[assignment, method-assign]

    def _best(self, scores: Floats, forest: LabelForest) -> tuple[Labels, Truths]:
        labels, feasible = np.empty((len(scores), len(forest.parents)), np.int64), np.empty(len(scores), np.bool_)
        _kernels().best_paths(scores, forest.parents, forest.to[self.to].ends, labels, feasible)
        return labels, feasible

    def allowed(self, rows: Labels, forest: LabelForest) -> Truths:
        """Whether the longest of its paths have all labels of a row."""
        ends = forest.to[self.to]
        longest = np.maximum.reduceat(ends.lengths(rows == 1), [first for first, _ in ends.runs], axis=1)
        return np.asarray((longest >= 0).all(axis=1) & (longest.sum(axis=1) == (rows == 1).sum(axis=1)))

    def argmax_product(self, scores: Scores, costs: Floats, offsets: Sequence[float] | Floats, shape: Shape) -> Labels:
        """The path with the largest max(0, offsets[0] + scores . mu) * (offsets[1] + costs . mu), by looking at all of them."""
        ends, (first, second) = forest_of(shape).to[self.to], offsets
        tables = [Gains(checked_scores(given, self.n_parts(shape), shape)[None]) for given in (scores, costs)]
        values, fees = ((gains.base + path_sums(gains, ends))[0] for gains in tables)
        if not (allowed := np.isfinite(values)).any():
            raise InfeasibleError("every output uses a forbidden part (a score of -1e30)")
        products = np.where(allowed, np.maximum(first + values, 0.0) * (second + fees), -np.inf)
        return np.array(ends.paths[int(products.argmax())])

    def marginals(self, scores: Scores, shape: Shape) -> tuple[float, Floats]:
        """(log of the sum of exp(score) over all outputs, expected part counts)."""
        gains, ends = Gains(checked_scores(scores, self.n_parts(shape), shape)[None]), forest_of(shape).to[self.to]
        sums, log_z, on = path_sums(gains, ends)[0], gains.base[0], np.zeros(len(ends.parents))
        for first, last in ends.runs:
            if (top := sums[first:last].max()) == -np.inf:
                raise InfeasibleError("every output uses a forbidden part (a score of -1e30)")
            weights = np.exp(sums[first:last] - top)
            log_z += top + np.log(total := weights.sum())
            on += (weights / total) @ ends.paths[first:last]
        return float(log_z), np.stack((1.0 - on, on), axis=1).ravel()


def path_sums(gains: Gains, ends: PathEnds) -> Floats:
    """(B, ends): what each path gains, -inf where it is forbidden: a label on it, or one that is off but must be on."""
    own = np.append(gains.gains, np.zeros((len(gains.gains), 1)), axis=1)
    sums = np.zeros((len(own), len(ends.ends)))
    for step in ends.ladders:
        sums += own[:, step]
    for first, last in ends.runs if gains.must.any() else []:
        must = gains.must & ends.paths[first:last].any(axis=0)
        sums[:, first:last][must @ ends.paths[first:last].T < must.sum(axis=1)[:, None]] = -np.inf
    return sums
