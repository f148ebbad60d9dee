"""The search problem of one instance of any task that makes steps, such as the three-callback task: plain queries only."""

from typing import Any, NamedTuple

import numpy as np

from structpred.core.group_scales import Scale, scaled_dot
from structpred.core.sparse import SparseVector
from structpred.core.weights import Vector
from structpred.errors import MissingCapabilityError
from structpred.slack.problem import NEEDS, Candidate, SlackProblem
from structpred.task.steps import TaskLike


class Output(NamedTuple):
    """An output by what training needs of it: psi = phi(x_i, y_i) - phi(x_i, y), and its loss."""

    difference: SparseVector
    loss: float


class StepProblem(SlackProblem):
    """Instance i at the weights scale * w, by `task.step`: the loss need not split over parts, and nothing can be constrained."""

    def __init__(self, task: TaskLike, w: Vector, i: int, scale: Scale = 1.0) -> None:
        self.task, self.w, self.i, self.scale = task, w, i, scale
        self.truth = Candidate(1.0, 0.0, Output(SparseVector(np.empty(0, np.int64), np.empty(0)), 0.0))

    @property
    def bounded(self) -> bool:
        """Whether plain queries come with a bound."""
        return self.task.certified

    def require(self, method: str) -> None:
        """Raise MissingCapabilityError for searches that need more than plain queries."""
        if method in NEEDS:
            raise MissingCapabilityError(
                f"slack search {method!r} needs {' or '.join(NEEDS[method])}, but {type(self.task).__name__} offers plain "
                "queries alone; take 'auto' or 'hull', or write an Oracle and use Task"
            )

    def plain(self, lam: float) -> Candidate:
        """A step with the loss weighted by lam."""
        step = self.task.step(self.w, self.i, lam, self.scale)
        psi = SparseVector(step.difference.indices.copy(), step.difference.values.copy())
        bound = 1.0 + max(step.bound, step.violation) if self.task.certified else np.inf
        return self.rescore(Output(psi, step.loss))._replace(bound=bound)

    def rescore(self, label: Any) -> Candidate:
        """The point of an output found earlier."""
        return Candidate(1.0 - scaled_dot(self.w, label.difference, self.scale), label.loss, label)

    def difference(self, label: Any) -> SparseVector:
        """psi of an output."""
        found: SparseVector = label.difference
        return found
