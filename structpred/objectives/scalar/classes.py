"""Losses of one label out of many."""

from typing import cast

import numpy as np

from structpred.core.types import Floats
from structpred.core.weights import Vector
from structpred.rows.multiclass_loss import MulticlassLoss
from structpred.runtime.settings import checked_whole
from structpred.task.steps import TaskLike
from structpred.task.task import Task


class MaxHinge(MulticlassLoss):
    """phi(z; y) = max_j z_j - z_y + [j != y] (Crammer and Singer 2001; equation 21, where 1 - delta is meant).

    phi*(-alpha) = p_y - 1, p = e_y - alpha, over the simplex. `MarginRescaling` is the same with the costs of the task's loss.

    >>> MaxHinge().value([0.0, 0.5, -3.0], 0), MaxHinge().subgradient([0.0, 0.5, -3.0], 0).tolist()
    (1.5, [-1.0, 1.0, 0.0])
    """

    name = "max_hinge"
    points = 1


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

    def gradient(self, task: TaskLike, w: Vector, shares: Floats) -> tuple[Floats, Floats]:
        """H_i of every instance, and the gradient of sum_i shares_i H_i."""
        return cast(Task, task).log_losses(w, shares)


class TopK(MulticlassLoss):
    """phi(z; y) = max(0, the mean of the k largest z_j - z_y + [j != y]), for the k best guesses (Lapin, Hein and Schiele 2015).

    The true class, whose term is 0, is one of those that the k largest are taken from. For k = 1 the hinge of `MaxHinge`.
    phi*(-alpha) = -sum v, v = -alpha at the wrong classes, over  0 <= v_j <= min(1/k, sum v / (k - 1)),  sum v <= 1: together
    with a free entry for the true class these are the points of the top-k simplex (`project_onto_topk_simplex`).

    Parameters
    ----------
    k : int
        1 <= k < the number of classes.

    Raises
    ------
    ParameterError
        For another k.

    Examples
    --------
    >>> TopK(2).value([0.0, 0.5, -3.0], 0), TopK(2).value([9.0, 0.5, -3.0], 0)
    (0.75, 0.0)
    """

    name = "top_k"
    points = 2

    def __init__(self, k: int = 2) -> None:
        self.k = checked_whole(k, "k")

    def _contains(self, p: Floats, v: Floats, near: float) -> bool:
        total = float(v.sum())
        most = min(1.0, total * self.k / (self.k - 1.0)) if self.k > 1 else 1.0
        return bool(v.max() <= most / self.k + near)


class SignedTopK(MulticlassLoss):
    """phi(z; y) = the mean of the k largest z_j - z_y + [j != y], as printed in equation 22: it may be negative for k > 1.

    A sample that is classified well then pays for others, without a bound; the optimal value may be negative. `TopK` has no such
    rewards. phi*(-alpha) = p_y - 1, p = e_y - alpha, over the simplex with p_j <= 1/k. Trainers that rely on phi >= 0 refuse it.

    Parameters
    ----------
    k : int
        1 <= k < the number of classes.

    Raises
    ------
    ParameterError
        For another k.

    Examples
    --------
    >>> SignedTopK(2).value([9.0, 0.5, -3.0], 0)
    -3.75
    """

    name = "signed_top_k"
    points = 1
    may_be_negative = True

    def __init__(self, k: int = 2) -> None:
        self.k = checked_whole(k, "k")

    def start(self, n_labels: int, y: int) -> Floats:
        """1/k at the truth, the rest in equal parts: e_y is no point."""
        p = np.full(n_labels, (1.0 - 1.0 / self.k) / max(n_labels - 1, 1))
        p[y] = 1.0 / self.k
        return p
