"""What corners are stored as: part counts where outputs are sets of parts, else the differences of features themselves.

A difference of joint features is psi = Psi_i^T d, with d the counts of the parts in which an output differs from the truth. d is
short, and is all that a visit needs: <w, psi> = theta_i . d with the part scores theta_i = Psi_i w, and the inner product with
another difference is the same at other weights.
"""

from typing import NamedTuple, cast

import numpy as np

from structpred.core.sparse import SparseVector
from structpred.core.stand_ins import stand_in
from structpred.core.weights import Vector
from structpred.objectives.margin import MarginRescaling
from structpred.task.part_identity import last_difference, over_parts
from structpred.task.steps import Step, TaskLike, offers
from structpred.task.task import Task
from structpred.trainers.problem import Problem, Surrogate, once_per_problem


class Found(NamedTuple):
    """What the oracle found: the step, its corner d, and the difference of features of d where it is known already."""

    step: Step
    corner: SparseVector
    difference: SparseVector | None


class PartSpace:
    """Part counts, for a Task.

    sizes: how many coordinates the corners of block i have. compiled: (kernels, arguments) where features make whole visits in
    compiled calls, else None.
    """

    def __init__(self, task: Task) -> None:
        self.task, self.features, self.sizes, self._over_parts = task, task.features, task.inference.sizes, over_parts(task)
        calls = stand_in(self.features, "corner_calls", ("scores", "adjoint"))
        self.compiled = None if calls is None else calls()

    def find(self, surrogate: Surrogate, w: Vector, i: int) -> Found:
        """The piece of H_i that is largest at w: by a compiled step where there is one, else the surrogate is asked at the part
        scores.
        """
        if type(surrogate) is MarginRescaling:
            step = surrogate.term(self.task, w, i)
            if (corner := last_difference(self.task, i)) is not None:
                return Found(step, corner, step.difference)
        step = surrogate.term(self._over_parts, self.scores(w, i), i)
        return Found(step, step.difference, None)

    def scores(self, w: Vector, i: int) -> Vector:
        """What each coordinate of block i counts for at the weights w: part scores."""
        return self.features.scores(w, i)

    def lift(self, i: int, corner: SparseVector) -> SparseVector:
        """psi, the difference of features that belongs to a corner: Psi_i^T d."""
        return self.features.adjoint(i, *corner)


class FeatureSpace:
    """Differences of features as they are, for a task of which no more is known."""

    compiled = None

    def __init__(self, task: TaskLike) -> None:
        self.task, self.sizes = task, np.full(len(task), task.dim)

    def find(self, surrogate: Surrogate, w: Vector, i: int) -> Found:
        """One step of the task."""
        step = surrogate.term(self.task, w, i)
        return Found(step, step.difference, step.difference)

    def scores(self, w: Vector, i: int) -> Vector:
        """The weights."""
        return w

    def lift(self, i: int, corner: SparseVector) -> SparseVector:
        """Itself."""
        return corner


@once_per_problem
def corner_space(problem: Problem) -> PartSpace | FeatureSpace:
    """Parts where the task has them."""
    return PartSpace(cast(Task, problem.task)) if offers(problem.task, "parts") else FeatureSpace(problem.task)
