"""Losses of an error: squared, absolute, and between the two."""

import numpy as np

from structpred.core.types import Floats
from structpred.rows.scalar_loss import DualTable, ScalarLoss
from structpred.runtime.settings import checked_positive


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


class Absolute(ScalarLoss):
    """phi(z; y) = |z - y|: phi*(-a) = -y a, a in [-1, 1].

    >>> import numpy as np
    >>> Absolute().value(np.array([3.0]), np.array([5.0])).tolist()
    [2.0]
    """

    name = "absolute"
    piecewise_linear = True

    def dual_table(self, y: Floats) -> DualTable:
        """Linear between -1 and 1."""
        return DualTable.of(len(y), y, low=-1.0, high=1.0)


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
        self.gamma = checked_positive(gamma, "gamma, in the unit of the targets,")

    def dual_table(self, y: Floats) -> DualTable:
        """A parabola between -1 and 1."""
        return DualTable.of(len(y), y, curvature=self.gamma, low=-1.0, high=1.0)
