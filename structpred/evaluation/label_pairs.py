"""Which labels occur together in sets of labels, in truth and as predicted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from structpred.core.types import Integers
from structpred.evaluation.multilabel import both_sides

Counts = Integers


class LabelPair(NamedTuple):
    """Two labels. gold, predicted: how many examples have both of them."""

    label: str
    other: str
    gold: int
    predicted: int

    @property
    def excess(self) -> int:
        """How many more examples are predicted to have both than have them."""
        return self.predicted - self.gold


@dataclass(frozen=True)
class Cooccurrence:
    """How many of n examples have label i and label j: gold[i, j] in truth, predicted[i, j] as predicted.

    names: the labels shown, in the order of the data. On the diagonal are the counts of single labels.
    """

    n: int
    names: list[str]
    gold: Counts
    predicted: Counts

    def pairs(self) -> list[LabelPair]:
        """All pairs of labels, those predicted too often first, those predicted too seldom last."""
        first, second = np.triu_indices(len(self.names), 1)
        found = [
            LabelPair(self.names[i], self.names[j], int(self.gold[i, j]), int(self.predicted[i, j]))
            for i, j in zip(first.tolist(), second.tolist(), strict=True)
        ]
        return sorted(found, key=lambda pair: -pair.excess)


def cooccurrence(gold: Any, predicted: Any, label_names: Sequence[str] | None = None, *, most: int = 60) -> Cooccurrence:
    """Count the pairs of the `most` most frequent labels, in truth and in what is predicted.

    gold: rows of 0 and 1, shape (n_examples, n_labels), or MultiLabelData. Raises DataError as `evaluate_multilabel` does.

    >>> found = cooccurrence([[1, 1], [1, 1], [0, 1]], [[1, 0], [1, 1], [0, 1]], ["sun", "sea"])
    >>> found.gold.tolist(), found.pairs()[0].excess
    ([[2, 2], [2, 3]], -1)
    """
    truth, guess, names = both_sides(gold, predicted, label_names)
    kept = np.sort(np.argsort(-(truth + guess).sum(axis=0), kind="stable")[:most])
    truth, guess = truth[:, kept], guess[:, kept]
    return Cooccurrence(len(truth), [names[k] for k in kept.tolist()], truth.T @ truth, guess.T @ guess)
