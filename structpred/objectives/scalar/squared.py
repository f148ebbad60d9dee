"""The squared error of ridge regression."""

import numpy as np

from structpred.core.scalar_loss import DualTable, ScalarLoss
from structpred.core.types import Floats


class Squared(ScalarLoss):
    """phi(z; y) = (z - y)^2 / 2: phi*(-a) = -y a + a^2 / 2, for any a.

    >>> Squared().value(np.array([3.0]), np.array([1.0])).tolist()
    [2.0]
    """

    name = "squared"
    gamma = 1.0

    def dual_table(self, y: Floats) -> DualTable:
        """A parabola without ends."""
        return DualTable.of(len(y), y, curvature=1.0, low=-np.inf, high=np.inf)
