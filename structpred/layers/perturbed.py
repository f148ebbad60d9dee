"""Perturbed optimisers: scores with noise, averaged over samples, as a loss and as a layer (DPO).

Noise belongs to (seed, step, id, sample, part): the same in any batch, any order, any thread, any resumed run.
"""

from dataclasses import dataclass
from itertools import cycle
from typing import NamedTuple

import numpy as np

from structpred.core.oracle import Oracle
from structpred.core.types import Floats, Integers
from structpred.errors import DataError, ParameterError
from structpred.layers.loss import Given, Layer, Loss, Point, Terms
from structpred.layers.record import Best, Outputs, Scores
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits
from structpred.runtime.settings import checked_positive, checked_whole
from structpred.runtime.threads import run_ranges, split_evenly

_kernels = later("structpred.layers._noise_kernels")
_record_kernels = later("structpred.layers._record_kernels")


def normals(
    offsets: Integers, ids: Integers, *, seed: int, step: int, samples: int, antithetic: bool = False, n_jobs: int = 1
) -> Floats:
    """Standard normal numbers (samples, size): row k, column offsets[i] + p is a function of (seed, step, ids[i], k, p) alone.

    antithetic: rows 2 j and 2 j + 1 are z and -z. Numbers come from counters by SplitMix64 (Steele, Lea & Flood 2014) and the
    inverse distribution function (Wichura 1988, AS 241): about 10 ns each.

    >>> two = normals(np.array([0, 1, 2]), np.array([7, 3]), seed=0, step=5, samples=4)
    >>> one = normals(np.array([0, 1]), np.array([3]), seed=0, step=5, samples=4)
    >>> bool((two[:, 1:] == one).all())
    True
    """
    size = int(offsets[-1])
    check_fits(8 * samples * size, f"noise for {samples} samples of {size:,} scores")
    out, draw = np.empty((samples, size)), _kernels().normals

    def run(first: int, last: int) -> None:
        draw(offsets, ids, seed, step, antithetic, first, last, out)

    run_ranges(run, split_evenly(np.diff(offsets), n_jobs), n_jobs)
    return out


@dataclass(frozen=True)
class Noise:
    """How scores are perturbed: theta + sigma z, or theta * exp(sigma z - sigma^2 / 2), `samples` times.

    Raises ParameterError for sigma <= 0, and for an odd number of antithetic samples, which come as pairs z and -z.
    """

    samples: int
    sigma: float
    seed: int
    antithetic: bool
    multiplicative: bool

    def __post_init__(self) -> None:
        checked_whole(self.samples, "samples")
        checked_positive(self.sigma, "sigma")
        checked_whole(self.seed, "seed", 0)
        if self.antithetic and self.samples % 2:
            raise ParameterError(
                f"antithetic noise comes in pairs z and -z: samples must be even, got {self.samples}; or set antithetic=False"
            )

    def draw(self, batch: Scores, ids: Integers, step: int) -> Floats:
        """The normals z, (samples, size)."""
        return normals(
            batch.offsets, ids, seed=self.seed, step=step, samples=self.samples, antithetic=self.antithetic, n_jobs=batch.n_jobs
        )

    def perturb(self, batch: Scores, theta: Floats, ids: Integers, step: int) -> "Perturbed":
        """The noisy scores and the best outputs at them; fixed scores get no noise."""
        z, factors = self.draw(batch, ids, step), None
        if self.multiplicative:
            _kernels().noise_factors(np.zeros(0, np.bool_) if batch.mask is None else batch.mask, self.sigma, z)
            factors, noisy = z, z * theta
        else:
            z *= self.sigma
            if batch.mask is not None:
                z[:, batch.mask] = 0.0
            z += theta
            noisy = z
        return Perturbed(noisy, factors, batch.copies(self.samples).best(noisy.reshape(-1)))


class Perturbed(NamedTuple):
    """noisy: scores (samples, size). factors: those of multiplicative noise, else None. best: the best outputs at all of them,
    one sample behind the other.
    """

    noisy: Floats
    factors: Floats | None
    best: Best

    def flip_rate(self, plain: Outputs) -> float:
        """The share of these outputs that differ from those without noise."""
        outputs = self.best.outputs
        flips = sum(own.tobytes() != other.tobytes() for own, other in zip(outputs, cycle(plain), strict=False))
        return flips / max(1, len(outputs))


class PerturbedLoss(Loss):
    """1/m sum_k max_y theta_k . (mu(y) - g): the Fenchel-Young loss of a perturbed maximum (Berthet et al. 2020).

    theta_k = theta + sigma z_k with normal z_k. It is an unbiased estimate of F(theta) - theta . g, where F is the mean maximum,
    and for fixed noise convex, >= 0, with the exact gradient 1/m sum_k mu(y_k) - g. Noise is fixed by (seed, step, ids): a line
    search keeps the step, training counts it up.

    multiplicative: theta_k = theta * exp(sigma z_k - sigma^2 / 2) keeps signs (Dalle et al. 2022). The value is then
    1/m sum_k max_y theta_k . mu(y) - theta . g, still convex and unbiased, and may be negative.

    Parameters
    ----------
    oracle : Oracle
    samples : int
        m, calls of `argmax` an instance (and one where `labels` or `flip_rate` are asked for).
    sigma : float
        The standard deviation of the noise, in scores: see `flip_rate` of the record.
    seed : int
    antithetic : bool
        Whether noise comes in pairs z and -z, which lowers the variance at no cost; m must be even then.
    multiplicative : bool

    Raises
    ------
    ParameterError
        For sigma <= 0 and for an odd number of antithetic samples.

    Examples
    --------
    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> oracle = MulticlassOracle()
    >>> found = PerturbedLoss(oracle, samples=1000)(Scores.of(oracle, [(2,)]), [1.0, 1.0], gold=[[0]])
    >>> found.values.round(1).tolist()  # about the mean of the larger of two normals, 1 / sqrt(pi)
    [0.6]
    """

    name = "perturbed"
    smooth = True

    def __init__(
        self, oracle: Oracle, *, samples: int = 10, sigma: float = 1.0, seed: int = 0, antithetic: bool = True,
        multiplicative: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(oracle)
        self.noise = Noise(samples, sigma, seed, bool(antithetic), bool(multiplicative))
        self.nonnegative = not multiplicative

    def terms(self, batch: Scores, theta: Floats, given: Given) -> Terms:
        """The means over the samples."""
        found = self.noise.perturb(batch, theta, given.ids, given.step)
        values, gap = mean_of(found.best.values, len(batch)), mean_of(found.best.gaps, len(batch))
        same_mean = self.noise.multiplicative or self.noise.antithetic  # pairs have that of theta
        values -= batch.dots(theta if same_mean else found.noisy, given.target)
        return Terms(values, mean_point(batch, found) - given.target, gap, flips=found.flip_rate)


class PerturbedLayer(Layer):
    """mu = 1/m sum_k mu(y_k), y_k best at theta_k: the differentiable perturbed optimiser (Berthet et al. 2020).

    The pull-back is 1/m sum_k z_k (g . mu(y_k)) / sigma, unbiased for the derivative of the mean; pairs z, -z, or the mean of the
    other samples, take most of its variance away. It asks the oracle nothing more. For multiplicative noise it is divided by
    theta, too. Arguments are those of `PerturbedLoss`.

    Raises DataError, naming sample and part, where multiplicative noise meets a score of 0, which it cannot move.
    """

    name = "perturbed"
    smooth = False

    def __init__(
        self, oracle: Oracle, *, samples: int = 10, sigma: float = 1.0, seed: int = 0, antithetic: bool = True,
        multiplicative: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(oracle)
        self.noise = Noise(samples, sigma, seed, bool(antithetic), bool(multiplicative))

    def point(self, batch: Scores, theta: Floats, ids: Integers, kept: bool, step: int) -> Point:
        """The mean output."""
        found = self.noise.perturb(batch, theta, ids, step)
        best, scale = found.best, self._scale(batch, theta)

        def pull(gradient: Floats) -> Floats:
            return score_function(batch, self.noise, ids, step, dots_of_outputs(batch, found, gradient)) / scale

        mu = mean_point(batch, found._replace(factors=None))
        return Point(mu, pull, mean_of(best.gaps, len(batch)), flips=found.flip_rate)

    def _scale(self, batch: Scores, theta: Floats) -> Floats | float:
        """How far a score moves for noise of 1."""
        if not self.noise.multiplicative:
            return self.noise.sigma
        scale = self.noise.sigma * theta
        if batch.mask is not None:
            scale[batch.mask] = 1.0
        if (zero := np.flatnonzero(scale == 0.0)).size:
            i = int(np.searchsorted(batch.offsets, zero[0], side="right")) - 1
            raise DataError(
                f"sample {i}: part {zero[0] - batch.offsets[i]} has the score 0, which multiplicative noise does not move; use "
                "additive noise, or keep scores away from 0"
            )
        return scale


def mean_of(numbers: Floats, n: int) -> Floats:
    """The mean over samples of numbers[k n + i], (n,)."""
    m = max(1, len(numbers) // max(1, n))
    return np.bincount(np.tile(np.arange(n), m), numbers, n) / m  # which adds in order, so that batches do not matter


def mean_point(batch: Scores, found: Perturbed) -> Floats:
    """1/m sum_k f_k mu(y_k), flat: the mean output, with the factors of multiplicative noise where there are any."""
    if found.best.points is not None:
        amounts = found.best.points.reshape(-1, batch.size)
        return (amounts if found.factors is None else found.factors * amounts).mean(axis=0)
    out = np.zeros(batch.size)
    factors = np.empty((0, 0)) if found.factors is None else found.factors
    _kernels().mean_counts(found.best.parts, found.best.part_ends, batch.offsets, factors, out)
    return out


def dots_of_outputs(batch: Scores, found: Perturbed, gradient: Floats) -> Floats:
    """g . mu(y_k) of each noisy output, sample by sample."""
    if found.best.points is not None:
        m = len(found.best.points) // max(1, batch.size)
        return batch.copies(m).dots(found.best.points, np.tile(gradient, m))
    out, owners = np.empty(len(found.best.values)), np.arange(len(found.best.values)) % max(1, len(batch))
    _record_kernels().score_outputs(gradient, batch.offsets, found.best.parts, found.best.part_ends, owners, out)
    return out


def score_function(batch: Scores, noise: Noise, ids: Integers, step: int, numbers: Floats) -> Floats:
    """The mean of z_k f_k less a baseline, flat: sigma times the derivative of the mean of f by theta, unbiased."""
    out = np.zeros(batch.size)
    _kernels().score_function(numbers, batch.offsets, ids, noise.seed, step, noise.antithetic, noise.samples, out)
    return out
