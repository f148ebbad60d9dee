"""Losses of a margin: the hinge, its smoothed form, and the logistic loss."""

import numpy as np

from structpred.core.types import Floats
from structpred.rows.scalar_loss import DualTable, ScalarLoss
from structpred.runtime.settings import checked_positive


class Hinge(ScalarLoss):
    """phi(z; y) = max(0, 1 - y z), y of +1 and -1: phi*(-a) = -y a, y a in [0, 1].

    >>> Hinge().value(np.array([0.25, 0.25]), np.array([1.0, -1.0])).tolist()
    [0.75, 1.25]
    """

    name = "hinge"
    signs = True
    piecewise_linear = True

    def dual_table(self, y: Floats) -> DualTable:
        """Linear between 0 and y."""
        return DualTable.of(len(y), y, low=np.minimum(y, 0.0), high=np.maximum(y, 0.0))


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
        self.gamma = checked_positive(gamma, "gamma, the width of the rounded corner,")

    def dual_table(self, y: Floats) -> DualTable:
        """A parabola between 0 and y."""
        return DualTable.of(len(y), y, curvature=self.gamma, low=np.minimum(y, 0.0), high=np.maximum(y, 0.0))


class Logistic(ScalarLoss):
    """phi(z; y) = log(1 + exp(-y z)) = -log p(y | z), y of +1 and -1; 0.25-smooth, so gamma = 4.

    phi*(-a) = b log b + (1 - b) log(1 - b), b = y a in [0, 1].

    >>> Logistic().value(np.array([0.0, -800.0]), np.ones(2)).round(6).tolist()
    [0.693147, 800.0]
    """

    name = "logistic"
    signs = True
    gamma = 4.0

    def value(self, z: Floats, y: Floats) -> Floats:
        """Without the dual: the small numbers of large margins keep all their digits."""
        return np.logaddexp(0.0, -y * z)

    def derivative(self, z: Floats, y: Floats) -> Floats:
        """-y / (1 + exp(y z))."""
        from scipy.special import expit

        return np.asarray(-y * expit(-y * z))

    def dual_table(self, y: Floats) -> DualTable:
        """The negative entropy of y a."""
        return DualTable.of(len(y), 0.0, low=np.minimum(y, 0.0), high=np.maximum(y, 0.0), entropy=1.0)
