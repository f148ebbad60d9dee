"""The straight-through layer: the decision forward, the gradient as it is backward."""

import numpy as np

from structpred.core.types import Floats, Integers
from structpred.layers.layer import Layer, Point
from structpred.layers.record import Scores


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
