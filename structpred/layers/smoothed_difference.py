"""Implicit maximum likelihood: the perturbed layer with a finite difference of perturbed outputs as its pull-back."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from structpred.core.oracle import Oracle
from structpred.core.types import Floats, Integers
from structpred.layers.loss import Layer, Point
from structpred.layers.perturbed import Noise, Perturbed, mean_of, mean_point
from structpred.layers.record import Scores
from structpred.runtime.settings import checked_positive


class SmoothedDifferenceLayer(Layer):
    """1/m sum_k mu(theta_k) forward; backward 1/m sum_k [mu(theta_k) - mu(theta_k - lam g)] / lam (I-MLE: Niepert et al. 2021).

    theta_k = theta + sigma z_k, with the same noise both times. It is the black-box layer of the smoothed maximum: biased by
    O(lam), with far less variance than the perturbed layer. m calls of `argmax` forward, m more for each pull-back.

    Parameters
    ----------
    oracle : Oracle
    lam : float
        lam > 0, the step along the gradient.
    samples, sigma, seed, antithetic
        As for `PerturbedLoss`.
    """

    name = "imle"
    smooth = False

    def __init__(
        self, oracle: Oracle, *, lam: float = 10.0, samples: int = 10, sigma: float = 1.0, seed: int = 0, antithetic: bool = True
    ) -> None:
        super().__init__(oracle)
        self.lam = checked_positive(lam, "lam")
        self.noise = Noise(samples, sigma, seed, bool(antithetic), multiplicative=False)

    def point(self, batch: Scores, theta: Floats, ids: Integers, kept: bool, step: int) -> Point:
        """The mean output."""
        found = self.noise.perturb(batch, theta, ids, step)
        mu = mean_point(batch, found)

        def pull(gradient: Floats) -> Floats:
            return self._difference(batch, theta, found, mu, gradient)

        return Point(mu, pull, mean_of(found.best.gaps, len(batch)), flips=found.flip_rate)

    def _difference(self, batch: Scores, theta: Floats, found: Perturbed, mu: Floats, gradient: Floats) -> Floats:
        return smoothed_difference(batch, found, mu, gradient, np.full(len(batch), self.lam))


class AdaptiveSmoothedDifferenceLayer(SmoothedDifferenceLayer):
    """The same with lam = alpha |theta| / |g| an instance, and alpha learnt (AIMLE: Minervini et al. 2023).

    alpha starts at 0, where nothing flips and all pull-backs are zero. After each pull-back it grows by `rate` where the running
    mean of the number of non-zero entries an instance is below `target`, and shrinks otherwise: a gradient shall be neither empty
    nor coarse. This state (`alpha`, `entries`) belongs to this layer; it alone makes pull-backs depend on those before,
    and `structpred.torch` saves it with a network.

    Parameters
    ----------
    oracle : Oracle
    rate : float
        The step of alpha.
    target : float
        How many entries of a pull-back shall be non-zero, on average over instances.
    samples, sigma, seed, antithetic
        As for `PerturbedLoss`.
    """

    name = "adaptive_imle"

    def __init__(
        self, oracle: Oracle, *, rate: float = 1e-3, target: float = 1.0, samples: int = 10, sigma: float = 1.0, seed: int = 0,
        antithetic: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(oracle, samples=samples, sigma=sigma, seed=seed, antithetic=antithetic)
        self.rate, self.target = checked_positive(rate, "rate"), checked_positive(target, "target")
        self.alpha, self.entries = 0.0, 0.0

    def get_state(self) -> dict[str, Any]:
        """alpha and the running mean."""
        return {"alpha": float(self.alpha), "entries": float(self.entries)}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from them; from the start where there are none."""
        self.alpha, self.entries = float(state.get("alpha", 0.0)), float(state.get("entries", 0.0))

    def _difference(self, batch: Scores, theta: Floats, found: Perturbed, mu: Floats, gradient: Floats) -> Floats:
        predicted = batch.masked(theta.copy())
        size, length = np.sqrt(batch.dots(predicted, predicted)), np.sqrt(batch.dots(gradient, gradient))
        lam = self.alpha * size / np.where(length > 0.0, length, 1.0)
        difference = smoothed_difference(batch, found, mu, gradient, lam)
        self.entries = 0.9 * self.entries + 0.1 * np.count_nonzero(difference) / max(1, len(batch))
        self.alpha = max(0.0, self.alpha + (self.rate if self.entries < self.target else -self.rate))
        return difference


def smoothed_difference(batch: Scores, found: Perturbed, mu: Floats, gradient: Floats, lam: Floats) -> Floats:
    """1/m sum_k [mu(theta_k) - mu(theta_k - lam g)] / lam, with one lam >= 0 an instance; 0 where it is 0."""
    step = batch.spread(lam)
    other = batch.copies(len(found.noisy)).best((found.noisy - step * gradient).reshape(-1))
    difference = mu - mean_point(batch, found._replace(best=other))
    return np.divide(difference, step, out=np.zeros(batch.size), where=step > 0.0)
