"""The plan by which a trainer runs over shards."""

from collections.abc import Callable
from typing import NamedTuple

from structpred.distributed.rounds import Rounds
from structpred.distributed.sharded import RoundTrainer
from structpred.errors import DataError, ParameterError
from structpred.models.partial import NEEDS_ALL, sums_suffice
from structpred.objectives.log_loss import MarginalLogLoss
from structpred.trainers.cocoa import CoCoA
from structpred.trainers.mixing import ParameterMixing
from structpred.trainers.names import require_surrogate, trainers
from structpred.trainers.oeg import OnlineEG
from structpred.trainers.problem import Surrogate, Trainer
from structpred.trainers.shards.rounds import Way
from structpred.trainers.shards.sharded import ShardedTrainer
from structpred.trainers.warm_start import WarmStart


class Plan(NamedTuple):
    """How a trainer runs over shards.

    name: of its tasks. goal: the trainer whose objective is minimised. trainer: the one of a shard. way: what a shard does in a
    round; None where sums alone are asked for. seed: of the order of instances. loop: what the loop runs, from the rounds.
    gathers: whether the loop asks for the piece of each instance.
    """

    name: str
    goal: Trainer
    trainer: Trainer
    way: Way | None
    seed: int
    loop: Callable[[Rounds], Trainer]
    gathers: bool = False


def plan_of(trainer: Trainer, surrogate: Surrogate, seed: int) -> Plan:
    """How it runs. seed: that of the estimator.

    Raises ParameterError for trainers that cannot run over shards, or cannot minimise the surrogate.
    """
    require_surrogate(trainer, surrogate)
    if getattr(surrogate, "needs_slack", False):
        raise ParameterError(
            f"surrogate: the search of {type(surrogate).__name__} needs the slack of each sample, which shards do not know; take "
            "another search, such as 'auto'"
        )
    if isinstance(trainer, WarmStart):
        return _warm(trainer, seed)
    if not trainer.asks:
        return _rounds(_sharded(trainer, seed))
    if getattr(trainer, "free", None) is not None:
        raise ParameterError("free: the weights of shards have numbers of their own; leave it out")
    if hasattr(trainer, "scaled_at") and OnlineEG.minimises(surrogate):
        return _warm(WarmStart(trainer, OnlineEG()), seed)
    return _sums(trainer, seed)


def plan_of_missing(trainer: Trainer, surrogate: Surrogate, seed: int) -> tuple[Plan, Surrogate]:
    """How it runs where labels are missing, and on what: sums of the likelihood of what is known, which no other trainer begins.

    Raises DataError for all that needs the whole labels of a sample.
    """
    if not sums_suffice(trainer, surrogate):
        raise DataError(f"some labels are missing, and {type(trainer).__name__} needs all of them: {NEEDS_ALL}")
    return _sums(trainer, seed), MarginalLogLoss()


def _sums(trainer: Trainer, seed: int) -> Plan:
    return Plan(trainer.name, trainer, trainer, None, seed, lambda rounds: trainer, trainer.asks == "pieces")


def _rounds(trainer: ShardedTrainer) -> Plan:
    own = trainer.trainer
    return Plan(own.name, trainer, own, trainer.way, trainer.seed, lambda rounds: RoundTrainer(trainer, rounds))


def _warm(trainer: WarmStart, seed: int) -> Plan:
    """Rounds of the trainer that begins, then sums."""
    first = _rounds(_sharded(trainer.first, seed))
    return first._replace(
        name=trainer.trainer.name,
        goal=trainer.trainer,
        loop=lambda rounds: WarmStart(trainer.trainer, first.loop(rounds), passes=trainer.passes),
    )


def _sharded(trainer: Trainer, seed: int) -> ShardedTrainer:
    """The trainer over shards; the data say how many there are."""
    if isinstance(trainer, ShardedTrainer):
        return trainer
    if hasattr(trainer, "own_sum"):
        return CoCoA(trainer, seed=seed)
    if trainer.online:
        return ParameterMixing(trainer, seed=seed)
    kinds = [name for name, kind in trainers().items() if hasattr(kind, "own_sum") or kind.online or kind.asks]
    raise ParameterError(
        f"trainer: {type(trainer).__name__} cannot be trained on shards; trainers that can: {', '.join(kinds)}, and objects such "
        "as CoCoA(BCFW(), passes=0.5)"
    )
