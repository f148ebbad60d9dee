"""A structure whose outputs vary in length, and whose shape carries data: the best subset that a budget allows."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

import structpred


@dataclass(frozen=True)
class Budget:
    """What each item costs, and how much may be spent."""

    prices: tuple[float, ...]
    limit: float

    def allows(self, items: np.ndarray) -> bool:
        """Whether the items may be taken together."""
        return sum(self.prices[k] for k in items) <= self.limit + 1e-12


class Subsets(structpred.Oracle):
    """shape: a Budget; part k is on when item k is taken; labels are the items taken, in order."""

    def n_parts(self, shape: Budget) -> int:  # type: ignore[override]
        return len(shape.prices)

    def enumerate(self, shape: Budget) -> Iterator[np.ndarray]:
        n = len(shape.prices)
        sets = (np.array(items, dtype=np.int64) for size in range(n + 1) for items in combinations(range(n), size))
        return (items for items in sets if shape.allows(items))

    def argmax(self, scores: np.ndarray, shape: Budget) -> np.ndarray:  # type: ignore[override]
        return max(self.enumerate(shape), key=lambda items: scores[items].sum())

    def parts(self, labels: np.ndarray, shape: Budget) -> np.ndarray:  # type: ignore[override]
        if not shape.allows(labels):
            raise ValueError(f"the items {labels.tolist()} cost more than {shape.limit}")
        return labels

    @staticmethod
    def example_shapes() -> list[Budget]:  # type: ignore[override]
        return [Budget((1.0,), 1.0), Budget((1.0, 0.5, 2.0), 1.5)]


def planted(n: int, seed: int = 0) -> tuple[list[structpred.Instance], list[np.ndarray]]:
    """Random items and budgets, and the best subsets under hidden weights."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        size = int(rng.integers(2, 5))
        shape = Budget(tuple(rng.uniform(0.5, 2.0, size).tolist()), 2.0)
        rows = rng.normal(size=(size, 3))
        X.append(structpred.Instance(rows, shape))
        y.append(Subsets().argmax(rows @ [2.0, -1.0, 0.5], shape))
    return X, y
