"""What corners are stored as: part counts where outputs are sets of parts, else the differences of features themselves.

A difference of joint features is psi = Psi_i^T d, with d the counts of the parts in which an output differs from the truth. d is
short, and is all that a visit needs: <w, psi> = theta_i . d with the part scores theta_i = Psi_i w, and the inner product with
another difference is the same at other weights.
"""

from operator import attrgetter
from typing import NamedTuple, cast

import numpy as np

from structpred.core.feature_map import FeatureMap
from structpred.core.sparse import SparseVector
from structpred.core.stand_ins import stand_in
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.objectives.margin import MarginRescaling
from structpred.runtime.lazy_names import later
from structpred.task.inference import Inference
from structpred.task.steps import Step, TaskLike, offers
from structpred.task.task import Task
from structpred.trainers.problem import Problem, Surrogate, once_per_problem

_kernels = later("structpred.task.fast._part_kernels")


class PartIdentity(FeatureMap):
    """The identity over the parts of another feature map's instances: what is asked about instance i is asked at its part scores.

    So surrogates and searches serve whoever has part scores already, and say which parts differ, not which features.
    """

    # those of the other features
    fixed_scores = property(attrgetter("features.fixed_scores"))
    arrays = property(attrgetter("features.arrays"))

    def __init__(self, features: FeatureMap, n_parts: Integers) -> None:
        self.features, self.counts = features, n_parts.tolist()
        self.dim, self.dtype = max(self.counts, default=0), np.dtype(np.float64)
        self.groups = np.array([0, self.dim], dtype=np.int64)

    def __len__(self) -> int:
        """The number of instances."""
        return len(self.counts)

    def n_parts(self, i: int) -> int:
        """That of the other features."""
        return int(self.counts[i])

    def scores(self, w: Vector, i: int) -> Floats:
        """The part scores as they are given."""
        return np.asarray(w, dtype=np.float64)

    def adjoint(self, i: int, parts: Integers, counts: Floats) -> SparseVector:
        """The counts as they are given; parts ascend and are unique."""
        return SparseVector(parts, counts)


def over_parts(task: Task) -> Task:
    """The same outputs and losses, where the weights for instance i are its part scores, and differences are part counts.

    >>> from structpred.features.parts import PartFeatures
    >>> from structpred.objectives.part_losses import Hamming
    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> task = Task(PartFeatures([np.ones((3, 7))]), MulticlassOracle(), [[0]], [(3,)], Hamming())
    >>> over_parts(task).step(np.array([0.0, 0.0, 2.0]), 0, 1.0).difference
    SparseVector(indices=array([0, 2]), values=array([ 1., -1.]))
    """
    identity = PartIdentity(task.features, task.inference.sizes)
    return task.over(Inference(identity, task.oracle, task.shapes, compiled=False))


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
            if (found := self.task.steps.last_parts(i)) is not None:  # which some steps keep
                return Found(step, SparseVector(*_kernels().difference(self.task.parts[i], found)), step.difference)
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
