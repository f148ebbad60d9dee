"""Huber's loss: squared near the target, absolute far from it."""

import numpy as np

from structpred.core.scalar_loss import DualTable, ScalarLoss
from structpred.core.types import Floats
from structpred.errors import ParameterError


class Huber(ScalarLoss):
    """phi(z; y) = (z - y)^2 / (2 gamma) up to |z - y| = gamma, |z - y| - gamma/2 beyond: (1/gamma)-smooth (Huber 1964).

    phi*(-a) = -y a + gamma a^2 / 2, a in [-1, 1].

    Parameters
    ----------
    gamma : float
        How far from the target an error counts by its square, in the unit of the targets, > 0.

    Examples
    --------
    >>> Huber(2.0).value(np.array([1.0, 6.0]), np.zeros(2)).tolist()
    [0.25, 5.0]
    """

    name = "huber"

    def __init__(self, gamma: float = 1.0) -> None:
        if not (np.isfinite(gamma) and gamma > 0.0):
            raise ParameterError(f"gamma must be a positive number in the unit of the targets, got {gamma}")
        self.gamma = float(gamma)

    def dual_table(self, y: Floats) -> DualTable:
        """A parabola between -1 and 1."""
        return DualTable.of(len(y), y, curvature=self.gamma, low=-1.0, high=1.0)
