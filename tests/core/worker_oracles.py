"""Oracles in plain Python, which worker processes import."""

import os
import time

import numpy as np

from structpred.core.oracle import Oracle
from structpred.errors import InfeasibleError


class Interval(Oracle):
    """One or more neighbours out of n items; scores above 1e20 make it fail."""

    def n_parts(self, shape: tuple[int, ...]) -> int:
        """One an item."""
        return shape[0]

    def argmax(self, scores: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """By listing."""
        if scores.max() > 1e25:
            raise InfeasibleError("nothing fits")
        if scores.max() > 1e20:
            raise RuntimeError("the solver gave up")
        ends = [(a, b) for a in range(shape[0]) for b in range(a + 1, shape[0] + 1)]
        a, b = max(ends, key=lambda own: scores[own[0] : own[1]].sum())
        return np.arange(a, b)

    def parts(self, labels: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """The items."""
        return labels

    def marginals(self, scores: np.ndarray, shape: tuple[int, ...]) -> tuple[float, np.ndarray]:
        """By listing."""
        ends = [(a, b) for a in range(shape[0]) for b in range(a + 1, shape[0] + 1)]
        sums = np.array([scores[a:b].sum() for a, b in ends])
        weights = np.exp(sums - sums.max())
        mu = sum(
            weight * (np.arange(shape[0]) >= a) * (np.arange(shape[0]) < b) for weight, (a, b) in zip(weights, ends, strict=True)
        )
        return float(np.log(weights.sum()) + sums.max()), mu / weights.sum()

    @staticmethod
    def example_shapes() -> list[tuple[int, ...]]:
        """Small ones."""
        return [(1,), (4,)]


class Bounded(Interval):
    """The same, inexact, with a bound."""

    exact = False

    def argmax_bound(self, scores: np.ndarray, shape: tuple[int, ...]) -> tuple[np.ndarray, float]:
        """The sum of what is positive is one."""
        return self.argmax(scores, shape), float(np.maximum(scores, 0.0).sum())


class Endless(Interval):
    """It takes longer than any test."""

    def argmax(self, scores: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Say that it has begun, then go on and on."""
        os.write(1, b"begun\n")  # print may write the line and its end apart, and two workers mix
        while True:
            time.sleep(0.01)


class Unreadable(Interval):
    """It can be pickled, and cannot be read."""

    def __reduce__(self) -> tuple[object, ...]:
        return int, ("no number",)
