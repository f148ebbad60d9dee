"""Losses of part scores as surrogates: what trainers minimise over weights, beside the margin, slack and the log loss."""

from abc import abstractmethod
from typing import cast
from weakref import WeakKeyDictionary

import numpy as np

from structpred.core.group_scales import Scale
from structpred.core.oracle import Oracle
from structpred.core.own_code import renumbered
from structpred.core.stand_ins import stand_in
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import DataError, InfeasibleError, MissingCapabilityError, OracleError, ParameterError
from structpred.layers.fenchel_young import SoftMarginCRF
from structpred.layers.loss import Loss, LossRecord
from structpred.layers.perturbed import PerturbedLoss
from structpred.layers.pools import PoolLoss
from structpred.layers.record import Scores
from structpred.layers.sparsemap import SparseMAPLoss
from structpred.task.fast.part_steps import adjoint_block
from structpred.task.inference import Inference
from structpred.task.steps import SmoothSurrogate, Step, TaskLike
from structpred.task.task import Task

_kept: "WeakKeyDictionary[Task, dict[float, Task | None]]" = WeakKeyDictionary()


def augmented(task: Task, loss_weight: float) -> Task | None:
    """The task with `loss_weight` times the part costs as fixed scores, made once; None where its features have no `with_scores`.

    With the scores theta_i = Psi_i w it has theta_i + loss_weight ell_i.
    """
    kept = _kept.setdefault(task, {})
    if loss_weight not in kept:
        add = stand_in(task.features, "with_scores", ("scores", "fixed_scores", "n_parts"))
        features = None if add is None else add([loss_weight * task.costs(i)[1] for i in range(len(task))])
        kept[loss_weight] = None if features is None else task.over(Inference(
            features, task.oracle, task.shapes, n_jobs=task.n_jobs, compiled=task.inference.compiled
        ))  # fmt: skip
    return kept[loss_weight]


class ScoreSurrogate(SmoothSurrogate):
    """H_i(w) = L(Psi(x_i) w), with a loss L of part scores that is convex and >= 0; the gold is the true output.

    Smooth trainers minimise it (lbfgs, sgd, proximal, bundle methods). A child says which loss; its attributes are its settings,
    plain numbers, so that model files hold them. Noise belongs to the number of the instance and does not change from pass to
    pass, so H_i is one function.
    """

    requires: tuple[str | tuple[str, ...], ...] = ("argmax",)

    @abstractmethod
    def loss(self, oracle: Oracle) -> Loss:
        """The loss of scores, for this oracle."""

    def term(self, task: TaskLike, w: Vector, i: int, scale: Scale = 1.0) -> Step:
        """The gradient and the value of H_i at scale * w, with its upper bound."""
        own = cast(Task, task)
        theta = own.scores(w, i, scale)
        found = self._found(own, theta, np.array([0, len(theta)]), i, i + 1)
        parts = np.flatnonzero(found.gradient)
        value = float(found.values[0])
        return Step(own.adjoint(i, parts, -found.gradient[parts]), 0.0, value, value + float(found.gap[0]))

    def check_task(self, task: TaskLike) -> None:
        """ParameterError for a task without part scores, MissingCapabilityError where an inexact oracle leaves no value."""
        if not isinstance(task, Task):
            raise ParameterError(
                f"surrogate: {type(self).__name__} is a loss of part scores; expected a Task with features and an oracle, got "
                f"{type(task).__name__}"
            )
        loss, oracle = self.loss(task.oracle), task.oracle
        if oracle.exact or not isinstance(loss, SparseMAPLoss | PerturbedLoss):
            return
        bounded, name = callable(getattr(oracle, "argmax_bound", None)), type(oracle).__name__
        if isinstance(loss, SparseMAPLoss) or not bounded:
            instead = "'perturbed', whose value argmax_bound bounds, or 'margin'" if bounded else "'margin'"
            raise MissingCapabilityError(
                f"surrogate: {type(loss).__name__} needs an exact oracle: {name} is not exact, so nothing bounds the objective's "
                f"value at any weights; take surrogate={instead}, or an oracle that is exact"
            )

    def gradient(self, task: TaskLike, w: Vector, shares: Floats) -> tuple[Floats, Floats]:
        """H_i of every instance, and the gradient of sum_i shares_i H_i (flat, float64), a block of instances at a time."""
        own = cast(Task, task)
        values, gradient, features = np.empty(len(own)), np.zeros(own.dim), own.inference.features
        for first, last, places in own.inference.blocks(0, len(own)):
            found = self._found(own, own.inference.score_block(w, 1.0, first, last, places), places, first, last)
            on = np.flatnonzero(found.gradient)
            ends = np.searchsorted(on, places)
            parts = on - np.repeat(places[:-1], np.diff(ends))
            indices, slopes, pieces = adjoint_block(features, first, parts, found.gradient[on], ends)
            np.add.at(gradient, indices, slopes * np.repeat(shares[first:last], np.diff(pieces)))
            values[first:last] = found.values + found.gap
        return values, gradient

    def _found(self, task: Task, theta: Floats, places: Integers, first: int, last: int) -> LossRecord:
        """The loss of a block of instances. What is raised names the sample by its number in the task."""
        loss, shapes = self.loss(task.oracle), task.shapes[first:last]
        batch = Scores.of(task.oracle, shapes, n_jobs=task.n_jobs)
        parts = task.parts[first:last]
        at = np.concatenate(parts) + np.repeat(places[:-1], [len(own) for own in parts])
        gold = np.bincount(at, minlength=len(theta)).astype(np.float64)
        asked = {"costs", "true_scores"}.intersection(loss.takes)
        costs = np.concatenate([task.costs(i)[1] for i in range(first, last)]) if asked else None
        truth = -costs if costs is not None and "true_scores" in asked else None
        try:
            return loss(batch, theta, gold=gold, costs=costs, true_scores=truth, ids=np.arange(first, last))
        except (OracleError, InfeasibleError, DataError) as error:
            raise renumbered(error, first) from error


class LossSurrogate(ScoreSurrogate):
    """H_i(w) = L(Psi(x_i) w) for a loss object that is smooth (`Loss.smooth`). True scores of parts are minus their costs.

    Raises ParameterError for a loss that is not smooth. A loss over pools needs `kbest` here: pools of what training meets grow,
    and H_i would change on the way.

    >>> from structpred.layers import SparseMAPLoss
    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> LossSurrogate(SparseMAPLoss(MulticlassOracle())).may_be_negative
    False
    """

    def __init__(self, loss: Loss) -> None:
        if not loss.smooth:
            raise ParameterError(f"surrogate: {type(loss).__name__} is not smooth; trainers of smooth objectives cannot take it")
        self.scored, self.may_be_negative = loss, not loss.nonnegative
        self.requires = (*loss.requires, "kbest") if isinstance(loss, PoolLoss) else tuple(loss.requires)

    def loss(self, oracle: Oracle) -> Loss:
        """The object itself, whose oracle the task must have."""
        return self.scored


class PerturbedSurrogate(ScoreSurrogate):
    """H_i(w) = 1/m sum_k max_y (Psi(x_i) w + sigma z_k) . (mu(y) - mu(y_i)): `PerturbedLoss` (Berthet et al. 2020).

    It needs `argmax` alone and has no structured loss. Gradients are of the mean over m draws of the noise, which stay the same.

    >>> from structpred.models import ChainLabeler
    >>> model = ChainLabeler(trainer="lbfgs", surrogate=PerturbedSurrogate(samples=4), max_iter=5).fit([np.eye(2)], [["a", "b"]])
    >>> model.predict([np.eye(2)])[0].tolist()
    ['a', 'b']
    """

    def __init__(self, samples: int = 10, sigma: float = 1.0, seed: int = 0, antithetic: bool = True) -> None:
        self.samples, self.sigma, self.seed, self.antithetic = samples, sigma, seed, antithetic

    def loss(self, oracle: Oracle) -> PerturbedLoss:
        """With these settings."""
        return PerturbedLoss(oracle, samples=self.samples, sigma=self.sigma, seed=self.seed, antithetic=self.antithetic)


class SoftMargin(ScoreSurrogate):
    """H_i(w) = t log sum_y exp((w . phi(x_i, y) + c loss(y_i, y)) / t) - w . phi(x_i, y_i), with c = cost_weight.

    `SoftMarginCRF` as a surrogate (Gimpel & Smith 2010). Needs `marginals`; it is an upper bound of the margin-rescaled hinge,
    which it tends to for t -> 0.
    """

    requires: tuple[str | tuple[str, ...], ...] = ("marginals",)

    def __init__(self, temperature: float = 1.0, cost_weight: float = 1.0) -> None:
        self.temperature, self.cost_weight = temperature, cost_weight

    def loss(self, oracle: Oracle) -> SoftMarginCRF:
        """With these settings."""
        return SoftMarginCRF(oracle, temperature=self.temperature, cost_weight=self.cost_weight)

    def gradient(self, task: TaskLike, w: Vector, shares: Floats) -> tuple[Floats, Floats]:
        """Where features take fixed scores and t = 1: the log loss of a task with the costs among them, in its sweeps."""
        own = augmented(cast(Task, task), self.cost_weight) if self.temperature == 1.0 else None
        return super().gradient(task, w, shares) if own is None else own.log_losses(w, shares)


class SparseMAPSurrogate(ScoreSurrogate):
    """H_i(w) = max_mu theta . (mu - g) - t/2 |mu|^2 + t/2 |g|^2, theta = Psi(x_i) w: `SparseMAPLoss` as a surrogate.

    It needs `argmax` alone, is smooth, and zero beyond a margin. Every projection starts cold, so runs repeat bit for bit.

    >>> from structpred.models import ChainLabeler
    >>> model = ChainLabeler(trainer="lbfgs", surrogate="sparsemap", max_iter=5).fit([np.eye(2)], [["a", "b"]])
    >>> model.predict([np.eye(2)])[0].tolist()
    ['a', 'b']
    """

    def __init__(self, temperature: float = 1.0) -> None:
        self.temperature = temperature

    def loss(self, oracle: Oracle) -> SparseMAPLoss:
        """With this temperature."""
        return SparseMAPLoss(oracle, temperature=self.temperature, warm=False)
