"""The soft-max loss."""

from typing import cast

import numpy as np
import numpy.typing as npt

from structpred.core.multiclass_loss import MulticlassLoss
from structpred.core.steps import SoftTask, TaskLike
from structpred.core.types import Floats
from structpred.core.weights import Vector


class Softmax(MulticlassLoss):
    """phi(z; y) = log sum_j exp(z_j - z_y), the log loss of multinomial logistic regression (equation 20).

    phi*(-alpha) = sum_j p_j log p_j, p = e_y - alpha, over the whole simplex. Smooth: no second derivative is above 1/2.

    >>> loss = Softmax()
    >>> round(loss.value([0.0, 0.0], 0), 6), loss.subgradient([0.0, 0.0], 0).tolist()
    (0.693147, [-0.5, 0.5])
    """

    name = "softmax"
    points = 0
    gamma = 2.0
    piecewise_linear = False

    def gradient(self, task: TaskLike, w: Vector, shares: npt.NDArray[np.float64]) -> tuple[Floats, Floats]:
        """H_i of every instance, and the gradient of sum_i shares_i H_i."""
        return cast(SoftTask, task).log_losses(w, shares)
