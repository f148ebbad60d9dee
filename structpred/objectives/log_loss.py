"""The log loss of conditional random fields."""

from typing import cast

import numpy as np
import numpy.typing as npt

from structpred.core.group_scales import Scale
from structpred.core.sparse import sparse_dot
from structpred.core.types import Floats
from structpred.core.weights import Vector
from structpred.objectives.marginal_log_loss import MarginalLogLoss
from structpred.task.steps import Step, TaskLike, Terms
from structpred.task.task import Task
from structpred.task.terms import summed


class LogLoss:
    """H_i(w) = log sum_y exp <w, phi(x_i, y)> - <w, phi(x_i, y_i)> = -log p(y_i | x_i) (Lafferty et al. 2001).

    Smooth and convex. `term` gives its gradient: -difference, where difference = phi(x_i, y_i) - E_w[phi(x_i, y)].
    The structured loss plays no part in it.
    """

    requires: tuple[str | tuple[str, ...], ...] = ("marginals",)
    piecewise_linear = False

    def term(self, task: TaskLike, w: Vector, i: int, scale: Scale = 1.0) -> Step:
        """The gradient and the value of H_i at scale * w; value and bound are exact."""
        return cast(Task, task).soft_step(w, i, scale)

    def offset(self, step: Step) -> float:
        """There are no linear pieces, so there is nothing to offset."""
        raise TypeError("the log loss is not a maximum of linear functions; use a trainer for smooth losses")

    def values(self, task: TaskLike, w: Vector) -> Floats:
        """-log p(y_i | x_i) of every instance."""
        return self.gradient(task, w, np.ones(len(task)))[0]

    def terms(self, task: TaskLike, w: Vector, rows: npt.ArrayLike, shares: npt.ArrayLike | None = None) -> Terms:
        """Gradient and values of these rows, summed up with these shares (ones if not given): the tangent at w."""
        return summed(
            (len(task), task.dim), rows, shares, lambda i: self.term(task, w, i),
            lambda step: step.violation + sparse_dot(w, step.difference),
        )  # fmt: skip

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
