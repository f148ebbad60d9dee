"""The logistic loss."""

import numpy as np

from structpred.core.scalar_loss import DualTable, ScalarLoss
from structpred.core.types import Floats


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
