"""The parents of all losses of part scores and of all layers: what they are given, what they answer, and what is checked for all.

A layer goes from part scores to a point of the hull of outputs, with a pull-back for gradients.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from structpred.core.oracle import Labels, Oracle
from structpred.core.requirements import Needs, require
from structpred.core.types import ArrayLike, Floats, Integers
from structpred.errors import DataError, ParameterError
from structpred.layers.record import Gold, Outputs, Scores
from structpred.runtime.settings import checked_whole
from structpred.task.regret import packed_labels

#: a value below minus this share of the terms that cancel in it is no rounding: the gold lies outside the hull
_ROUNDING = 1e-9


class Given(NamedTuple):
    """What a loss is given besides scores, checked: flat float64 arrays; ids of the instances; the number of the step.

    gold: part counts; None for losses that need none. true_scores, costs: flat, None where none are given. pool: outputs an
    instance, None where none are given.
    """

    gold: Floats | None
    true_scores: Floats | None
    costs: Floats | None
    pool: Sequence[Sequence[Labels]] | None
    ids: Integers
    kept: bool
    step: int

    @property
    def target(self) -> Floats:
        """The gold of a loss that has one."""
        assert self.gold is not None
        return self.gold

    @property
    def truth(self) -> Floats:
        """The true scores of a loss that needs them."""
        assert self.true_scores is not None
        return self.true_scores


class Terms(NamedTuple):
    """What one loss computes: values (n,), the flat gradient, gaps (n,), and what it knows besides.

    scores: the scores that were maximised, where they are not theta. decisions: the best outputs at theta, if at hand.
    flips: of losses with noise: the flip rate beside these decisions; see LossRecord. curvature: as in LossRecord.
    """

    values: Floats
    gradient: Floats
    gap: Floats
    scores: Floats | None = None
    decisions: Outputs | None = None
    flips: Callable[[Outputs], float] | None = None
    curvature: Callable[[Floats], Floats] | None = None


class Decided:
    """What records of losses and of layers find when it is first asked for."""

    _decide: Callable[[], Outputs]
    _flips: Callable[[Outputs], float] | None

    @cached_property
    def labels(self) -> Outputs:
        """The best output of each instance at theta."""
        return self._decide()

    @cached_property
    def flip_rate(self) -> float | None:
        """The share of noisy outputs that differ from the best one; None without noise."""
        return None if self._flips is None else self._flips(self.labels)


@dataclass(frozen=True, eq=False)
class LossRecord(Decided):
    """What every loss returns.

    Attributes
    ----------
    values : float64 array (n,)
        The loss of each instance.
    gradient : float64 array (size,)
        Its derivative by each score (a subgradient at ties), flat as the scores; 0 where scores are fixed.
    gap : float64 array (n,)
        The exact loss is at most values + gap: 0 where the oracle is exact, infinite where nothing is known.
    flip_rate : float or None
        Of losses with noise: the share of noisy outputs that differ from the best one. Near 0: sigma is too small to learn from;
        near 1: it drowns the scores. Counted when first asked for, which takes `labels`.
    curvature : callable or None
        ``curvature(v)``: the Hessian of the sum of the values times v, both flat as the scores. None where it is not known.
    labels : Outputs
        The decision: the best output of each instance at theta. Found when first asked for, unless the loss came across it.
    proven : bool
        Whether values + gap is a bound: nothing may be called proven otherwise.
    """

    values: Floats
    gradient: Floats
    gap: Floats
    _decide: Callable[[], Outputs] = field(repr=False)
    _flips: Callable[[Outputs], float] | None = field(repr=False)
    curvature: Callable[[ArrayLike], Floats] | None = field(default=None, repr=False)

    @property
    def proven(self) -> bool:
        """Whether all gaps are finite."""
        return bool(np.isfinite(self.gap).all())


class OfScores:
    """What losses and layers share: an oracle, a name, and a state that calls may leave behind."""

    name: str = ""
    requires: Needs = ("argmax",)

    def __init__(self, oracle: Oracle) -> None:
        require(self.requires, oracle, type(self).__name__)
        self.oracle = oracle

    def get_state(self) -> dict[str, Any]:
        """What calls leave behind and later ones depend on, for runs that go on: numbers, arrays and lists of texts."""
        return {}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take up again what `get_state` gave; an empty one begins anew. Raises DataError for what does not fit."""
        if state:
            raise DataError(f"{type(self).__name__} keeps nothing between calls, but the saved state has {', '.join(state)}")


class Loss(OfScores, ABC):
    """A loss of part scores theta, with its gradient. Calls do not change it, but for what it keeps for given ids.

    `structpred.check_score_loss` tests one.

    Parameters
    ----------
    oracle : Oracle
        Any; what its loss `requires` must be there, else MissingCapabilityError.

    Attributes
    ----------
    name : str
        What DecisionModel and the shell call it.
    requires : methods of the oracle, as trainers state them.
    takes : names of what the call must be given: "gold" (or true scores, from which gold is found), "true_scores", "costs".
    nonnegative : whether it is >= 0 where gold is a mixture of outputs; a value below 0 then raises DataError.
    smooth : whether it is convex and, for one noise, differentiable (almost everywhere): trainers of smooth objectives take it.
    """

    takes: tuple[str, ...] = ("gold",)
    nonnegative: bool = True
    smooth: bool = False

    def __init__(self, oracle: Oracle) -> None:
        super().__init__(oracle)
        self._golds: dict[tuple[int, bytes], Labels] = {}

    @abstractmethod
    def terms(self, batch: Scores, theta: Floats, given: Given) -> Terms:
        """Values and gradient at full scores; what is given has been checked."""

    def __call__(
        self, batch: Scores, theta: ArrayLike, *, gold: Gold | None = None, true_scores: ArrayLike | None = None,
        true_costs: ArrayLike | None = None, costs: ArrayLike | None = None, pool: Sequence[Sequence[Labels]] | None = None,
        ids: Sequence[int] | Integers | None = None, step: int = 0,
    ) -> LossRecord:  # fmt: skip
        """The loss of each instance of a batch.

        Parameters
        ----------
        batch : Scores
            ``Scores.of(oracle, shapes)``, with the oracle of this loss.
        theta : float array (size,), or (n, p) where all instances have p parts
            Predicted scores, maximised. With true_costs they are predicted costs, minimised, and the gradient is by them.
        gold : a sequence of labels, one output an instance, or a flat float array of part counts
            The latter may be any point of the hull of outputs.
        true_scores : float array as theta, optional
            What parts are truly worth. Without gold the best outputs at them are gold; they are kept for given ids.
        true_costs : float array as theta, optional
            In place of true_scores: what parts truly cost. Of theta and these both are costs, or neither is.
        costs : float array as theta, optional
            Part costs ell of a structured loss: loss(y) = ell . (mu(y) - gold).
        pool : outputs an instance, optional
            For losses over pools (`structpred.layers.pools`).
        ids : whole numbers (n,), optional
            Names of the instances, 0, 1, ... if not given: noise belongs to them, and what is kept between calls.
        step : int
            The number of the step, for noise: the same noise for the same step.

        Raises
        ------
        DataError
            For numbers that are not finite, naming sample and part; for gold that is no output; and where the loss is negative,
            which says that a dense gold is no mixture of outputs (at other scores that may go unnoticed).
        InfeasibleError
            Where an instance has no feasible output.
        ParameterError
            Where something that this loss `takes` is not given.
        """
        check_oracle_of(batch, self.oracle, type(self).__name__)
        sign = 1.0 if true_costs is None else -1.0
        if true_costs is not None:
            if true_scores is not None:
                raise ParameterError("give true_costs= beside predicted costs, or true_scores= beside predicted scores: not both")
            theta, true_scores = -batch.flat(theta, "cost"), -batch.flat(true_costs, "true cost")
        full = batch.full(theta)
        truth = None if true_scores is None else batch.flat(true_scores, "true score")
        ell = None if costs is None else batch.flat(costs, "part cost")
        for name, value in (("true_scores", truth), ("costs", ell)):
            if name in self.takes and value is None:
                signs = ", which is maximised as theta is; or true_costs=, minimised, where theta are costs, too"
                also = signs if name == "true_scores" else ""
                raise ParameterError(f"{type(self).__name__} needs {name}=, one number a part{also}")
        names = checked_ids(ids, len(batch))
        target = None if gold is None else batch.points(gold)
        if target is None and "gold" in self.takes:
            if truth is None:
                raise ParameterError(
                    f"{type(self).__name__} needs gold= (outputs or part counts), or true_scores= (true_costs=) to find it"
                )
            target = self._solved(batch, truth, names if ids is not None else None)
        if pool is not None and len(pool) != len(batch):
            raise DataError(f"expected one pool of outputs an instance, {len(batch)}, got {len(pool)}")
        given = Given(target, truth, ell, pool, names, ids is not None, checked_whole(step, "step", 0))
        found = self.terms(batch, full, given)
        if self.nonnegative:
            self._refuse_negative(batch, full if found.scores is None else found.scores, found, given)
        decisions, bend = found.decisions, found.curvature
        return LossRecord(
            found.values, batch.masked(sign * found.gradient), found.gap,
            (lambda: batch.best(full).outputs) if decisions is None else (lambda: decisions), found.flips,
            None if bend is None else (lambda v: batch.masked(bend(batch.masked(batch.flat(v, "gradient"))))),
        )  # fmt: skip

    def _solved(self, batch: Scores, truth: Floats, ids: Integers | None) -> Floats:
        """Part counts of the best outputs at the true scores; solved once for an id and its scores."""
        if ids is None:
            return batch.counts(batch.best(truth))
        keys = keys_of(batch, ids, truth)
        if any(key not in self._golds for key in keys):
            self._golds.update(zip(keys, (own.copy() for own in batch.best(truth).outputs), strict=True))
        return batch.points(Outputs(*packed_labels([self._golds[key] for key in keys])))

    def _refuse_negative(self, batch: Scores, scores: Floats, found: Terms, given: Given) -> None:
        """DataError where a loss that is >= 0 on the hull is clearly negative: as a rule the gold lies outside."""
        upper = found.values + found.gap
        if given.gold is None or not (upper < 0).any():
            return
        sizes = batch.dots(np.abs(scores), np.abs(found.gradient) + 2.0 * np.abs(given.gold))
        wrong = upper < -_ROUNDING * np.maximum(sizes, 1e-300)
        if wrong.any():
            i = int(wrong.argmax())
            raise DataError(
                f"sample {i}: {type(self).__name__} is {upper[i]:.6g}, but it is never negative where the gold is a mixture of "
                "outputs: gold is not a mixture of outputs, or the oracle misses the maximum (run check_oracle on it)"
            )


def check_oracle_of(batch: Scores, oracle: Oracle, who: str) -> None:
    """ParameterError where a batch was made with another oracle."""
    if batch.oracle is not oracle:
        raise ParameterError(
            f"{who} has another {type(oracle).__name__} than the batch ({type(batch.oracle).__name__}): make the batch with "
            "Scores.of(loss.oracle, shapes)"
        )


def keys_of(batch: Scores, ids: Integers, numbers: Floats) -> list[tuple[int, bytes]]:
    """What is kept under an id is kept for its numbers, too: other ones under the same id have another key."""
    own = batch.split(numbers)
    return [(i, blake2b(one.tobytes(), digest_size=16).digest()) for i, one in zip(ids.tolist(), own, strict=True)]


def checked_ids(ids: Sequence[int] | Integers | None, n: int) -> Integers:
    """n whole numbers: 0, 1, ... if none are given. Raises DataError for others."""
    if ids is None:
        return np.arange(n, dtype=np.int64)
    found = np.asarray(ids)
    if found.shape != (n,) or (found.dtype.kind not in "iu" and n):
        raise DataError(f"ids: expected {n} whole numbers, got {found.dtype} of shape {found.shape}")
    return found.astype(np.int64)


#: from the gradient by mu to that by theta, both flat
PullBack = Callable[[ArrayLike], Floats]


class Point(NamedTuple):
    """What one layer computes: mu, flat; its pull-back; gaps (n,); the best outputs at theta, if at hand; `flips` as in Terms."""

    mu: Floats
    pull: Callable[[Floats], Floats]
    gap: Floats
    decisions: Outputs | None = None
    flips: Callable[[Outputs], float] | None = None


@dataclass(frozen=True, eq=False)
class LayerRecord(Decided):
    """What every layer returns. It unpacks into two: ``mu, pull = layer(batch, theta)``.

    Attributes
    ----------
    mu : float64 array (size,)
        A point of the hull of outputs for each instance, flat as the scores.
    pull : callable
        ``theta_bar = pull(mu_bar)``: the gradient by theta of a loss whose gradient by mu is mu_bar, a float array (size,), or
        (n, p) where all instances have p parts; 0 where scores are fixed. It may be called again. Raises DataError, naming
        sample and part, where mu_bar is not finite.
    gap : float64 array (n,)
        The layer's own bound on its error: 0 where the oracle is exact, infinite where nothing is known.
    flip_rate : float or None
        Of layers with noise: the share of noisy outputs that differ from the best one. Counted when first asked for.
    labels : Outputs
        The decision: the best output of each instance at theta. Found when first asked for, unless the layer came across it.
    """

    mu: Floats
    pull: PullBack
    gap: Floats
    _decide: Callable[[], Outputs] = field(repr=False)
    _flips: Callable[[Outputs], float] | None = field(repr=False)

    def __iter__(self) -> Iterator[Any]:
        """mu, then pull."""
        return iter((self.mu, self.pull))


class Layer(OfScores, ABC):
    """A layer theta -> mu over any oracle; `requires` and `name` as for losses. `structpred.check_layer` tests it.

    smooth: whether pull-backs are derivatives of mu; False for estimates and heuristics.
    """

    smooth: bool = True

    @abstractmethod
    def point(self, batch: Scores, theta: Floats, ids: Integers, kept: bool, step: int) -> Point:
        """mu and its pull-back at full scores; kept: whether the ids are the user's, so that something may be kept for them."""

    def __call__(
        self, batch: Scores, theta: ArrayLike, *, ids: Sequence[int] | Integers | None = None, step: int = 0
    ) -> LayerRecord:
        """mu of each instance, and the pull-back; arguments and errors are those of losses."""
        check_oracle_of(batch, self.oracle, type(self).__name__)
        full = batch.full(theta)
        found = self.point(batch, full, checked_ids(ids, len(batch)), ids is not None, checked_whole(step, "step", 0))

        def pull(mu_bar: ArrayLike) -> Floats:
            return batch.masked(found.pull(batch.masked(batch.flat(mu_bar, "gradient"))))

        decisions = found.decisions
        return LayerRecord(
            found.mu, pull, found.gap,
            (lambda: batch.best(full).outputs) if decisions is None else (lambda: decisions), found.flips,
        )  # fmt: skip
