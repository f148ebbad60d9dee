"""CoCoA+: block trainers on the shards of a problem, with the certificate of the whole (Ma et al. 2015; Jaggi et al. 2014).

The dual of  min_w lam/2 |w|^2 + sum_i p_i H_i(w)  is a sum over blocks,  D = sum_i l_i - lam/2 |w|^2,  w = sum_i w_i. In a round
shard k, with the blocks P_k, chooses a move r_k of its own sum that raises

    G_k = sum_{i in P_k} l_i - lam <w, r_k> - lam sigma'/2 |r_k|^2,        and then   w <- w + sum_k r_k.

As |sum_k r_k|^2 <= K sum_k |r_k|^2, D rises by no less than all G_k together where sigma' = K. G_k is what the trainer of one
machine raises where w moves sigma' times as fast as its blocks do; so it runs there as it is. A weight j may have a sigma' of
its own, the number m_j of the shards that have it, since |sum_k r_k|^2 <= sum_j m_j sum_k r_kj^2.
"""

from typing import Any, NamedTuple

import numpy as np

from structpred.core.products import dot
from structpred.core.regulariser import DualMap
from structpred.errors import ParameterError
from structpred.runtime.settings import checked_positive, is_number
from structpred.task.steps import running_sum
from structpred.trainers.bcfw import BCFW
from structpred.trainers.online.updates import updates
from structpred.trainers.problem import Problem, Trainer, kept
from structpred.trainers.shards import rounds

#: places in the numbers that all know, and in those of a report
LOSS, ETA = range(2)
RISE, AFTER, INCLUDED, LAM = range(4)


class ShardBlocks(NamedTuple):
    """The blocks of a shard. before: those before the last round, where all shards decide later how far it went; else None."""

    now: Any
    before: Any


class CoCoARounds(rounds.RoundAlgorithm):
    """What a shard does in a round of `CoCoA`, which describes the settings.

    vectors: w, and the average of the iterates where the trainer of a shard keeps one. numbers: sum_i l_i, the length of the last
    step, the mass of the average. Those of a report: by how much the shard's sum of l_i rose, that sum, the mass, lam.
    """

    def __init__(self, trainer: Trainer, sigma: float | None = None, passes: float = 1.0) -> None:
        if not hasattr(trainer, "own_sum"):
            raise ParameterError(
                f"CoCoA: expected a trainer that keeps a dual value block by block, BCFW() or OnlineEG(), got {trainer!r}; "
                "online trainers are mixed by ParameterMixing, without a certificate"
            )
        # the trainer, by what TRAINER_OPTIONAL asks of one that works on blocks; its state has a field `weights`
        self.trainer: Any = trainer
        self.sigma, self.passes = sigma, checked_positive(passes, "passes")

    @property
    def averaged(self) -> bool:
        """Whether the average of the iterates is returned."""
        return bool(getattr(self.trainer, "averaged", False))

    def searches(self, n_shards: int) -> bool:
        """Whether the length of the common step has to be searched: sigma' is below the number of shards.

        Raises ParameterError for a sigma' that is out of range, or that the trainer cannot take.
        """
        if self.sigma is None:
            return False
        if not is_number(self.sigma) or not 1 <= self.sigma <= n_shards:
            raise ParameterError(f"sigma must be a number from 1 to {n_shards}, the number of shards, got {self.sigma!r}")
        if self.sigma < n_shards and not hasattr(self.trainer, "mixed"):
            raise ParameterError(
                f"sigma={self.sigma:g}: {type(self.trainer).__name__} takes the number of shards alone, {n_shards}, as its "
                "states have no mean; BCFW() takes less"
            )
        return self.sigma < n_shards

    def begin(self, part: rounds.Part) -> tuple[ShardBlocks, rounds.Report]:
        """The first blocks of a shard."""
        search = self.searches(part.n_shards)
        state = self.trainer.init_state(self._local(part))
        own, loss = rounds.sparse(self.trainer.own_sum(part.problem, state)), self.trainer.dual_part(part.problem, state)
        rest = self._without_weights(state)
        numbers = np.array([loss, loss, 0.0, part.problem.lam])
        return ShardBlocks(rest, _copy(rest) if search else None), rounds.Report((own,) * (1 + self.averaged), numbers)

    def advance(self, part: rounds.Part, state: ShardBlocks, common: rounds.Common, t: int) -> tuple[ShardBlocks, rounds.Report]:
        """Visits of the shard's instances, from w; how its sum moved."""
        problem, local, solver = part.problem, self._local(part), self.trainer
        blocks, w, eta = state.now, common.vectors[0], float(common.numbers[ETA])
        if state.before is not None and eta != 1.0:
            blocks = solver.mixed(state.before, blocks, eta)
        before = None if state.before is None else _copy(blocks)
        own, loss = solver.own_sum(problem, blocks), solver.dual_part(problem, blocks)
        run = solver.begin(local, blocks, w)
        first = run.weights.v.copy() if self.averaged else None
        for made in updates(local, self.trainer, run, rounds.round_order(part, self.trainer, local, run, self.passes, t)):
            run = made.state
        changes, mass = [rounds.sparse(solver.own_sum(problem, run) - own)], 0.0
        if first is not None:
            mass = float(run.weights.mass)
            mean = rounds.mean_change(run.weights, first, first)  # of sigma' r_k
            changes.append(rounds.sparse(mean / self._curvature(part).expanded(len(mean))[0]))
        after = solver.dual_part(problem, run)
        numbers = np.array([after - loss, after, mass, problem.lam])
        return ShardBlocks(self._without_weights(run), before), rounds.Report(tuple(changes), numbers)

    def close(self, common: rounds.Common | None, totals: rounds.Totals) -> rounds.Common:
        """w plus all changes, or as much of them as the dual gains by; and the average over the rounds, by their mass."""
        changes, numbers = totals
        rise, after, mass = (running_sum(numbers[:, which]) for which in (RISE, AFTER, INCLUDED))
        if common is None:
            return rounds.Common(changes, np.array([after, 1.0, 0.0]))
        w, r = common.vectors[0], changes[0]
        eta = _step(rise, dot(w, r), dot(r, r), numbers[-1, LAM]) if self.searches(len(numbers)) else 1.0
        vectors, total = common.moved([eta * change for change in changes], mass)
        loss = after if eta == 1.0 else after - (1.0 - eta) * rise  # both may be infinite: no bound
        return rounds.Common(vectors, np.array([loss, eta, total]))

    def dual(self, common: rounds.Common, lam: float) -> float:
        """sum_i l_i - lam/2 |w|^2."""
        w = common.vectors[0]
        return float(common.numbers[LOSS]) - 0.5 * lam * dot(w, w)

    def _without_weights(self, state: Any) -> Any:
        """The blocks alone, as they are kept between rounds."""
        return self.trainer.without_weights(state)

    def _curvature(self, part: rounds.Part) -> DualMap:
        """sigma', or for each weight the share of it that the number of its shards is of theirs; one at least."""
        sigma = float(part.n_shards if self.sigma is None else self.sigma)
        if part.shards is None:
            return DualMap.alike(sigma)
        sigmas = np.maximum(part.shards() * (sigma / part.n_shards), 1.0)
        ends = np.append(np.flatnonzero(np.diff(sigmas)) + 1, len(sigmas))
        return DualMap.of(ends, sigmas[ends - 1])

    def _local(self, part: rounds.Part) -> Problem:
        """The problem of the shard, made once."""
        key = f"local {type(self.trainer).__name__} {self.sigma} {part.n_shards}"
        return kept(part.problem, key, lambda: self.trainer.local_problem(part.problem, self._curvature(part)))


class CoCoA(rounds.ShardedTrainer):
    """Shards that are trained side by side and added up after every round, with a certified gap: CoCoA+ in one process.

    It is what a cluster runs, here one shard after the other, for as much time as one machine takes: to see what the number of
    shards costs in rounds. Conditional random fields (`OnlineEG`) need few more rounds than one machine needs passes where C is
    small, up to about eight shards. Max-margin training (`BCFW`) needs about as many more rounds as there are shards: shards
    are for data that no memory holds, hardly for speed.

    Parameters
    ----------
    trainer : Trainer
        The trainer of a shard: `BCFW`, which is the default, or `OnlineEG`.
    shards : int
        How many runs of neighbouring instances. The result depends on it.
    sigma : float, optional
        How careful a shard is of the others, sigma' of Ma et al., from 1 to `shards`. None: `shards`, with which changes are
        added as they are and the dual never falls. Smaller values, for `BCFW` alone, are bolder, and the common step is then
        cut to its best length, so that the dual never falls either: a quarter of `shards` needed half the rounds.
    passes : float
        Passes of a shard over its instances in a round; a quarter is allowed.
    seed : int
        Of the order of instances: a function of it, of the shard and of the pass. The estimator's `random_state` plays no part.

    Raises
    ------
    ParameterError
        For other trainers, numbers out of range, and at `fit` for more shards than instances.

    References
    ----------
    Ma, Smith, Jaggi, Jordan, Richtarik and Takac (2015), Adding vs. Averaging in Distributed Primal-Dual Optimization;
    Jaggi et al. (2014), Communication-Efficient Distributed Dual Coordinate Ascent.

    Examples
    --------
    >>> from structpred.models import ChainLabeler
    >>> model = ChainLabeler(trainer=CoCoA(BCFW(), shards=2), tol=0.01, max_iter=50)
    >>> model.fit([np.eye(2)] * 4, [["a", "b"]] * 4).converged_
    True
    """

    regulariser_requires = ("squared_norm",)

    def __init__(
        self, trainer: Trainer | None = None, *, shards: int = 8, sigma: float | None = None, passes: float = 1.0, seed: int = 0
    ) -> None:
        super().__init__(BCFW() if trainer is None else trainer, shards, passes, seed)
        self.sigma = sigma
        self.algorithm.searches(self.shards)

    @property
    def algorithm(self) -> CoCoARounds:
        """What the shards do."""
        return CoCoARounds(self.trainer, self.sigma, self.passes)


def _step(rise: float, product: float, square: float, lam: float) -> float:
    """The eta in [0, 1] with the largest rise of D along r: eta (rise - lam <w, r>) - eta^2 lam/2 |r|^2."""
    slope = rise - lam * product
    return 1.0 if slope >= lam * square else max(slope / (lam * square), 0.0)


def _copy(state: Any) -> Any:
    """Of all arrays of a state."""
    if isinstance(state, np.ndarray):
        return state.copy()
    if hasattr(state, "without_room"):
        state = state.without_room()
    return type(state)(*map(_copy, state)) if isinstance(state, tuple) else state
