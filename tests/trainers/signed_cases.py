"""A regulariser with signs of all kinds, which the tests of linear trainers share."""

import numpy as np

from structpred.core.regulariser import DualMap, Regulariser


class Signed(Regulariser):
    """1/2 |w|^2 over w with the given signs, the last weight frozen at zero if `frozen`."""

    strong_convexity = 1.0

    def __init__(self, signs: np.ndarray, *, frozen: bool = False) -> None:
        self.signs, self.frozen = np.asarray(signs, dtype=np.float64), frozen

    def dual_map(self) -> DualMap:
        """Each weight on its own."""
        c = self.signs
        scale = np.ones(len(c))
        scale[-1] -= self.frozen
        return DualMap.of(1 + np.arange(len(c)), scale, np.where(c > 0, -np.inf, 0.0), np.where(c < 0, np.inf, 0.0))
