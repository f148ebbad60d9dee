"""The parent of all layers: from part scores to a point of the hull of outputs, with a pull-back for gradients."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy.typing as npt

from structpred.core.types import Floats, Integers
from structpred.layers.loss import Decided, OfScores, check_oracle_of, checked_ids
from structpred.layers.record import Outputs, Scores
from structpred.runtime.settings import checked_whole

#: from the gradient by mu to that by theta, both flat
PullBack = Callable[[npt.ArrayLike], Floats]


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
        self, batch: Scores, theta: npt.ArrayLike, *, ids: Sequence[int] | Integers | None = None, step: int = 0
    ) -> LayerRecord:
        """mu of each instance, and the pull-back; arguments and errors are those of losses."""
        check_oracle_of(batch, self.oracle, type(self).__name__)
        full = batch.full(theta)
        found = self.point(batch, full, checked_ids(ids, len(batch)), ids is not None, checked_whole(step, "step", 0))

        def pull(mu_bar: npt.ArrayLike) -> Floats:
            return batch.masked(found.pull(batch.masked(batch.flat(mu_bar, "gradient"))))

        decisions = found.decisions
        return LayerRecord(
            found.mu, pull, found.gap,
            (lambda: batch.best(full).outputs) if decisions is None else (lambda: decisions), found.flips,
        )  # fmt: skip
