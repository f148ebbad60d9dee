"""Training over shards in one process: the rounds of an algorithm, one shard after the other, in the usual loop."""

from abc import abstractmethod
from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Any, NamedTuple, cast

import numpy as np

from structpred.core.types import Integers
from structpred.core.weights import Vector
from structpred.errors import ParameterError
from structpred.task.task import Task
from structpred.task.terms import running_sum
from structpred.trainers.problem import ByInner, Problem, Trainer, kept
from structpred.trainers.running.stream import StreamProblem
from structpred.trainers.shards.rounds import (
    Common,
    IndexMap,
    Part,
    Report,
    RoundAlgorithm,
    checked_passes,
    losses_of,
    round_size,
    totals,
)
from structpred.trainers.states import COUNT


class ShardedState(NamedTuple):
    """common: what all shards know. shards: the state of each. rounds: how many were closed, a single number."""

    common: Common
    shards: tuple[Any, ...]
    rounds: Annotated[Integers, COUNT]


class ShardedTrainer(ByInner, Trainer):
    """An algorithm of training over shards, which are runs of neighbouring instances here. One "pass" is one round of all shards.

    trainer: that of a shard. shards: how many there are; the result depends on it. passes: of a shard in a round. seed: of the
    order of instances.
    """

    bulk = True

    def __init__(self, trainer: Trainer, shards: int, passes: float, seed: int) -> None:
        for name, value, least in (("shards", shards, 1), ("seed", seed, 0)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise ParameterError(f"{name} must be a whole number >= {least}, got {value!r}")
        self.trainer, self.shards, self.passes, self.seed = trainer, int(shards), checked_passes(passes), int(seed)

    @property
    @abstractmethod
    def algorithm(self) -> RoundAlgorithm:
        """What the shards do; the same on a cluster."""

    def parts(self, problem: Problem) -> list[Part]:
        """The shards of a problem, made once."""
        return kept(problem, f"shards {self.shards} {self.seed}", lambda: cut(problem, self.shards, self.seed))

    def init_state(self, problem: Problem) -> ShardedState:
        """Every shard at its beginning, and what all know then."""
        algorithm, parts = self.algorithm, self.parts(problem)
        begun = [algorithm.begin(part) for part in parts]
        reports = [(part.at, report) for part, (_, report) in zip(parts, begun, strict=True)]
        common = algorithm.close(None, totals(problem.task.dim, reports))
        return ShardedState(common, tuple(state for state, _ in begun), np.array(0))

    def calls(self, problem: Problem, item: int) -> int:
        """Visits of a round."""
        return sum(round_size(len(part.problem.task), self.passes) for part in self.parts(problem))

    def update(self, problem: Problem, state: ShardedState, item: int) -> tuple[ShardedState, bool]:
        """One round: every shard from what all knew before it."""
        algorithm, t, shards = self.algorithm, int(state.rounds), list(state.shards)

        def reports() -> Iterator[tuple[IndexMap | None, Report]]:
            for k, part in enumerate(self.parts(problem)):
                shards[k], report = algorithm.advance(part, shards[k], state.common.of(part.at), t)
                yield part.at, report

        common = algorithm.close(state.common, totals(problem.task.dim, reports()))
        changed = not np.array_equal(common.vectors[0], state.common.vectors[0])
        return ShardedState(common, tuple(shards), np.array(t + 1)), changed

    def weights(self, problem: Problem, state: ShardedState) -> Vector:
        """What the algorithm returns, in the type of the task's weights."""
        return cast(Vector, self.algorithm.weights(state.common).astype(problem.task.dtype))

    def objective(self, problem: Problem, state: ShardedState) -> tuple[float | None, float | None]:
        """The dual value, and the primal at the weights to return: sums over the shards in their order. None without a dual."""
        dual = self.algorithm.dual(state.common, problem.lam)
        if dual is None:
            return None, None
        w = self.weights(problem, state)
        losses = [losses_of(part, w if part.at is None else part.at.of(w)) for part in self.parts(problem)]
        return problem.lam * problem.regulariser.value(w) + running_sum(np.array(losses)), dual


def cut(problem: Problem, n_shards: int, seed: int) -> list[Part]:
    """Runs of neighbouring instances of about the same number.

    Raises ParameterError where there are fewer instances than shards, or all of a shard have the weight zero.
    """
    task = cast(Task, problem.task)
    if n_shards > len(task):
        raise ParameterError(f"shards={n_shards}: every shard needs an instance, and there are {len(task)}; take fewer shards")
    total = float(task.sample_weight.sum())
    ends = [len(task) * k // n_shards for k in range(n_shards + 1)]
    rows = [np.arange(first, last) for first, last in pairwise(ends)]
    for k, own in enumerate(rows):
        if not task.sample_weight[own].any():
            raise ParameterError(
                f"sample_weight: samples {own[0]}..{own[-1]}, which are shard {k} of {n_shards}, all have the weight zero: leave "
                "them out"
            )
    problems = [
        StreamProblem(task.take(own), problem.surrogate, problem.lam, total, regulariser=problem.regulariser) for own in rows
    ]
    return [Part(found, k, n_shards, seed=seed) for k, found in enumerate(problems)]
