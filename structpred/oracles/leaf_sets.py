"""Closed sets in a forest of labels with at least one leaf on."""

import numpy as np

from structpred.core.oracle import Labels
from structpred.oracles.fields._label_forest import ForestOracle, Gains, LabelForest, Truths


class LeafSets(ForestOracle):
    """Sets of labels that are closed under parents and have at least one leaf of the forest on. O(n).

    >>> LeafSets().argmax(np.array([0.0, 1.0, 0.0, -3.0, 0.0, -2.0]), (-1, 0, 0)).tolist()
    [1, 0, 1]
    """

    def _best(self, gains: Gains, forest: LabelForest) -> tuple[Labels, Truths]:
        n_instances, n = gains.gains.shape
        root = n  # one more label above all roots
        best = np.concatenate((gains.gains, np.zeros((n_instances, 1))), axis=1)  # of a subtree whose top is on
        best[:, :n][gains.never] = -np.inf
        must = np.concatenate((gains.must, np.zeros((n_instances, 1), bool)), axis=1)  # in the subtree
        lost = np.full((n_instances, n + 1), np.inf)  # how much less that is with a leaf on
        lost[:, forest.leaves] = 0.0
        way = np.full((n_instances, n + 1), -1)  # the child below which the leaf then is
        for v in reversed(forest.order):
            parent = forest.parents[v] if forest.parents[v] >= 0 else root
            chosen = must[:, v] | (best[:, v] > 0.0)
            worth = np.where(chosen, best[:, v], 0.0)
            best[:, parent] += worth
            must[:, parent] |= must[:, v]
            here = np.where(np.isneginf(best[:, v]), np.inf, lost[:, v] + (worth - np.where(chosen, worth, best[:, v])))
            better = here < lost[:, parent]
            lost[better, parent], way[better, parent] = here[better], v
        labels, forced = np.zeros((n_instances, n + 1), np.int64), np.zeros((n_instances, n + 1), bool)
        labels[:, root], forced[:, root] = 1, True  # forced: the leaf that must be on is below
        for v in forest.order:
            parent = forest.parents[v] if forest.parents[v] >= 0 else root
            forced[:, v] = forced[:, parent] & (way[:, parent] == v)
            labels[:, v] = labels[:, parent] & (must[:, v] | (best[:, v] > 0.0) | forced[:, v])
        return labels[:, :n], np.isfinite(best[:, root]) & np.isfinite(lost[:, root])

    def _allowed(self, rows: Labels, forest: LabelForest) -> Truths:
        return np.asarray(rows[:, forest.leaves].any(axis=1))
