"""The margin-rescaled hinge, and the perceptron loss as its case without a margin."""

import numpy.typing as npt

from structpred.core.group_scales import Scale
from structpred.core.types import Floats
from structpred.core.weights import Vector
from structpred.objectives.latent_hinge import LatentHinge
from structpred.rows.scalar_loss import DualTable
from structpred.task.steps import Step, TaskLike, Terms


class MarginRescaling:
    """H_i(w) = max_y  loss_weight * loss(y_i, y) + <w, phi(x_i, y)> - <w, phi(x_i, y_i)>.

    loss_weight = 1 is the margin-rescaled structured hinge (Taskar et al. 2003; Tsochantaridis et al. 2005, eq. 7),
    0 the perceptron loss (Collins 2002). H_i is convex and >= 0, an upper bound of the loss if loss_weight = 1.
    """

    requires: tuple[str | tuple[str, ...], ...] = ("argmax",)
    #: H_i is a maximum of functions linear in w, so cutting planes and Frank-Wolfe apply
    piecewise_linear = True

    def __init__(self, loss_weight: float = 1.0) -> None:
        self.loss_weight = LatentHinge(loss_weight).loss_weight

    def term(self, task: TaskLike, w: Vector, i: int, scale: Scale = 1.0) -> Step:
        """The linear piece of H_i that is largest at scale * w.

        Its slope is -difference, its constant loss_weight * loss, its value `violation`; `bound` >= H_i.
        """
        return task.step(w, i, self.loss_weight, scale)

    def offset(self, step: Step) -> float:
        """The constant of the linear piece: violation + <w, difference>."""
        return self.loss_weight * step.loss

    def terms(self, task: TaskLike, w: Vector, rows: npt.ArrayLike, shares: npt.ArrayLike | None = None) -> Terms:
        """The pieces that `term` gives for these rows, summed up with these shares (ones if not given)."""
        return task.terms(w, rows, shares, loss_weight=self.loss_weight)

    def values(self, task: TaskLike, w: Vector) -> Floats:
        """H_i(w) of every instance (upper bounds where the oracle gives bounds)."""
        return task.violations(w, self.loss_weight)

    def dual_table(self, y: Floats) -> DualTable:
        """Over signed rows it is a loss of one score, max(0, loss_weight - z): alpha_i in [0, 1]."""
        return DualTable.of(len(y), self.loss_weight, low=0.0, high=1.0)

    def latent(self) -> LatentHinge:
        """The same of outputs that are known in part."""
        return LatentHinge(self.loss_weight)


def perceptron_loss() -> MarginRescaling:
    """The case without a margin: zero where the prediction is right."""
    return MarginRescaling(loss_weight=0.0)
