"""The l1 norm in addition to the squared Euclidean one: sparse weights."""

import numpy as np

from structpred.core.regulariser import DualMap, Regulariser
from structpred.errors import ParameterError
from structpred.objectives.regularisers.l2 import L2


class L1(Regulariser):
    """r(w) = 1/2 |w|^2 + mu |w|_1. Its dual map is soft thresholding: weights with |u_j| <= mu are zero."""

    name = "l1"
    strong_convexity = 1.0

    def __init__(self, mu: float = 1.0) -> None:
        if isinstance(mu, bool) or not isinstance(mu, int | float | np.number) or not (np.isfinite(mu) and mu >= 0):
            raise ParameterError(f"mu, the weight of the l1 norm, must be a number >= 0, got {mu!r}")
        self.mu = float(mu)

    def dual_map(self) -> DualMap:
        """w_j = u_j - clip(u_j, -mu, mu)."""
        return DualMap.alike(1.0, -self.mu, self.mu)

    def smooth_part(self) -> tuple[L2, float]:
        """(1/2 |w|^2, mu)."""
        return L2(), self.mu
