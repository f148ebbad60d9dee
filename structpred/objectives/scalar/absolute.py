"""The absolute error of median regression."""

from structpred.core.scalar_loss import DualTable, ScalarLoss
from structpred.core.types import Floats


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
