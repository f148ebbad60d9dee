"""SparseMAP: the regularised argmax whose answer mixes few outputs; a loss and a layer."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from structpred.core.oracle import Oracle, Shape
from structpred.core.types import ArrayLike, Floats, Integers
from structpred.errors import DataError, InfeasibleError
from structpred.layers.loss import Given, Layer, Loss, Point, Terms
from structpred.layers.record import Scores
from structpred.projections.lockstep import ActiveSets, HullPoints, nearest_in_hulls
from structpred.runtime.settings import checked_positive

#: shape -> d >= 0, a number a part
Metric = Callable[[Shape], ArrayLike]


class _Projecting:
    """mu = argmax theta . mu - t/2 sum_p d_p mu_p^2 over the hull of outputs, from warm starts for the user's ids."""

    oracle: Oracle

    def __init__(
        self, oracle: Oracle, *, temperature: float = 1.0, metric: Metric | None = None, tol: float = 1e-13,
        max_cache: int = 1 << 30, warm: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(oracle)  # type: ignore[call-arg]
        self.temperature, self.metric = checked_positive(temperature, "temperature"), metric
        self.tol, self.sets = checked_positive(tol, "tol"), ActiveSets(max_cache) if warm else None

    def _weights(self, batch: Scores) -> Floats:
        """t d, flat."""
        if self.metric is None:
            return np.full(batch.size, self.temperature)
        found = [np.asarray(self.metric(shape), dtype=np.float64).ravel() for shape in batch.shapes]
        for i, (own, size) in enumerate(zip(found, np.diff(batch.offsets).tolist(), strict=True)):
            if own.shape != (size,) or not (np.isfinite(own) & (own >= 0)).all():
                raise DataError(f"sample {i}: the metric of shape {batch.shapes[i]!r} must be {size} finite numbers >= 0")
        return self.temperature * np.concatenate([np.empty(0), *found])

    def _points(self, batch: Scores, theta: Floats, weights: Floats, ids: Integers, kept: bool) -> HullPoints:
        """The points at full scores. Raises ConvergenceError where the gap is not reached."""
        warm = kept and self.sets is not None
        found = nearest_in_hulls(
            self.oracle, theta, batch.offsets, batch.shapes, metric=weights, tol=self.tol,
            sets=self.sets if warm else None, ids=ids.tolist() if warm else None, n_jobs=batch.n_jobs,
        )  # fmt: skip
        if (blocked := batch.forbidden(found.mu)) is not None:
            raise InfeasibleError(f"sample {blocked}: no {self.oracle.output} is feasible: the best one has a forbidden part")
        return found

    def get_state(self) -> dict[str, Any]:
        """The active sets that are kept for ids; nothing without warm starts."""
        return {} if self.sets is None else self.sets.saved()

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take them up again; a state that holds none leaves none."""
        if self.sets is not None:
            self.sets = ActiveSets(self.sets.max_bytes)
            if state:
                self.sets.restore(state)

    def _gaps(self, found: HullPoints) -> Floats:
        """What is proven of the gaps: nothing where the oracle may miss the maximum."""
        return found.gaps if self.oracle.exact and not self.oracle.tolerance else np.full(len(found.gaps), np.inf)


class SparseMAPLoss(_Projecting, Loss):
    """theta . (mu - g) + Omega(g) - Omega(mu) with Omega(mu) = t/2 sum_p d_p mu_p^2 and mu the SparseMAP point.

    Niculae et al. (2018); the Fenchel-Young loss of Omega (Blondel, Martins & Niculae 2020, Definition 2). It is convex and >= 0.
    It is zero exactly where mu = g, which is so where theta . (g - mu(y)) >= t g . (g - mu(y)) for all outputs y: a margin. It
    needs nothing but `argmax`.

    Parameters
    ----------
    oracle : Oracle
    temperature : float
        t > 0.
    metric : callable, optional
        shape -> d, one number >= 0 a part; 1 for all parts where it is not given. With 0 on the transitions of a chain only its
        labels are regularised.
    tol : float
        The gap of an answer in proportion to the terms that cancel in it; see `structpred.projections.lockstep`.
    max_cache : int
        Bytes of active outputs that are kept for the ids of a call, for warm starts. They are part of the state (`get_state`), so
        that a run which continues has the same bits; never of a model file.
    warm : bool
        False: every call starts cold, so that equal inputs give equal bits; True: they agree to the gap.

    Examples
    --------
    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> oracle = MulticlassOracle()
    >>> found = SparseMAPLoss(oracle)(Scores.of(oracle, [(3,)]), [0.5, 0.0, -1.0], gold=[[0]])
    >>> found.values.round(6).tolist(), found.gradient.round(6).tolist()
    ([0.0625], [-0.25, 0.25, 0.0])
    """

    name = "sparsemap"
    smooth = True

    def terms(self, batch: Scores, theta: Floats, given: Given) -> Terms:
        """The value is a lower bound of the exact one, which exceeds it by the solver's gap at most."""
        weights, gold = self._weights(batch), given.target
        found = self._points(batch, theta, weights, given.ids, given.kept)
        apart = found.mu - gold
        # Omega(g) - Omega(mu) as a product of difference and sum: nothing large cancels near the optimum
        values = batch.dots(theta, apart) - 0.5 * batch.dots(weights * apart, found.mu + gold)
        return Terms(values, apart, self._gaps(found))


class SparseMAP(_Projecting, Layer):
    """mu = argmax theta . mu - t/2 sum_p d_p mu_p^2 over the hull of outputs (Niculae et al. 2018): a mixture of few outputs.

    Its Jacobian is that of the active outputs' mixture, and one-sided where a weight is zero. Parameters as for `SparseMAPLoss`.

    Examples
    --------
    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> oracle = MulticlassOracle()
    >>> mu, pull = SparseMAP(oracle)(Scores.of(oracle, [(3,)]), [0.5, 0.0, -1.0])
    >>> mu.round(6).tolist(), pull([1.0, 0.0, 0.0]).round(6).tolist()
    ([0.75, 0.25, 0.0], [0.5, -0.5, 0.0])
    """

    name = "sparsemap"

    def point(self, batch: Scores, theta: Floats, ids: Integers, kept: bool, step: int) -> Point:
        """The point with its gap; the pull-back takes two triangular solves with the factor of the active outputs."""
        found = self._points(batch, theta, self._weights(batch), ids, kept)
        return Point(found.mu, found.pull_back, self._gaps(found))
