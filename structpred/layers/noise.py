"""Noise that belongs to (seed, step, id, sample, part): the same in any batch, any order, any thread, any resumed run."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from structpred.core.types import Floats, Integers
from structpred.errors import ParameterError
from structpred.layers.record import Best, Outputs, Scores
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits
from structpred.runtime.settings import checked_positive, checked_whole
from structpred.runtime.threads import run_ranges, split_evenly

_kernels = later("structpred.layers._noise_kernels")


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
    return _drawn(offsets, ids, samples, n_jobs, "normals", (seed, step, antithetic))


def gumbels(offsets: Integers, ids: Integers, *, seed: int, step: int, samples: int, n_jobs: int = 1) -> Floats:
    """The same for the standard Gumbel distribution: the best label at scores + gumbels is a draw from the softmax."""
    return _drawn(offsets, ids, samples, n_jobs, "gumbels", (seed, step))


def _drawn(offsets: Integers, ids: Integers, samples: int, n_jobs: int, kind: str, key: tuple[Any, ...]) -> Floats:
    size = int(offsets[-1])
    check_fits(8 * samples * size, f"noise for {samples} samples of {size:,} scores")
    out, draw = np.empty((samples, size)), getattr(_kernels(), kind)

    def run(first: int, last: int) -> None:
        draw(offsets, ids, *key, first, last, out)

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
        z, mask, factors = self.draw(batch, ids, step), np.zeros(0, np.bool_) if batch.mask is None else batch.mask, None
        if self.multiplicative:
            _kernels().noise_factors(mask, self.sigma, z)
            factors, noisy = z, z * theta
        else:
            _kernels().add_noise(theta, mask, self.sigma, z)
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
        return float(_kernels().count_flips(outputs.labels, outputs.ends, plain.labels, plain.ends) / max(1, len(outputs)))
