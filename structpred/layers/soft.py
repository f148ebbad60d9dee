"""The marginals layer: expected part counts, differentiated by two more marginals."""

from collections.abc import Callable

import numpy as np

from structpred.core.oracle import Oracle
from structpred.core.types import Floats, Integers
from structpred.layers.loss import Layer, Point
from structpred.layers.record import Scores
from structpred.runtime.settings import checked_positive


class SoftLayer(Layer):
    """mu = E[mu(y)] under p(y) ~ exp(theta . mu(y) / t). Needs `marginals`: one call forward, two for a pull-back.

    The Jacobian is the covariance of part counts over t, symmetric, so its product with g is the derivative of mu in the
    direction g: [mu(theta + r g) - mu(theta - r g)] / 2 r (Domke 2010), with r chosen by the sizes of g. The error
    is O(r^2), about 1e-9 in proportion to g.

    Parameters
    ----------
    oracle : Oracle
    temperature : float
        t > 0: the smaller, the nearer to the decision.
    width : float
        The largest change of a score over t in the pull-back.

    Examples
    --------
    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> oracle = MulticlassOracle()
    >>> mu, pull = SoftLayer(oracle)(Scores.of(oracle, [(2,)]), [0.0, 0.0])
    >>> mu.tolist(), pull([1.0, 0.0]).round(6).tolist()
    ([0.5, 0.5], [0.25, -0.25])
    """

    name = "soft"
    requires = ("marginals",)

    def __init__(self, oracle: Oracle, *, temperature: float = 1.0, width: float = 1e-5) -> None:
        super().__init__(oracle)
        self.temperature, self.width = checked_positive(temperature, "temperature"), checked_positive(width, "width")

    def point(self, batch: Scores, theta: Floats, ids: Integers, kept: bool, step: int) -> Point:
        """The marginals."""
        _, mu = batch.marginals(theta / self.temperature)
        return Point(mu, covariances(batch, theta, self.temperature, self.width), np.zeros(len(batch)))


def covariances(batch: Scores, theta: Floats, temperature: float = 1.0, width: float = 1e-5) -> Callable[[Floats], Floats]:
    """The derivative of the marginals at theta / t in the direction of flat numbers: their covariance over t, times these."""
    scores = theta / temperature

    def times(direction: Floats) -> Floats:
        largest = batch.largest(direction)
        r = batch.spread(width / np.where(largest > 0.0, largest, 1.0))
        _, both = batch.copies(2).marginals(np.concatenate((scores + r * direction, scores - r * direction)))
        return (both[: batch.size] - both[batch.size :]) / (2.0 * temperature * r)

    return times
