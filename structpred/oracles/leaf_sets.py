"""Closed sets in a forest of labels with at least one leaf on."""

import numpy as np

from structpred.core.oracle import Labels
from structpred.core.types import Floats, Integers
from structpred.oracles.fields._label_forest import ForestOracle, Gains, LabelForest, Truths


class LeafSets(ForestOracle):
    """Sets of labels that are closed under parents and have at least one leaf of the forest on. O(n).

    >>> LeafSets().argmax(np.array([0.0, 1.0, 0.0, -3.0, 0.0, -2.0]), (-1, 0, 0)).tolist()
    [1, 0, 1]
    """

    def _best(self, scores: Floats, forest: LabelForest) -> tuple[Labels, Truths]:
        gains, parents, ends = Gains(scores), forest.parents.tolist(), forest.to["leaf"]
        return best_with_leaf(gains.gains, gains.must, parents, forest.order, ends.ladders, ends.paths)

    def allowed(self, rows: Labels, forest: LabelForest) -> Truths:
        """Whether a leaf is on."""
        return np.asarray((rows[:, forest.leaves] == 1).any(axis=1))


def best_with_leaf(
    gains: Floats, must: Truths, parents: list[int], order: list[int], ladders: Integers, paths: Integers
) -> tuple[Integers, Truths]:
    """The best closed sets, and whether there are any: the path to a leaf that costs least is switched on, where none is on."""
    best, on = gains.copy(), must.copy()  # best: of a subtree whose top is on
    for v in reversed(order):
        if (above := parents[v]) >= 0:
            best[:, above] += np.where(on[:, v] | (best[:, v] > 0.0), best[:, v], 0.0)
            on[:, above] |= on[:, v]
    on |= best > 0.0
    lost = np.append(np.where(on, 0.0, best), np.zeros((len(best), 1)), axis=1)
    sums = lost[:, ladders].sum(axis=1)
    labels = (on | (paths[sums.argmax(axis=1)] == 1)).astype(np.int64)
    for v in order:
        if (above := parents[v]) >= 0:
            labels[:, v] &= labels[:, above]
    return labels, np.isfinite(sums.max(axis=1)) & ~(on & np.isneginf(best)).any(axis=1)
