"""Rankings of n items, and a loss of 1 - NDCG."""

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

import structpred
from structpred.core.costs import PartCosts


class Rankings(structpred.Oracle):
    """shape = (n,). Part i * n + r is on when item i has rank r; labels[i] is its rank."""

    def n_parts(self, shape: Any) -> int:
        return shape[0] ** 2

    def argmax(self, scores: Any, shape: Any) -> Any:
        return linear_sum_assignment(scores.reshape(shape[0], -1), maximize=True)[1].astype(np.int64)

    def parts(self, labels: Any, shape: Any) -> Any:
        if sorted(labels.tolist()) != list(range(shape[0])):
            raise ValueError("each rank is given once")
        return np.arange(shape[0]) * shape[0] + labels

    def enumerate(self, shape: Any) -> Iterator[Any]:
        return (np.array(ranks, dtype=np.int64) for ranks in permutations(range(shape[0])))

    @staticmethod
    def example_shapes() -> list[Any]:
        return [(1,), (2,), (4,)]


class LostGain:
    """1 - NDCG: the gain of an item is 2^(n - its true rank) - 1, discounted by log2(2 + rank)."""

    def costs(self, labels: Any, shape: Any, oracle: Any) -> PartCosts:
        gain, discount = 2.0 ** (shape[0] - labels) - 1.0, 1.0 / np.log2(2.0 + np.arange(shape[0]))
        return PartCosts(1.0, -np.outer(gain, discount).ravel() / float(gain @ discount[labels]))
