"""At most k of n items; a loss that counts the items that are missed and those that are too many."""

from collections.abc import Iterator
from itertools import chain, combinations
from typing import Any

import numpy as np

import structpred
from structpred.core.costs import PartCosts


class Subsets(structpred.Oracle):
    """shape = (n, k). Part i is on when item i is chosen; labels are the items chosen, ascending."""

    def n_parts(self, shape: Any) -> int:
        return shape[0]

    def argmax(self, scores: Any, shape: Any) -> Any:
        best = np.argsort(-scores, kind="stable")[: shape[1]]
        return np.sort(best[scores[best] > 0.0])

    def parts(self, labels: Any, shape: Any) -> Any:
        if len(labels) > shape[1] or (np.diff(labels) <= 0).any() or ((labels < 0) | (labels >= shape[0])).any():
            raise ValueError(f"at most {shape[1]} different items below {shape[0]}, ascending")
        return labels

    def enumerate(self, shape: Any) -> Iterator[Any]:
        sizes = range(min(shape) + 1)
        return (np.array(y, dtype=np.int64) for y in chain.from_iterable(combinations(range(shape[0]), k) for k in sizes))

    @staticmethod
    def example_shapes() -> list[Any]:
        return [(1, 1), (3, 0), (4, 2), (5, 3)]


class Differences:
    """The number of items that are in one of the two subsets only."""

    def costs(self, labels: Any, shape: Any, oracle: Any) -> PartCosts:
        costs = np.ones(oracle.n_parts(shape))
        costs[oracle.parts(labels, shape)] = -1.0
        return PartCosts(float(len(labels)), costs)
