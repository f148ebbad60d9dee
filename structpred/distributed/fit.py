"""Training an estimator on shards, by the plan of its trainer."""

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from structpred.core.regulariser import Regulariser
from structpred.core.weights import Vector
from structpred.distributed import tasks
from structpred.distributed.cluster import check_cluster, check_memory, cluster_of, workers_of
from structpred.distributed.reading import Print
from structpred.distributed.rounds import Rounds
from structpred.distributed.sharded import Gathered, RoundTrainer, ShardedTask, Summed
from structpred.distributed.shards import Shards, about_shard
from structpred.distributed.store import Store, run_folder
from structpred.errors import DataError, ParameterError
from structpred.models.base import StructuredEstimator, seed_of
from structpred.models.nothing_learnt import warned
from structpred.models.own_components import marked
from structpred.models.partial import NEEDS_ALL, sums_suffice
from structpred.models.settings import resolve_regulariser
from structpred.models.sharding import Columns, Sharding, sharding_of
from structpred.objectives.log_loss import LogLoss, MarginalLogLoss
from structpred.objectives.regularisers.l2 import L2
from structpred.runtime.interrupts import Abandoned
from structpred.runtime.settings import checked_positive, checked_whole
from structpred.task.steps import TaskLike
from structpred.trainers.cocoa import CoCoA
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.mixing import ParameterMixing
from structpred.trainers.names import can_minimise, require_before_data, require_surrogate, trainers
from structpred.trainers.oeg import OnlineEG
from structpred.trainers.problem import Problem, Surrogate, Trainer
from structpred.trainers.shards.rounds import RoundAlgorithm, ShardedTrainer
from structpred.trainers.warm_start import WarmStart

log = logging.getLogger("structpred.distributed")
Model = TypeVar("Model", bound=StructuredEstimator)


class Plan(NamedTuple):
    """How a trainer runs over shards.

    name: of its tasks. goal: the trainer whose objective is minimised. trainer: the one of a shard. algorithm: what a shard does
    in a round; None where sums alone are asked for. seed: of the order of instances. loop: what the loop runs, from the rounds.
    gathers: whether the loop asks for the piece of each instance.
    """

    name: str
    goal: Trainer
    trainer: Trainer
    algorithm: RoundAlgorithm | None
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


def _sums(trainer: Trainer, seed: int) -> Plan:
    return Plan(trainer.name, trainer, trainer, None, seed, lambda rounds: trainer, trainer.asks == "pieces")


def _rounds(trainer: ShardedTrainer) -> Plan:
    own = trainer.trainer
    return Plan(own.name, trainer, own, trainer.algorithm, trainer.seed, lambda rounds: RoundTrainer(trainer, rounds))


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


def fit(
    model: Model, shards: Shards, classes: Sequence[Any] | None = None, client: Any = None,
    store: str | os.PathLike[str] | None = None, dev: tuple[Any, Any] | None = None, every: int = 1,
) -> Model:  # fmt: skip
    """Train `model` on data that no machine needs to hold as a whole, on a cluster of dask.distributed; returns the model.

    It ends as after `model.fit`: history, certificate, callbacks, tol, patience, checkpoint, resume and Ctrl-C are the model's
    own, and it is saved as any other; a parser learns which arcs to keep if it prunes, then heads, then relations. Its trainer
    says how it is trained: `"lbfgs"` and `"owlqn"` sum gradients over the shards, after three rounds of `"oeg"` where the
    surrogate is the log loss; `"bcfw"` and `"oeg"` run as `CoCoA`, online trainers as `ParameterMixing`, without a certificate;
    cutting planes and bundle methods (`"n_slack"`, `"one_slack"`, `"bmrm"`) get planes from the shards, which suits expensive
    oracles. Where labels are missing `"lbfgs"` and `"owlqn"` maximise the likelihood of what is known, and end at a local
    optimum. The result depends on the number of shards, which report_["shards"] holds; not on how many workers there are, which
    of them has which shard, or which of them die.

    Parameters
    ----------
    model : StructuredEstimator
        With its settings, such as ``ChainLabeler("lbfgs", C=0.1, template="chunking")``.
    shards : Shards
        The data, with weights of samples and tokens where they have some. A worker loads the shards that it has; nothing
        passes this process or the scheduler.
    classes : list, optional
        All labels; None: those that occur.
    client : Client or str, optional
        A distributed.Client, which is used as it is (TLS, dashboard), or the address of a scheduler. None: a worker process for
        each core of this machine, until the call ends; the program must then be importable (``if __name__ == "__main__":``).
    store : path, optional
        A folder that this process and all workers see: it holds the state of the shards, for workers that take over from others
        and for resume. None: next to the checkpoint, or a temporary folder. With a checkpoint what resume needs stays there.
    dev : tuple, optional
        Held-out data (X, y), scored here.
    every : int
        The states that shards keep (`"bcfw"`, `"oeg"`, and the rounds before `"lbfgs"`) go to the store once in `every` rounds.
        Where it is larger, less is written, and a worker that takes a shard over, or has no memory for its state, runs up to
        every - 1 of its rounds again. The bits are the same. A run is resumed with the `every` that it began with.

    Raises
    ------
    ParameterError
        For estimators, trainers and settings that shards do not take, and an `every` that is no whole number >= 1.
    DataError
        For anything wrong in a shard: it names the shard, and file and line.
    ClusterError
        Where no scheduler answers, workers differ or do not see the store, or a shard takes its workers with it.

    Examples
    --------
    >>> from distributed import Client
    >>> from structpred.distributed import Shards, fit
    >>> from structpred.models import ChainLabeler
    >>> def shard():
    ...     return [[["the"], ["cat"]]], [["DT", "NN"]]
    >>> model = ChainLabeler("bcfw", template="pos", max_iter=2)
    >>> with Client(processes=False, dashboard_address="127.0.0.1:0") as client:
    ...     fit(model, Shards.of_functions([shard, shard]), client=client).n_iter_
    2
    """
    if not isinstance(shards, Shards):
        raise ParameterError(f"shards: expected Shards, such as Shards.of_file(path, 16), got {type(shards).__name__}")
    checked_whole(every, "every")
    sharding = sharding_of(model)
    model._default = "oeg" if isinstance(model._asked_surrogate(), LogLoss) else "bcfw"
    training = _training_of(model, None if dev is None else lambda w: 0.0)  # not known before the shards are read
    if store is None and training.settings.checkpoint is not None:
        store = f"{training.settings.checkpoint}.store"
    place = None if store is None else Path(os.path.abspath(store))  # None: a temporary one
    with ExitStack() as stack:
        if place is None:
            place = Path(stack.enter_context(TemporaryDirectory(prefix="structpred-")))
        own = stack.enter_context(cluster_of(client, len(shards)))
        _Run(own, shards, place, int(every), []).fit(model, sharding, training, classes, dev)
    return model


class _Training(NamedTuple):
    """What the settings of an estimator name: how it is trained over shards, the regulariser, and how long."""

    plan: Plan
    regulariser: Regulariser
    settings: RunSettings


def _training_of(model: StructuredEstimator, dev: Callable[[Vector], float] | None) -> _Training:
    """ParameterError, and other errors of ours, for what cannot be."""
    plan = plan_of(*model._trainer_and_surrogate(), seed_of(model.random_state))
    regulariser = resolve_regulariser(model.regulariser, plan.goal)
    require_before_data(plan.goal, regulariser)
    return _Training(plan, regulariser, model._run_settings(dev))


class _Run(NamedTuple):
    """The cluster, the shards, the folder of the store, after how many rounds the states of the shards go there, and what the
    first read of each shard gave, for all stages.
    """

    client: Any
    shards: Shards
    place: Path
    every: int
    prints: list[Print]

    def fit(
        self, model: StructuredEstimator, sharding: Sharding, training: _Training, classes: Sequence[Any] | None, dev: Any
    ) -> None:
        """Train the model so."""
        plan, regulariser, settings = training
        with ExitStack() as stack:
            folder = stack.enter_context(run_folder(self.place, settings.resume, keep=settings.checkpoint is not None))
            check_cluster(self.client, folder)
            check_memory(workers_of(self.client), self.shards)
            names = [str(shard) for shard in self.shards]
            rounds = Rounds(self.client, Store(folder), f"{plan.name}-{folder.name[4:]}", names, self.every)
            stack.callback(rounds.end)

            def further(other: StructuredEstimator, how: Sharding) -> None:
                rounds.end()  # workers need no memory for this stage, or none yet
                self._replace(place=folder / other._stage).fit(other, how, _training_of(other, None), None, None)

            sharding = sharding.prepared(model, further).shared(model)
            agreed, plan, whole, facts, goal = self._begin(rounds, sharding, model, classes, plan, regulariser)
            if dev is not None:
                score = sharding.dev_scorer(model, agreed, dev)
                settings = replace(settings, dev=lambda w: float(score(whole.spread(w))))
            try:
                task = ShardedTask(rounds, facts, whole, plan.gathers)
                surrogate = cast(Surrogate, (Gathered if plan.gathers else Summed)(goal.surrogate))
                problem = Problem(cast(TaskLike, task), surrogate, goal.lam, regulariser=regulariser)
                result = warned(marked(train(problem, plan.loop(rounds), settings), facts[0].checked))
            except Abandoned:
                raise KeyboardInterrupt("training was interrupted before the first round: nothing was learnt") from None
            # how many shards there are is part of the model, as its settings are
            result = replace(result, report={**result.report, "shards": np.array([float(len(self.shards))])})
            sharding.keep(model, agreed, whole.spread_result(result), further)

    def _begin(
        self, rounds: Rounds, sharding: Sharding, model: StructuredEstimator, classes: Sequence[Any] | None, how: Plan,
        regulariser: Regulariser,
    ) -> tuple[Any, Plan, Columns, list[tasks.Facts], tasks.Objective]:  # fmt: skip
        """Read all shards, agree, and build their tasks where they stay. The first stage of a model fills `prints`.

        Returns what the shards agreed on, how the run continues, the weights that occur in them, their facts, and the objective.
        """
        bare = type(model)(**{**model.get_params(deep=False), "callbacks": None, "checkpoint": None, "resume": False})
        spec = tasks.Spec(tuple(self.shards), bare, sharding, prints=tuple(self.prints))
        rounds.tell(spec)
        seen, scans = zip(*rounds.round("reading the shards", tasks.scan), strict=True)
        self.prints[:] = seen
        spec = spec._replace(prints=seen)
        plan = sharding.plan(model, scans, classes)
        trainer, surrogate = model._trainer_and_surrogate()

        def agreed() -> tasks.Objective:
            """What the shards minimise; lam and the number of samples come later."""
            own = regulariser if can_minimise(how.trainer, regulariser) else L2()  # sums leave it to the loop
            objective = tasks.Objective(surrogate, own, how.trainer, how.algorithm, 1.0, 1.0, how.seed)
            rounds.tell(spec._replace(plan=plan, objective=objective))
            rounds.compile()
            return objective

        objective = agreed()
        facts = rounds.round("building the shards", tasks.build, last=tasks.join)
        for k, one in enumerate(facts):
            if one.partial:
                with about_shard(k, self.shards[k]):
                    if not sums_suffice(trainer, surrogate):
                        raise DataError(f"some labels are missing, and {type(trainer).__name__} needs all of them: {NEEDS_ALL}")
                # sums of the likelihood of what is known, which no other trainer begins
                how, surrogate = _sums(trainer, how.seed), MarginalLogLoss()
                log.info("some labels are missing: the likelihood of what is known is maximised (not convex: a local optimum)")
                objective = agreed()
                break
        whole = tasks.whole_columns(rounds.store, facts[0].columns)
        n_total = float(ShardedTask(rounds, facts, whole).sample_weight[0])
        objective = objective._replace(lam=1.0 / (checked_positive(model.C, "C") * n_total), n_total=n_total)
        rounds.tell(spec._replace(plan=plan, objective=objective))
        rounds.whole = whole
        return plan, how, whole, facts, objective
