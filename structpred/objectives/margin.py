"""The margin-rescaled hinge, the perceptron loss as its case without a margin, and the hinge of what is known in part."""

from typing import Any

import numpy as np

from structpred.core.group_scales import Scale, scaled_dot
from structpred.core.types import ArrayLike, Floats
from structpred.core.weights import Vector
from structpred.rows.scalar_loss import DualTable
from structpred.runtime.settings import checked_nonnegative
from structpred.task.partial_task import is_partial, less_known
from structpred.task.steps import Step, SummedPieces, TaskLike, Terms


class _Hinge:
    """What both share. loss_weight: how much the loss counts, finite and >= 0; ParameterError for others."""

    requires: tuple[str | tuple[str, ...], ...] = ("argmax",)
    #: a maximum of functions linear in w, so cutting planes and Frank-Wolfe apply where nothing is subtracted from it
    piecewise_linear = True

    def __init__(self, loss_weight: float = 1.0) -> None:
        self.loss_weight = checked_nonnegative(loss_weight, "loss_weight")

    def offset(self, step: Step) -> float:
        """The constant of the maximum's linear piece: violation + <w, difference> where that is all."""
        return self.loss_weight * step.loss


#: 1 - 2 both / (on + true), and 0 or 1, of the number of wrong labels and the sum of those that are on and those that are true
SET_LOSSES = {"f1": lambda wrong, on: wrong / np.maximum(on, 1), "subset": lambda wrong, on: np.minimum(wrong, 1.0)}


class SetHinge(SummedPieces, _Hinge):
    """The margin-rescaled hinge of a loss in SET_LOSSES, which does not split over labels. Its largest piece is the best output
    of those with as many labels rightly and wrongly on (Joachims 2005, algorithm 2), which a sum of counts tells.
    """

    requires: tuple[str | tuple[str, ...], ...] = ("argmax_per_loss",)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def term(self, task: Any, w: Vector, i: int, scale: Scale = 1.0) -> Step:
        """The linear piece that is largest at scale * w."""
        scores, true = task.scores(w, i, scale), task.labels[i]
        counts = np.zeros(len(scores))  # a true label that is on counts more than all wrong ones
        counts[1 : 2 * len(true) : 2] = np.where(true, 1 + np.count_nonzero(true == 0), 1)
        _, best, found = task.oracle.argmax_per_loss(scores, counts, task.shapes[i])
        losses = SET_LOSSES[self.name]((np.array(found) != true).sum(axis=1), np.sum(found, axis=1) + true.sum())
        difference, loss = task.difference(i, found[k := int((best + losses).argmax())]), float(losses[k])
        violation = loss - scaled_dot(w, difference, scale)
        return Step(difference, loss, violation, violation)

    def values(self, task: TaskLike, w: Vector) -> Floats:
        """H_i(w) of every instance."""
        return self.terms(task, w, range(len(task))).bounds


class LatentHinge(_Hinge):
    """H_i(w) = max_y [loss_weight * loss(y_i, y) + <w, phi(x_i, y)>] - max_{h in A_i} <w, phi(x_i, h)>.

    A_i are the outputs that agree with what is known of y_i (Yu & Joachims 2009, equation 3, with a loss that does not depend on
    h); where all is known it is the margin-rescaled hinge. It is not convex: a step goes towards the best completion at the
    present weights. Online learners take such steps, one instance at a time; `fit` takes the rounds of CCCP instead.

    >>> from structpred.models import ChainLabeler
    >>> X, y = [np.eye(2)] * 3, [["a", None], [None, "b"], ["a", "b"]]
    >>> ChainLabeler("mira").partial_fit(X, y, classes=["a", "b"]).predict(X)[0].tolist()
    ['a', 'b']
    """

    #: the second term is concave
    convex = False

    def certified(self, task: TaskLike) -> bool:
        """No bound on the optimum is known where something is missing."""
        return task.certified and not is_partial(task)

    def term(self, task: TaskLike, w: Vector, i: int, scale: Scale = 1.0) -> Step:
        """A subgradient (-difference), phi(x_i, y) - phi(x_i, h), and the value of H_i at scale * w."""
        return less_known(task.step(w, i, self.loss_weight, scale), task, i, lambda own, k: own.step(w, k, 0.0, scale))

    def values(self, task: TaskLike, w: Vector) -> Floats:
        """H_i(w) of every instance (upper bounds where the oracle gives bounds)."""
        values = task.violations(w, self.loss_weight)
        if is_partial(task):
            less = [task.allowed.step(w, k, 0.0).violation for k in range(len(task.rows))]
            values[task.rows] = np.maximum(values[task.rows] - np.array(less), 0.0)
        return values


class MarginRescaling(_Hinge):
    """H_i(w) = max_y  loss_weight * loss(y_i, y) + <w, phi(x_i, y)> - <w, phi(x_i, y_i)>.

    loss_weight = 1 is the margin-rescaled structured hinge (Taskar et al. 2003; Tsochantaridis et al. 2005, eq. 7),
    0 the perceptron loss (Collins 2002). H_i is convex and >= 0, an upper bound of the loss if loss_weight = 1.
    """

    def term(self, task: TaskLike, w: Vector, i: int, scale: Scale = 1.0) -> Step:
        """The linear piece of H_i that is largest at scale * w.

        Its slope is -difference, its constant loss_weight * loss, its value `violation`; `bound` >= H_i.
        """
        return task.step(w, i, self.loss_weight, scale)

    def terms(self, task: TaskLike, w: Vector, rows: ArrayLike, shares: ArrayLike | None = None) -> Terms:
        """The pieces that `term` gives for these rows, summed up with these shares (ones if not given)."""
        return task.terms(w, rows, shares, loss_weight=self.loss_weight)

    def values(self, task: TaskLike, w: Vector) -> Floats:
        """H_i(w) of every instance (upper bounds where the oracle gives bounds)."""
        return task.violations(w, self.loss_weight)

    def unsettled(self, task: TaskLike, w: Vector) -> Floats:
        """By how much the oracle's bound lies above the best output that it found, for each instance; 0 where it is exact.

        This part of a duality gap does not go away with more training.
        """
        if not task.certified or getattr(getattr(task, "oracle", None), "exact", True):
            return np.zeros(len(task))
        steps = [self.term(task, w, i) for i in range(len(task))]
        return np.array([step.bound - max(step.violation, 0.0) for step in steps])

    def dual_table(self, y: Floats) -> DualTable:
        """Over signed rows it is a loss of one score, max(0, loss_weight - z): alpha_i in [0, 1]."""
        return DualTable.of(len(y), self.loss_weight, low=0.0, high=1.0)

    def latent(self) -> LatentHinge:
        """The same of outputs that are known in part."""
        return LatentHinge(self.loss_weight)


def perceptron_loss() -> MarginRescaling:
    """The case without a margin: zero where the prediction is right."""
    return MarginRescaling(loss_weight=0.0)
