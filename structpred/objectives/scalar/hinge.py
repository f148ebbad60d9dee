"""The hinge of support vector machines."""

import numpy as np

from structpred.core.scalar_loss import DualTable, ScalarLoss
from structpred.core.types import Floats


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
