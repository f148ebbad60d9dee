"""The l1 norm: in addition to the squared Euclidean one, and alone."""

from typing import cast

import numpy as np

from structpred.core.regulariser import DualMap, Pieces, Regulariser, pieces_of
from structpred.core.weights import Vector
from structpred.objectives.regularisers.group_norms import nearer_to_the_truth
from structpred.objectives.regularisers.l2 import L2
from structpred.projections.prox.entries import prox_l1
from structpred.runtime.settings import checked_nonnegative


class L1(Regulariser):
    """r(w) = 1/2 |w|^2 + mu |w|_1. Its dual map is soft thresholding: weights with |u_j| <= mu are zero."""

    name = "l1"
    strong_convexity = 1.0

    def __init__(self, mu: float = 1.0) -> None:
        self.mu = checked_nonnegative(mu, "mu, the weight of the l1 norm,")

    def dual_map(self) -> DualMap:
        """w_j = u_j - clip(u_j, -mu, mu)."""
        return DualMap.alike(1.0, -self.mu, self.mu)

    def smooth_part(self) -> tuple[L2, float]:
        """(1/2 |w|^2, mu)."""
        return L2(), self.mu


class Lasso(Regulariser):
    """r(w) = mu |w|_1: few weights that are not zero, without the square of `l1`, so without a dual map.

    Its conjugate is 0 where all abs(u_j) <= mu, inf elsewhere.
    """

    name = "lasso"

    def __init__(self, mu: float = 1.0) -> None:
        self.mu = L1(mu).mu

    def value(self, w: Vector) -> float:
        """Mu |w|_1."""
        return self.mu * sum(float(np.abs(piece).sum()) for piece in pieces_of(w))

    def prox(self, w: Vector, step: float) -> Vector:
        """Soft thresholds."""
        return cast(Vector, prox_l1(w.astype(np.float64), self.mu * step).astype(w.dtype))

    def bound(self, loss: float, lam: float, u: Pieces) -> float:
        """The loss, after a move towards the truth that makes all abs(u_j) <= mu."""
        largest = max((float(np.abs(piece).max(initial=0.0)) for piece in u), default=0.0)
        return nearer_to_the_truth(loss, largest / self.mu if self.mu else np.inf if largest else 0.0)

    def reach(self, value: float) -> float:
        """No Euclidean norm is above the l1 norm."""
        return value / self.mu if self.mu else np.inf
