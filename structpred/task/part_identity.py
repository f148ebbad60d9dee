"""Features that are the parts themselves: weights are part scores, and joint features are part counts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.feature_map import FeatureMap
from structpred.core.sparse import SparseVector
from structpred.core.weights import Vector
from structpred.task.inference import Inference
from structpred.task.task import Task


class PartIdentity(FeatureMap):
    """The identity over the parts of another feature map's instances: what is asked about instance i is asked at its part scores.

    So surrogates and searches serve whoever has part scores already, and say which parts differ, not which features.
    """

    def __init__(self, features: FeatureMap, n_parts: npt.NDArray[np.int64]) -> None:
        self.features, self.counts = features, n_parts.tolist()
        self.dim, self.dtype = max(self.counts, default=0), np.dtype(np.float64)
        self.groups = np.array([0, self.dim], dtype=np.int64)

    def __len__(self) -> int:
        """The number of instances."""
        return len(self.counts)

    def n_parts(self, i: int) -> int:
        """That of the other features."""
        return int(self.counts[i])

    def scores(self, w: Vector, i: int) -> npt.NDArray[np.float64]:
        """The part scores as they are given."""
        return np.asarray(w, dtype=np.float64)

    def adjoint(self, i: int, parts: npt.NDArray[np.int64], counts: npt.NDArray[np.float64]) -> SparseVector:
        """The counts as they are given; parts ascend and are unique."""
        return SparseVector(parts, counts)

    def fixed_scores(self, i: int) -> npt.NDArray[np.float64] | None:
        """Those of the other features."""
        return self.features.fixed_scores(i)

    def arrays(self) -> Sequence[npt.NDArray[Any]]:
        """Those of the other features."""
        return self.features.arrays()


def last_difference(task: Task, i: int) -> SparseVector | None:
    """The parts of the true output of instance i less those of what the last step, which was about it, found.

    None where steps do not keep them.
    """
    from structpred.task.fast._part_kernels import difference

    found = task.steps.last_parts(i)
    return None if found is None else SparseVector(*difference(task.parts[i], found))


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
