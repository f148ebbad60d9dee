"""The margin-rescaled hinge of outputs that are known in part."""

import numpy as np

from structpred.core.group_scales import Scale
from structpred.core.types import Floats
from structpred.core.weights import Vector
from structpred.errors import ParameterError
from structpred.task.partial_task import is_partial, less_known
from structpred.task.steps import Step, TaskLike


class LatentHinge:
    """H_i(w) = max_y [loss_weight * loss(y_i, y) + <w, phi(x_i, y)>] - max_{h in A_i} <w, phi(x_i, h)>.

    A_i are the outputs that agree with what is known of y_i (Yu & Joachims 2009, equation 3, with a loss that does not depend on
    h); where all is known it is the margin-rescaled hinge. It is not convex: a step goes towards the best completion at the
    present weights. Online learners take such steps, one instance at a time; `fit` takes the rounds of CCCP instead.

    >>> from structpred.models import ChainLabeler
    >>> X, y = [np.eye(2)] * 3, [["a", None], [None, "b"], ["a", "b"]]
    >>> ChainLabeler("mira").partial_fit(X, y, classes=["a", "b"]).predict(X)[0].tolist()
    ['a', 'b']
    """

    requires: tuple[str | tuple[str, ...], ...] = ("argmax",)
    #: as the hinge it has no log-probabilities, and no fixed scores but those that forbid
    piecewise_linear = True
    #: the second term is concave
    convex = False

    def __init__(self, loss_weight: float = 1.0) -> None:
        if not (np.isfinite(loss_weight) and loss_weight >= 0):
            raise ParameterError(f"loss_weight must be finite and >= 0, got {loss_weight}")
        self.loss_weight = float(loss_weight)

    def certified(self, task: TaskLike) -> bool:
        """No bound on the optimum is known where something is missing."""
        return task.certified and not is_partial(task)

    def term(self, task: TaskLike, w: Vector, i: int, scale: Scale = 1.0) -> Step:
        """A subgradient (-difference), phi(x_i, y) - phi(x_i, h), and the value of H_i at scale * w."""
        return less_known(task.step(w, i, self.loss_weight, scale), task, i, lambda own, k: own.step(w, k, 0.0, scale))

    def offset(self, step: Step) -> float:
        """The constant of the first term's linear piece."""
        return self.loss_weight * step.loss

    def values(self, task: TaskLike, w: Vector) -> Floats:
        """H_i(w) of every instance (upper bounds where the oracle gives bounds)."""
        values = task.violations(w, self.loss_weight)
        if is_partial(task):
            less = [task.allowed.step(w, k, 0.0).violation for k in range(len(task.rows))]
            values[task.rows] = np.maximum(values[task.rows] - np.array(less), 0.0)
        return values
