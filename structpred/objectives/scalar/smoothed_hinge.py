"""The hinge with a rounded corner."""

import numpy as np

from structpred.core.scalar_loss import DualTable, ScalarLoss
from structpred.core.types import Floats
from structpred.errors import ParameterError


class SmoothedHinge(ScalarLoss):
    """phi(z; y) = 0 for y z >= 1, (1 - y z)^2 / (2 gamma) down to y z = 1 - gamma, 1 - y z - gamma/2 below: (1/gamma)-smooth.

    phi*(-a) = -y a + gamma a^2 / 2, y a in [0, 1] (Shalev-Shwartz and Zhang 2013).

    Parameters
    ----------
    gamma : float
        The width of the corner, > 0; 1 makes the quadratic part as wide as the margin.

    Examples
    --------
    >>> SmoothedHinge(0.5).value(np.array([0.0, 0.75, 2.0]), np.ones(3)).tolist()
    [0.75, 0.0625, 0.0]
    """

    name = "smoothed_hinge"
    signs = True

    def __init__(self, gamma: float = 1.0) -> None:
        if not (np.isfinite(gamma) and gamma > 0.0):
            raise ParameterError(f"gamma must be a positive number, the width of the rounded corner, got {gamma}")
        self.gamma = float(gamma)

    def dual_table(self, y: Floats) -> DualTable:
        """A parabola between 0 and y."""
        return DualTable.of(len(y), y, curvature=self.gamma, low=np.minimum(y, 0.0), high=np.maximum(y, 0.0))
