"""Iterative parameter mixing of online trainers (McDonald, Hall & Mann 2010, figure 3)."""

from typing import Any

import numpy as np

from structpred.core.sparse import SparseVector
from structpred.core.types import Floats
from structpred.errors import ParameterError
from structpred.runtime.settings import checked_positive
from structpred.task.steps import running_sum
from structpred.trainers.online.updates import updates
from structpred.trainers.perceptron import AveragedPerceptron
from structpred.trainers.problem import Problem, Surrogate, Trainer, once_per_problem
from structpred.trainers.shards import rounds


class MixingRounds(rounds.RoundAlgorithm):
    """What a shard does in a round of `ParameterMixing`, which describes the settings; it keeps no state.

    vectors: w, and the average of the iterates where the trainer of a shard keeps one. numbers: the mass of the average; those
    of a report: the shard's share of it.
    """

    def __init__(self, trainer: Trainer, passes: float = 1.0) -> None:
        if not (isinstance(trainer, Trainer) and trainer.online):
            raise ParameterError(
                f"ParameterMixing: expected an online trainer such as AveragedPerceptron(), got {trainer!r}; BCFW() and "
                "OnlineEG() run in shards by CoCoA"
            )
        self.trainer, self.passes = trainer, checked_positive(passes, "passes")

    def begin(self, part: rounds.Part) -> tuple[None, rounds.Report]:
        """Zero weights. ParameterError for trainers that keep more than weights."""
        state = self._state(self._local(part), np.zeros(part.problem.task.dim), 0)
        nothing = SparseVector(np.empty(0, np.int64), np.empty(0))
        return None, rounds.Report((nothing,) * (2 if len(state.weights.u) else 1), np.zeros(1))

    def advance(self, part: rounds.Part, state: None, common: rounds.Common, t: int) -> tuple[None, rounds.Report]:
        """Visits of the shard's instances, from w."""
        problem, w = self._local(part), common.vectors[0]
        steps = t * rounds.round_size(len(problem.task), self.passes)
        run = self._state(problem, w, steps)
        first_v, first_w = run.weights.v.copy(), run.weights.current().astype(np.float64)
        for made in updates(problem, self.trainer, run, rounds.round_order(part, self.trainer, problem, run, self.passes, t)):
            run = made.state
        changes = [rounds.sparse(run.weights.current() - first_w)]
        if len(common.vectors) > 1:
            changes.append(rounds.sparse(rounds.mean_change(run.weights, first_v, first_w)))
        return None, rounds.Report(tuple(changes), np.array([float(run.weights.mass)]))

    def close(self, common: rounds.Common | None, totals: rounds.Totals) -> rounds.Common:
        """The mean of the shards' weights; and that of their averages, which enters the average over the rounds."""
        changes, n = totals.changes, len(totals.numbers)
        if common is None:
            return rounds.Common(changes, np.zeros(1))
        vectors, total = common.moved([change / n for change in changes], running_sum(totals.numbers[:, 0]))
        return rounds.Common(vectors, np.array([total]))

    def _local(self, part: rounds.Part) -> Problem:
        """Trainers whose steps depend on the number of instances learn from those of the shard as if these were all."""
        return _alone(part.problem) if self.trainer.needs_n_total else part.problem

    def _state(self, problem: Problem, w: Floats, steps: int) -> Any:
        """The trainer's state at these weights, after this number of steps of the shard."""
        if (own := getattr(self.trainer, "state_at", None)) is not None:
            return own(problem, w, steps)
        state = self.trainer.init_state(problem)
        if getattr(state, "_fields", ()) != ("weights",):
            raise ParameterError(
                f"ParameterMixing: {type(self.trainer).__name__} keeps more than weights, and no mean is known for the rest; "
                "perceptron, mira, pa and sgd can be mixed"
            )
        state.weights.v[:] = w
        return state


class ParameterMixing(rounds.ShardedTrainer):
    """Online trainers side by side: from common weights a pass in every shard, then the mean of what came out. No certificate.

    It wants shards that teach much alone, at least 100,000 instances each, and two to five rounds: stop them by `dev` and
    `patience`. With small shards it falls behind one machine. The means of averaged trainers are averaged over all rounds.

    Parameters
    ----------
    trainer : Trainer
        The trainer of a shard: `AveragedPerceptron`, the default, `MIRA`, `PassiveAggressive` or `SGD`.
    shards : int
        How many runs of neighbouring instances. The result depends on it.
    passes : float
        Passes of a shard over its instances in a round.
    seed : int
        Of the order of instances: a function of it, of the shard and of the pass. The estimator's `random_state` plays no part.

    Raises
    ------
    ParameterError
        For other trainers, numbers out of range, and at `fit` for more shards than instances.

    References
    ----------
    McDonald, Hall and Mann (2010), Distributed Training Strategies for the Structured Perceptron, figure 3, uniform mixture.

    Examples
    --------
    >>> from structpred.models import ChainLabeler
    >>> model = ChainLabeler(trainer=ParameterMixing(shards=2), max_iter=3).fit([np.eye(2)] * 4, [["a", "b"]] * 4)
    >>> model.predict([np.eye(2)])[0].tolist()
    ['a', 'b']
    """

    regulariser_requires = ("squared_norm",)

    def __init__(self, trainer: Trainer | None = None, *, shards: int = 8, passes: float = 1.0, seed: int = 0) -> None:
        super().__init__(AveragedPerceptron() if trainer is None else trainer, shards, passes, seed)
        MixingRounds(self.trainer, passes)  # which refuses other trainers

    @property
    def algorithm(self) -> MixingRounds:
        """What the shards do."""
        return MixingRounds(self.trainer, self.passes)

    def certifies(self, surrogate: Surrogate) -> bool:  # type: ignore[override]
        """Never: a mean of weights says nothing of the optimum."""
        return False


@once_per_problem
def _alone(problem: Problem) -> Problem:
    """The shares of the instances among those of the shard."""
    return Problem(problem.task, problem.surrogate, problem.lam, regulariser=problem.regulariser)
