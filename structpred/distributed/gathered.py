"""The linear piece of every instance of all shards: what n-slack cutting planes ask for, found where the instances are."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from structpred.core.group_scales import Scale
from structpred.core.sparse import SparseVector
from structpred.core.weights import Vector
from structpred.distributed.rounds import Rounds
from structpred.distributed.sharded import ShardedTask
from structpred.distributed.tasks import Facts
from structpred.models.sharding import Columns
from structpred.runtime.interrupts import may_be_given_up
from structpred.task.steps import Step, TaskLike
from structpred.trainers.problem import Surrogate

Arrays = dict[str, npt.NDArray[Any]]


class GatheredTask(ShardedTask):
    """All shards as one task with their instances, in the order of the shards."""

    def __init__(self, rounds: Rounds, facts: Sequence[Facts], whole: Columns) -> None:
        super().__init__(rounds, facts, whole)
        self.sample_weight = rounds.sample_weight()

    def __len__(self) -> int:
        """The number of instances."""
        return sum(self.sizes)


class Gathered:
    """A surrogate whose pieces are found by the shards, all of a sweep at once."""

    __slots__ = ("__dict__", "_steps", "_surrogate", "_w")  # no part of vars(), which says whether two runs are the same
    requires: tuple[str | tuple[str, ...], ...] = ()

    def __init__(self, surrogate: Surrogate) -> None:
        self.gathered = f"{type(surrogate).__name__} {sorted(vars(surrogate).items())}"
        self.piecewise_linear = surrogate.piecewise_linear
        self._surrogate = surrogate
        self._w: Vector | None = None
        self._steps: list[Step] = []

    def term(self, task: TaskLike, w: Vector, i: int, scale: Scale = 1.0) -> Step:
        """The piece of instance i at w, which a sweep does not change."""
        if w is not self._w:
            with may_be_given_up():
                found = cast(Any, task).rounds.pieces(w)
            self._w, self._steps = w, [step for arrays in found for step in _steps(arrays)]
        return self._steps[i]

    def offset(self, step: Step) -> float:
        """The constant of that piece."""
        return self._surrogate.offset(step)

    def values(self, task: TaskLike, w: Vector) -> npt.NDArray[np.float64]:
        """Upper bounds of H_i(w), all i."""
        return np.concatenate([arrays["numbers"][2] for arrays in cast(Any, task).rounds.pieces(w)])


def _steps(arrays: Arrays) -> list[Step]:
    ends, (losses, violations, bounds) = arrays["ends"].tolist(), arrays["numbers"].tolist()
    pairs = [SparseVector(arrays["indices"][a:b], arrays["values"][a:b]) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
    return [Step(*parts) for parts in zip(pairs, losses, violations, bounds, strict=True)]
