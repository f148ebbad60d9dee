"""Layers of black-box solvers: the decision forward; backward an interpolation of decisions, or the gradient as it is."""

import numpy as np

from structpred.core.oracle import Oracle
from structpred.core.types import Floats, Integers
from structpred.layers.loss import Layer, Point
from structpred.layers.record import Scores
from structpred.runtime.settings import checked_positive


class BlackBoxLayer(Layer):
    """mu(theta) forward; backward [mu(theta) - mu(theta - lam g)] / lam (Vlastelica et al. 2020, algorithm 1, in scores).

    The pull-back is the exact gradient of another function, [S(theta) - S(theta - lam g)] / lam for fixed g: the decision itself
    is constant in pieces. One `argmax` forward, one more for each pull-back.

    Parameters
    ----------
    oracle : Oracle
    lam : float
        lam > 0: large ones interpolate over more of the scores, and are less true to the decision.

    Examples
    --------
    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> oracle = MulticlassOracle()
    >>> mu, pull = BlackBoxLayer(oracle, lam=2.0)(Scores.of(oracle, [(2,)]), [0.0, 1.0])
    >>> mu.tolist(), pull([0.0, 1.0]).tolist()
    ([0.0, 1.0], [-0.5, 0.5])
    """

    name = "blackbox"
    smooth = False

    def __init__(self, oracle: Oracle, *, lam: float = 10.0) -> None:
        super().__init__(oracle)
        self.lam = checked_positive(lam, "lam")

    def point(self, batch: Scores, theta: Floats, ids: Integers, kept: bool, step: int) -> Point:
        """The decision."""
        best = batch.best(theta)
        mu = batch.counts(best)

        def pull(gradient: Floats) -> Floats:
            return (mu - batch.counts(batch.best(theta - self.lam * gradient))) / self.lam

        return Point(mu, pull, best.gaps, best.outputs)


class StraightThroughLayer(Layer):
    """mu(theta) forward, and the gradient as it came backward (negative identity in costs: Sahoo et al. 2022).

    A heuristic: it differentiates no function of theta. It takes one `argmax`, and none backward.

    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> oracle = MulticlassOracle()
    >>> mu, pull = StraightThroughLayer(oracle)(Scores.of(oracle, [(2,)]), [0.0, 1.0])
    >>> mu.tolist(), pull([3.0, 1.0]).tolist()
    ([0.0, 1.0], [3.0, 1.0])
    """

    name = "straight_through"
    smooth = False

    def point(self, batch: Scores, theta: Floats, ids: Integers, kept: bool, step: int) -> Point:
        """The decision."""
        best = batch.best(theta)
        return Point(batch.counts(best), np.copy, best.gaps, best.outputs)
