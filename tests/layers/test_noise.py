"""Noise: distributed as said, independent across counters, and a function of its counters alone."""

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import kstest

from structpred.layers.perturbed import normals

SIZES = np.array([0, 7, 7 + 40, 7 + 40 + 1])


def test_normals_are_the_inverse_distribution_function() -> None:
    """The compiled inverse agrees with SciPy's to 2e-15 at 52-bit fractions, in the farthest tails too."""
    from structpred.layers._noise_kernels import normals_of

    k = np.concatenate([[0, 1, 2, 3], 2 ** np.arange(2, 52), np.random.default_rng(0).integers(0, 2**52, 3000)])
    for u in ((k + 0.5) * 2.0**-52, 1.0 - (k + 0.5) * 2.0**-52):
        exact = ndtri(u)
        found = np.empty(len(u))
        normals_of(u - 0.5, found)
        assert np.isfinite(found).all()
        if u[0] < 0.5:
            np.testing.assert_allclose(found, exact, rtol=2e-15)


@pytest.mark.parametrize("counter", ["part", "id", "step", "seed", "sample"])
def test_numbers_are_normal_along_every_counter(counter: str) -> None:
    """Mean, variance, skewness, kurtosis and the whole distribution fit thousands of numbers, whichever counter counts;
    neighbours along it are not correlated.
    """
    n, one = 20_000 if counter in ("part", "id", "sample") else 4000, np.array([0, 1])
    if counter == "part":
        z = normals(np.array([0, n]), np.array([3]), seed=1, step=2, samples=1)[0]
    elif counter == "id":
        z = normals(np.arange(n + 1), np.arange(n), seed=1, step=2, samples=1)[0]
    elif counter == "sample":
        z = normals(one, np.array([3]), seed=1, step=2, samples=n)[:, 0]
    else:
        counters = {"seed": 1, "step": 2}
        z = np.array([normals(one, np.array([3]), samples=1, **(counters | {counter: k}))[0, 0] for k in range(n)])
    for power, mean, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((z**power).mean() - mean) <= 4 * np.sqrt(variance / n)
    assert kstest(z, "norm").pvalue > 1e-4
    for lag in (1, 2, 3, 64):
        assert abs((z[lag:] * z[:-lag]).mean()) <= 4 / np.sqrt(n - lag)


def test_counters_are_independent_of_each_other() -> None:
    """Numbers of different ids, samples, steps and seeds at the same part are not correlated, nor are their squares; exchanging
    two counters gives other numbers.
    """
    offsets, n = np.array([0, 20_000]), 20_000
    base = {"ids": 5, "seed": 5, "step": 6, "samples": 3}

    def drawn(**changed: int) -> np.ndarray:
        own = base | changed
        return normals(offsets, np.array([own["ids"]]), seed=own["seed"], step=own["step"], samples=own["samples"])

    here = drawn()
    others = [here[1], here[2], *(drawn(**{key: value})[0] for key, value in (("ids", 6), ("seed", 6), ("step", 5), ("step", 7)))]
    for other in others:
        assert abs((here[0] * other).mean()) <= 4 / np.sqrt(n)
        assert abs(((here[0] ** 2 - 1) * (other**2 - 1)).mean()) <= 4 * 2 / np.sqrt(n)
    assert not np.array_equal(drawn(ids=1, step=2)[0], drawn(ids=2, step=1)[0])


def test_noise_is_the_same_in_any_batch() -> None:
    """An instance gets the same bits alone, in another order, and on several threads; more samples begin with the fewer."""
    ids = np.array([11, 4, 9])
    whole = normals(SIZES, ids, seed=3, step=1, samples=4)
    np.testing.assert_array_equal(normals(SIZES, ids, seed=3, step=1, samples=4, n_jobs=3), whole)
    np.testing.assert_array_equal(normals(np.array([0, 40]), ids[1:2], seed=3, step=1, samples=4), whole[:, 7:47])
    np.testing.assert_array_equal(normals(SIZES, ids, seed=3, step=1, samples=2), whole[:2])
    turned = normals(np.array([0, 1, 41, 48]), ids[::-1], seed=3, step=1, samples=4)
    np.testing.assert_array_equal(np.hstack([turned[:, 41:], turned[:, 1:41], turned[:, :1]]), whole)


def test_antithetic_noise_comes_in_pairs() -> None:
    """Every second row is minus the one before, and the first ones are those without pairs."""
    pairs, plain = (normals(SIZES, np.arange(3), seed=0, step=0, samples=6, antithetic=kind) for kind in (True, False))
    np.testing.assert_array_equal(pairs[1::2], -pairs[::2])
    np.testing.assert_array_equal(pairs[::2], plain[::2])
