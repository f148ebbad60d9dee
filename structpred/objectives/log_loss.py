"""The log loss of conditional random fields, and that of outputs that are known in part."""

from typing import cast

import numpy as np

from structpred.core.group_scales import Scale
from structpred.core.types import Floats
from structpred.core.weights import Vector
from structpred.task.partial_task import is_partial, less_known
from structpred.task.steps import SmoothSurrogate, Step, TaskLike
from structpred.task.task import Task


class MarginalLogLoss(SmoothSurrogate):
    """H_i(w) = log sum_y exp <w, phi(x_i, y)> - log sum_{y in A_i} exp <w, phi(x_i, y)> = -log p(A_i | x_i).

    A_i are the outputs that agree with what is known of y_i (Quattoni et al. 2007; Tsuboi et al. 2008, equation 4); where all is
    known it is the log loss. Smooth, and not convex: trainers that go along its gradient find a local optimum, and there is no
    certificate. The gradient is the difference of two expectations, E_w[phi(x_i, y)] - E_w[phi(x_i, y) | y in A_i].

    Both terms are log losses with one and the same completion of y_i as the truth, which cancels: the second is that of the
    constrained task. So it takes what compiled code there is for either, and about twice the time of the log loss.
    """

    requires: tuple[str | tuple[str, ...], ...] = ("marginals",)
    #: the second term is concave
    convex = False

    def certified(self, task: TaskLike) -> bool:
        """No bound on the optimum is known where something is missing."""
        return task.certified and not is_partial(task)

    def term(self, task: TaskLike, w: Vector, i: int, scale: Scale = 1.0) -> Step:
        """The gradient (-difference) and the value of H_i at scale * w."""
        return less_known(cast(Task, task).soft_step(w, i, scale), task, i, lambda own, k: own.soft_step(w, k, scale))

    def gradient(self, task: TaskLike, w: Vector, shares: Floats) -> tuple[Floats, Floats]:
        """H_i of every instance, and the gradient of sum_i shares_i H_i (flat, float64)."""
        values, gradient = cast(Task, task).log_losses(w, shares)
        if is_partial(task):
            less, slope = task.allowed.log_losses(w, shares[task.rows])
            values[task.rows] = np.maximum(values[task.rows] - less, 0.0)
            gradient -= slope
        return values, gradient


class LogLoss(SmoothSurrogate):
    """H_i(w) = log sum_y exp <w, phi(x_i, y)> - <w, phi(x_i, y_i)> = -log p(y_i | x_i) (Lafferty et al. 2001).

    Smooth and convex. `term` gives its gradient: -difference, where difference = phi(x_i, y_i) - E_w[phi(x_i, y)].
    The structured loss plays no part in it.
    """

    requires: tuple[str | tuple[str, ...], ...] = ("marginals",)

    def term(self, task: TaskLike, w: Vector, i: int, scale: Scale = 1.0) -> Step:
        """The gradient and the value of H_i at scale * w; value and bound are exact."""
        return cast(Task, task).soft_step(w, i, scale)

    def gradient(self, task: TaskLike, w: Vector, shares: Floats) -> tuple[Floats, Floats]:
        """H_i of every instance, and the gradient of sum_i shares_i H_i (flat, float64)."""
        return cast(Task, task).log_losses(w, shares)

    def squared_gradients(self, task: TaskLike, w: Vector, shares: Floats) -> Floats:
        """sum_i shares_i (dH_i / dw_j)^2 for each weight j: the empirical Fisher information, on its diagonal.

        Where the model explains the data, it is about the second derivative along each weight.
        """
        return cast(Task, task).squared_gradients(w, shares)

    def latent(self) -> MarginalLogLoss:
        """The same of outputs that are known in part."""
        return MarginalLogLoss()
